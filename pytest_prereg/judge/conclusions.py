"""What one set of repeats says of one prediction at one confidence: its finding, and what forbids it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from pytest_prereg.evidence.model import Series
from pytest_prereg.judge.conjunctions import judge_all
from pytest_prereg.judge.finders import find
from pytest_prereg.judge.findings import Doubt
from pytest_prereg.judge.instruments import UNSTATED, are_unstated
from pytest_prereg.judge.model import Judgement, Reason, Verdict
from pytest_prereg.judge.obstacles import against, failures, first_of, losses, obstacles_to
from pytest_prereg.judge.question import asked
from pytest_prereg.judge.samples import SET_ASIDE, read_sample
from pytest_prereg.judge.stopping import faults_seen_at
from pytest_prereg.registry.model import Experiment, Prediction
from pytest_prereg.registry.regions import Region

if TYPE_CHECKING:
    from pytest_prereg.evidence.model import RecordedRepeat
    from pytest_prereg.judge.exclusions import Choice
    from pytest_prereg.judge.findings import Finding
    from pytest_prereg.judge.question import Question
    from pytest_prereg.judge.samples import Reading, Sample
    from pytest_prereg.judge.stopping import Look
    from pytest_prereg.registry.model import Arm


_TASK_FAILED, _INCONCLUSIVE = Reason.TASK_FAILED, Verdict.INCONCLUSIVE


class Case(msgspec.Struct, frozen=True, gc=False):
    """A prediction, the series that it is judged from, and what is known against a verdict from outside."""

    prediction: Prediction
    experiment: Experiment
    series: Series
    predicts: Region
    falsifier: Region
    scale: float
    constants: Mapping[str, float]
    obstacles: Sequence[Doubt]
    questions: int = 1
    """How many the prediction asks, each of which is tested for drift."""


def conclude(case: Case, repeats: Sequence[RecordedRepeat], look: Look, choice: Choice) -> Judgement:
    """Judge what a ``look`` sees, with a ``choice`` of the repeats that were set aside.

    Args:
        case: What is judged.
        repeats: All settled repeats of the prediction's arms that the look sees, in run order.
        look: At which confidence.
        choice: Ids of repeats that count although they were set aside.

    Raises:
        JudgeError: A repeat that counts has no finite value, or two repeats claim one place in a block.
    """
    if case.prediction.reduction == "all":
        return _conclude_points(case, repeats, look, choice)
    question = asked(
        case.prediction,
        case.experiment,
        predicts=case.predicts,
        falsifier=case.falsifier,
        scale=case.scale,
        constants=case.constants,
        confidence=look.confidence,
        questions=case.questions,
    )
    sample = read_sample(question, repeats)
    finding = find(question, _counted(sample, choice) if choice else sample.kept)
    series = case.series
    planned = _planned(question, series)
    n = look.n or planned or len(repeats) // len(question.arms)
    doubts = obstacles_to(question, series, repeats, faults_seen_at(look, series.faults), n)
    if case.obstacles:
        doubts[:0] = case.obstacles
    set_aside: tuple[str, ...] = ()
    if len(sample.kept) < len(repeats):
        doubts += failures(question, repeats)
        doubts += losses(sample, case.experiment.table.max_excluded, choice)
        set_aside = tuple([repeat.id for repeat in repeats if repeat.outcome in SET_ASIDE])
    if series.origin == "measured" and are_unstated(question.metrics, repeats):
        finding = replace(finding, flags=(*finding.flags, UNSTATED))
    return _judgement(question, finding, doubts, set_aside, planned)


def _counted(sample: Sample, choice: Choice) -> list[Reading]:
    chosen = frozenset(choice)
    back = [reading for reading in sample.set_aside if reading.repeat.id in chosen]
    return sorted([*sample.kept, *back], key=lambda reading: reading.repeat.position)


def _planned(question: Question, series: Series) -> int | None:
    """Repeats registered, the smaller arm's."""
    if series.planned is None:
        return None
    least = None
    for arm in question.arms:
        count = series.planned.get(arm)
        if count is not None and (least is None or count < least):
            least = count
    return least


def _judgement(
    question: Question,
    finding: Finding,
    doubts: list[Doubt],
    set_aside: tuple[str, ...],
    planned: int | None,
) -> Judgement:
    if finding.doubt is not None:
        doubts.append(finding.doubt)
    reason, detail = (first_of(doubts) if doubts else None) or (None, finding.note)
    hidden = reason is _TASK_FAILED  # an interval of the survivors would say what the failures do not
    return Judgement(
        prediction=question.prediction,
        verdict=finding.verdict if reason is None else _INCONCLUSIVE,
        reason=reason,
        detail=detail,
        estimate=None if hidden else finding.estimate,
        interval=None if hidden else finding.interval,
        confidence=finding.level,
        method=finding.method,
        statistic=question.statistic,
        n=finding.n,
        planned=planned,
        excluded=len(set_aside),
        flags=finding.flags,
        repeats=finding.repeats,
        set_aside=set_aside,
    )


def _conclude_points(case: Case, repeats: Sequence[RecordedRepeat], look: Look, choice: Choice) -> Judgement:
    """Judge every point of a sweep: supported if each is, refuted if any is at alpha / k."""
    level = case.prediction.confidence if look.confidence is None else look.confidence
    points = [_point(case, arms) for arms in case.prediction.points]
    strict = 1 - (1 - level) / len(points)
    members = []
    for point in points:
        own = [repeat for repeat in repeats if repeat.arm in point.prediction.arms]
        members.append(
            (
                conclude(point, own, look._replace(confidence=level), choice),
                conclude(point, own, look._replace(confidence=strict), choice),
            )
        )
    doubt = first_of(case.obstacles)
    judgement = judge_all(case.prediction, members)
    return judgement if doubt is None else against(judgement, doubt)


def _point(case: Case, arms: tuple[str, ...]) -> Case:
    """The question at one point of a sweep, named by its values on the axes."""
    prediction, arm = case.prediction, case.experiment.arms[arms[0]]
    is_ratio = prediction.contrast is not None and prediction.contrast.operator == "/"
    at_point = replace(
        prediction,
        id=_name(prediction, arm),
        arms=arms,
        points=(),
        reduction=None,
        statistic="geometric-mean" if is_ratio else "mean",
    )
    return replace(case, prediction=at_point, obstacles=(), questions=len(prediction.points))


def _name(prediction: Prediction, arm: Arm) -> str:
    over = prediction.table.over or []
    axes = [over] if isinstance(over, str) else over
    values = ", ".join(f"{axis}={arm.point[axis]}" for axis in axes if axis in arm.point)
    return values or arm.name
