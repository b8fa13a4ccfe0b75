"""The verdict on one prediction from one complete series: where the interval lies, and what may forbid it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.evidence.model import Outcome
from pytest_prereg.judge.faults import too_many_faults
from pytest_prereg.judge.finders import find
from pytest_prereg.judge.findings import plural
from pytest_prereg.judge.instruments import UNSTATED, are_unstated
from pytest_prereg.judge.model import Judgement, Reason, Verdict
from pytest_prereg.judge.question import ask
from pytest_prereg.judge.samples import SET_ASIDE, read_sample
from pytest_prereg.judge.scope import out_of_scope

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_prereg.evidence.model import RecordedRepeat, Series
    from pytest_prereg.judge.findings import Doubt, Finding
    from pytest_prereg.judge.question import Question
    from pytest_prereg.judge.samples import Reading, Sample
    from pytest_prereg.registry.model import Experiment, Prediction
    from pytest_prereg.registry.regions import Region

_NO_CONSTANTS: Mapping[str, float] = {}
_ORDER = {reason: rank for rank, reason in enumerate(Reason)}


def judge(
    prediction: Prediction,
    experiment: Experiment,
    series: Series,
    *,
    predicts: Region,
    falsifier: Region,
    scale: float = 1.0,
    constants: Mapping[str, float] = _NO_CONSTANTS,
    obstacles: Sequence[Doubt] = (),
) -> Judgement:
    """Judge ``prediction`` from a complete ``series`` of its ``experiment``.

    Args:
        prediction: What was claimed.
        experiment: The experiment as registered.
        series: Settled repeats; the caller has seen to it that the series is complete.
        predicts: The predicted region, in the unit shown.
        falsifier: The falsifying region, in the unit shown.
        scale: Factor from the quantity's natural unit to the one shown.
        constants: Values of the study's constants.
        obstacles: What is known against a verdict from outside the series: its integrity, what it requires,
            the calibration of its instruments, the conditions it was registered for.

    Returns:
        The verdict with its numbers. They are shown with every reason for which they have a meaning.

    Raises:
        JudgeError: A repeat that counts has no finite value, or two repeats claim one place in a block.
    """
    question = ask(
        prediction, experiment, predicts=predicts, falsifier=falsifier, scale=scale, constants=constants
    )
    repeats = [repeat for repeat in series.repeats if repeat.arm in question.arms]
    repeats.sort(key=_position)
    sample = read_sample(question, repeats)
    finding = find(question, sample.kept)
    planned = _planned(question, series)
    obstacle = _obstacle(question, series, repeats, planned, obstacles)
    if obstacle is None and (sample.set_aside or sample.without_value):
        obstacle = _exclusion(question, sample, finding, experiment.table.max_excluded)
    unstated = series.origin == "measured" and are_unstated(question.metrics, repeats)
    if unstated:
        finding = msgspec.structs.replace(finding, flags=(*finding.flags, UNSTATED))
    return _judgement(question, finding, obstacle, repeats, planned)


def _position(repeat: RecordedRepeat) -> int:
    return repeat.position


def _rank(doubt: Doubt) -> int:
    return _ORDER[doubt[0]]


def _planned(question: Question, series: Series) -> int | None:
    """Repeats registered, the smaller arm's."""
    if series.planned is None:
        return None
    counts = [series.planned[arm] for arm in question.arms if arm in series.planned]
    return min(counts, default=None)


def _obstacle(
    question: Question,
    series: Series,
    repeats: Sequence[RecordedRepeat],
    planned: int | None,
    obstacles: Sequence[Doubt],
) -> Doubt | None:
    """What keeps the series from deciding, whatever its values are."""
    if obstacles:
        return min(obstacles, key=_rank)
    if differing := out_of_scope(question, repeats):
        return Reason.SCOPE, differing
    n = planned if planned is not None else len(repeats) // len(question.arms)
    if faults := too_many_faults(series.faults, question.arms, n):
        return (
            Reason.INFRASTRUCTURE,
            f"{plural(faults, 'attempt')} lost to infrastructure, of {n} planned repeats",
        )
    failed = [repeat.id for repeat in repeats if repeat.outcome is Outcome.TASK_FAILED]
    if failed and question.statistic != "proportion":
        return (
            Reason.TASK_FAILED,
            f"{plural(len(failed), 'repeat')} failed, first {failed[0]}; none is dropped",
        )
    return None


def _exclusion(question: Question, sample: Sample, finding: Finding, allowed: int) -> Doubt | None:
    """Why repeats that were set aside forbid a verdict: it hangs on them, or too many have no value."""
    lost = len(sample.without_value)
    if lost > allowed:
        detail = f"{plural(lost, 'repeat')} set aside without a value, first {sample.without_value[0].id}"
        return Reason.EXCLUDED, f"{detail}; max-excluded is {allowed}"
    for readings, names in _with_set_aside(sample):
        other = find(question, readings).verdict
        if other is not finding.verdict:
            return Reason.EXCLUDED, f"{finding.verdict} without {names}, {other} with it"
    return None


def _with_set_aside(sample: Sample) -> Iterator[tuple[list[Reading], str]]:
    """The kept readings with each that was set aside, and with all of them."""
    aside = sample.set_aside
    choices = [[reading] for reading in aside] + ([aside] if len(aside) > 1 else [])
    for chosen in choices:
        readings = sorted([*sample.kept, *chosen], key=lambda reading: reading.repeat.position)
        yield readings, " and ".join(reading.repeat.id for reading in chosen)


def _judgement(
    question: Question,
    finding: Finding,
    obstacle: Doubt | None,
    repeats: Sequence[RecordedRepeat],
    planned: int | None,
) -> Judgement:
    reason, detail = obstacle or finding.doubt or (None, finding.note)
    hidden = reason is Reason.TASK_FAILED  # an interval of the survivors would say what the failures do not
    return Judgement(
        prediction=question.prediction,
        verdict=finding.verdict if reason is None else Verdict.INCONCLUSIVE,
        reason=reason,
        detail=detail,
        estimate=None if hidden else finding.estimate,
        interval=None if hidden else finding.interval,
        confidence=finding.level,
        method=finding.method,
        statistic=question.statistic,
        n=finding.n,
        planned=planned,
        excluded=sum(repeat.outcome in SET_ASIDE for repeat in repeats),
        flags=finding.flags,
        repeats=finding.repeats,
    )
