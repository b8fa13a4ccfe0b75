"""Guards: judged by the first series of each version of their subject, refuted only by two."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from pytest_prereg.audit.conditions import doubts
from pytest_prereg.audit.deciding import binding, current_subject, eligible, is_guard, of_subject
from pytest_prereg.audit.judging import judged
from pytest_prereg.audit.standing import Found, Version
from pytest_prereg.errors import JudgeError
from pytest_prereg.evidence.series import next_number
from pytest_prereg.judge.model import Judgement, Reason, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.evidence.model import Series
    from pytest_prereg.registry.model import Prediction

NOT_MEASURED = "not measured for this version of its subject"


def found_for(state: StudyState, guard: Prediction, subject: str | None) -> Found:
    """Return what is known of a guard for one version of its subject."""
    several = binding(state, guard, of_subject(state, guard.experiment, subject))
    if not several:
        return Found(pending=NOT_MEASURED)
    first = _judged(state, guard, several[0])
    if first.verdict is not Verdict.REFUTED:
        return Found(judgement=first, used=(several[0],))
    if len(several) == 1:
        number = next_number(state.series[guard.experiment])
        return Found(
            pending=f"refuted once, by series {several[0].number}, to be confirmed by series {number}"
        )
    return Found(judgement=_together(state, guard, first, several[:2]), used=tuple(several[:2]))


def wants_confirmation(state: StudyState, prediction: Prediction) -> bool:
    """Whether a guard was refuted by the only series of its subject as it is now: then one more is due.

    Also where its author has said something against that series since.
    """
    if not is_guard(prediction):
        return False
    measured = state.as_measured
    several = eligible(measured, prediction, prediction.experiment)
    return len(several) == 1 and _judged(measured, prediction, several[0]).verdict is Verdict.REFUTED


def history(state: StudyState, guard: Prediction) -> tuple[Version, ...]:
    """Return what every complete series of a guard says by itself, in order, if it can be judged."""
    complete = [one for one in state.series[guard.experiment] if one.complete and one.subject is not None]
    versions = []
    for one in binding(state, guard, complete):
        with suppress(JudgeError):  # its own version is an error as long as it is the one of now
            verdict = _judged(state, guard, one).verdict
            versions.append(Version(subject=one.subject, series=one.number, verdict=verdict))
    return tuple(versions)


def is_current(state: StudyState, guard: Prediction, series: Series) -> bool:
    """Whether a series measured the guard's subject as it is now."""
    return series.subject == current_subject(state, guard.experiment)


def _judged(state: StudyState, guard: Prediction, series: Series) -> Judgement:
    basis = {guard.experiment: series}
    return judged(state, guard, basis, lambda one, rests_on: doubts(state, one, rests_on))


def _together(state: StudyState, guard: Prediction, first: Judgement, several: Sequence[Series]) -> Judgement:
    """Return a refutation with what a second series says of it; the numbers are the first one's."""
    second = _judged(state, guard, several[1])
    numbers = [series.number for series in several]
    both = replace(
        first,
        repeats=(*first.repeats, *second.repeats),
        set_aside=(*first.set_aside, *second.set_aside),
    )
    if second.verdict is Verdict.REFUTED:
        return replace(both, detail=f"confirmed by series {numbers[1]}")
    if second.reason is Reason.EXCLUDED:
        hangs = (
            f"series {numbers[0]} refuted, series {numbers[1]} hangs on what was set aside: {second.detail}"
        )
        return replace(both, verdict=Verdict.INCONCLUSIVE, reason=Reason.EXCLUDED, detail=hangs)
    said = f"series {numbers[0]} refuted, series {numbers[1]} did not confirm it ({second.verdict})"
    return replace(both, verdict=Verdict.INCONCLUSIVE, reason=Reason.STRADDLES, detail=said)
