"""The verdict on one prediction from one series: where the interval lies, and what may forbid it."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from pytest_prereg.judge.conclusions import Case, conclude
from pytest_prereg.judge.exclusions import NONE, alternatives, by_author, choices, disagreement, when
from pytest_prereg.judge.model import Judgement, Reason, Verdict
from pytest_prereg.judge.obstacles import against
from pytest_prereg.judge.plain import judge_plain
from pytest_prereg.judge.question import asked
from pytest_prereg.judge.stopping import Look, course_of, looks_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_prereg.evidence.model import RecordedRepeat, Series
    from pytest_prereg.judge.findings import Doubt
    from pytest_prereg.judge.stopping import Course
    from pytest_prereg.registry.model import Experiment, Prediction, Stopping
    from pytest_prereg.registry.regions import Region

_NO_CONSTANTS: Mapping[str, float] = {}
_AT_THE_END = Look(None)
_position = attrgetter("position")


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
    confidence: float | None = None,
) -> Judgement:
    """Judge ``prediction`` from a ``series`` of its ``experiment`` that is at its end.

    Under a stopping rule the first decisive look is final, and what came after it changes nothing. A series
    that ended before any look decided is inconclusive, ``n-too-small``.

    Args:
        prediction: What was claimed.
        experiment: The experiment as registered.
        series: Settled repeats; the caller has seen to it that no more will come.
        predicts: The predicted region, in the unit shown.
        falsifier: The falsifying region, in the unit shown.
        scale: Factor from the quantity's natural unit to the one shown.
        constants: Values of the study's constants.
        obstacles: What is known against a verdict from outside the series: its integrity, what it requires,
            the calibration of its instruments, the conditions it was registered for.
        confidence: Confidence in place of the registered one, for families and conjunctions.

    Returns:
        The verdict with its numbers. They are shown with every reason for which they have a meaning.

    Raises:
        JudgeError: A repeat that counts has no finite value, or two repeats claim one place in a block.
    """
    if not obstacles and experiment.stopping is None:
        question = asked(
            prediction,
            experiment,
            predicts=predicts,
            falsifier=falsifier,
            scale=scale,
            constants=constants,
            confidence=confidence,
        )
        if question.is_plain and (judgement := judge_plain(question, series)):
            return judgement
    case = Case(prediction, experiment, series, predicts, falsifier, scale, constants, obstacles)
    repeats = _repeats_of(prediction, series)
    if experiment.stopping is None:
        return _weighed(case, repeats, _AT_THE_END if confidence is None else Look(confidence), {})
    return _stopped(case, _course(case, repeats), experiment.stopping, confidence)[0]


def is_final(
    prediction: Prediction,
    experiment: Experiment,
    series: Series,
    *,
    predicts: Region,
    falsifier: Region,
    scale: float = 1.0,
    constants: Mapping[str, float] = _NO_CONSTANTS,
    obstacles: Sequence[Doubt] = (),
    confidence: float | None = None,
) -> bool:
    """Whether no further repeat could change the verdict: a look decided, or every planned repeat is there.

    Takes what :func:`judge` takes, of a series that may still grow, and raises what that raises.
    """
    case = Case(prediction, experiment, series, predicts, falsifier, scale, constants, obstacles)
    if experiment.stopping is None and _planned_by_arm(case) is None:
        return series.complete
    course = _course(case, _repeats_of(prediction, series))
    if course.is_complete or experiment.stopping is None:
        return course.is_complete
    return _stopped(case, course, experiment.stopping, confidence)[1]


def _repeats_of(prediction: Prediction, series: Series) -> list[RecordedRepeat]:
    """Return the settled repeats of the arms used, in run order, without any beyond those planned."""
    arms, planned = prediction.arms, series.planned or {}
    repeats = [
        repeat
        for repeat in series.repeats
        if repeat.arm in arms and repeat.index <= planned.get(repeat.arm, repeat.index)
    ]
    repeats.sort(key=_position)
    return repeats


def _planned_by_arm(case: Case) -> Mapping[str, int] | None:
    planned = case.series.planned or case.experiment.planned
    return planned if planned and all(arm in planned for arm in case.prediction.arms) else None


def _course(case: Case, repeats: list[RecordedRepeat]) -> Course:
    planned = _planned_by_arm(case) or dict.fromkeys(case.prediction.arms, len(repeats))
    paired = case.experiment.pairing == "block" and len(case.prediction.arms) > 1
    return course_of(repeats, case.prediction.arms, planned, paired=paired)


def _stopped(
    case: Case, course: Course, stopping: Stopping, confidence: float | None
) -> tuple[Judgement, bool]:
    """Return the judgement at the first decisive look, else at the last one reached; and if that is final."""
    level = case.prediction.confidence if confidence is None else confidence
    looks = list(looks_of(stopping, course.planned, level))
    reached = [look for look in looks if look.n is not None and look.n <= course.settled]
    earlier: dict[Verdict, str] = {}
    judgement = None
    for look in reached:
        judgement = _weighed(case, course.seen_at(look), look, earlier)
        if judgement.verdict is not Verdict.INCONCLUSIVE:
            return _told(judgement, look), True
    if judgement is not None and len(reached) == len(looks):
        return judgement, True
    if judgement is None:
        judgement = _weighed(case, course.repeats, looks[0], earlier)
    return _cut_short(judgement, course, looks[len(reached)]), course.is_complete


def _told(judgement: Judgement, look: Look) -> Judgement:
    """Say when it was decided."""
    words = f"decided {look.words}"
    return replace(judgement, detail=f"{words}; {judgement.detail}" if judgement.detail else words)


def _cut_short(judgement: Judgement, course: Course, due: Look) -> Judgement:
    """Say of a series that ended before a look decided what is missing for the next one."""
    missing = f"the series ended after {course.settled} of {course.planned} repeats, before it was decided"
    return against(judgement, (Reason.N_TOO_SMALL, f"{missing}; the next look is {due.words}"))


def _weighed(
    case: Case, repeats: Sequence[RecordedRepeat], look: Look, earlier: dict[Verdict, str]
) -> Judgement:
    """Judge with and without what was set aside; ``earlier`` keeps how its author could have ended it."""
    judgement = conclude(case, repeats, look, NONE)
    if not judgement.set_aside and not earlier:
        return judgement
    own = by_author(repeats)
    others = [(choice, conclude(case, repeats, look, choice)) for choice in choices(judgement.set_aside, own)]
    weighed = [(choice, other) for choice, other in others if own.issuperset(choice)]
    doubt = disagreement(judgement, weighed, earlier)
    for choice, other in ((NONE, judgement), *weighed):
        if other.verdict is not Verdict.INCONCLUSIVE:
            earlier.setdefault(other.verdict, when(look.words, choice))
    judgement = replace(judgement, alternatives=alternatives(others))
    return judgement if doubt is None else against(judgement, doubt)
