"""Excluding a repeat and voiding a series: what may be said against evidence, and what it changes.

Both are entries of the lock, with a reason; the evidence stays. Neither lets anybody choose a verdict: with
and without what was excluded it has to be the same, and voiding takes support away, never a refutation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, get_args

from msgspec.structs import replace

from pytest_prereg.audit.exclusions import (
    EXCLUDABLE,
    REFUSED,
    name_of,
    series_in,
    unknown_repeat,
    unknown_series,
)
from pytest_prereg.errors import PreregError, Problem, StudyError, UsageError, one_line
from pytest_prereg.evidence.model import RERUN, Outcome
from pytest_prereg.evidence.naming import shown, utc_now
from pytest_prereg.registry.lock_file import Cause, Exclusion, Void
from pytest_prereg.registry.reasons import given_reason
from pytest_prereg.registry.refusals import quoted, suggestion

if TYPE_CHECKING:
    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.evidence.files import Attempt
    from pytest_prereg.judge.model import Judgement
    from pytest_prereg.registry.lock import Lock
    from pytest_prereg.registry.model import Prediction

NUMBERS = ("verdict", "reason", "estimate", "interval", "n")
"""What a lock records of a judgement."""


class Effect(NamedTuple):
    """A prediction whose verdict or numbers are others than before."""

    prediction: str
    before: Judgement | None
    """``None`` while it is pending, or can't be judged."""
    after: Judgement | None


def exclude(state: StudyState, repeat: str, reason: str, cause: str) -> Lock:
    """Return the study's lock with a repeat excluded.

    Args:
        state: The study with its evidence.
        repeat: Its id, ``experiment/series/arm/index``.
        reason: Why, in the author's words.
        cause: What failed: ``instrument``, ``subject``, ``tool`` or ``service``.

    Raises:
        UsageError: There is no reason, or the cause is none of those (PR005); no such repeat (PR007).
        StudyError: It may not be excluded (PR150).
    """
    lock = _lock_of(state, repeat, reason)
    causes: tuple[Cause, ...] = get_args(Cause)
    chosen = next((one for one in causes if one == cause), None)
    if chosen is None:
        message = f"{quoted(cause)} is no cause{suggestion(cause, causes, 'what failed is one of')}"
        raise UsageError(Problem(code="PR005", message=message))
    if problem := _not_excludable(state, lock, repeat):
        raise UsageError(problem) if problem.code == "PR007" else StudyError(problem)
    entry = Exclusion(repeat=repeat, reason=reason.strip(), cause=chosen, at=utc_now())
    return replace(lock, exclusions=(*lock.exclusions, entry))


def void(state: StudyState, series: str, reason: str) -> Lock:
    """Return the study's lock with a series voided.

    Args:
        state: The study with its evidence.
        series: ``experiment/number``.
        reason: Why, in the author's words.

    Raises:
        UsageError: There is no reason (PR005), or no such series (PR007).
        StudyError: It is voided already (PR150).
    """
    lock = _lock_of(state, series, reason)
    known = {name_of(one) for several in state.series.values() for one in several}
    if series not in known:
        wrong = unknown_series(series, {name_of(one): one for own in state.series.values() for one in own})
        raise UsageError(Problem(code="PR007", message=wrong or ""))
    if before := next((one for one in lock.voided if one.series == series), None):
        message = f"{quoted(series)} is voided already: {one_line(before.reason)}"
        raise StudyError(Problem(code="PR150", path=shown(state.study.lock_path), message=message))
    entry = Void(series=series, reason=reason.strip(), at=utc_now())
    return replace(lock, voided=(*lock.voided, entry))


def effect_of(before: StudyState, after: StudyState) -> list[Effect]:
    """Return every prediction whose verdict or numbers differ between two states of a study, in file order.

    ``after`` is ``before.with_lock(lock)``, with what :func:`exclude` or :func:`void` returned.
    """
    found = (
        Effect(name, _judgement(before, prediction), _judgement(after, prediction))
        for name, prediction in before.study.predictions.items()
    )
    return [effect for effect in found if _numbers(effect.before) != _numbers(effect.after)]


def _judgement(state: StudyState, prediction: Prediction) -> Judgement | None:
    try:
        return state.assess(prediction).judgement
    except PreregError:
        return None


def _numbers(judgement: Judgement | None) -> tuple[object, ...]:
    return () if judgement is None else tuple(getattr(judgement, name) for name in NUMBERS)


def _lock_of(state: StudyState, name: str, reason: str) -> Lock:
    given_reason(reason)
    if state.lock is None:
        message = f"nothing is registered yet, so there is nothing to say against {quoted(name)}"
        raise StudyError(Problem(code="PR007", path=shown(state.study.lock_path), message=message))
    return state.lock


def _not_excludable(state: StudyState, lock: Lock, repeat: str) -> Problem | None:
    path = shown(state.study.lock_path)
    if before := next((one for one in lock.exclusions if one.repeat == repeat), None):
        message = f"{quoted(repeat)} is excluded already: {one_line(before.reason)}"
        return Problem(code="PR150", path=path, message=message)
    known = {name_of(one): one for several in state.as_recorded.values() for one in several}
    series = known.get(series_in(repeat))
    found = next((one for one in series.repeats if one.id == repeat), None) if series else None
    if found is None:
        unjudged = _unjudged(state, repeat)
        message = unjudged or unknown_repeat(repeat, known)
        return Problem(code="PR150" if unjudged else "PR007", message=message)
    if found.outcome in EXCLUDABLE and not found.by_author:
        return None
    said = "is excluded already" if found.by_author else REFUSED[found.outcome]
    advice = "It counts as what it is; a successor (follows) with its own repeats is the way on."
    return Problem(code="PR150", message=f"{quoted(repeat)} {said}", advice=advice)


def _unjudged(state: StudyState, repeat: str) -> str | None:
    """Why a repeat that was recorded has no say in any verdict: then there is nothing to exclude."""
    for file, attempt in _attempts(state, repeat):
        if attempt.outcome is Outcome.WARMUP:
            return f"{quoted(repeat)} is a warm-up, which is never judged"
        if file == "pilot" or attempt.outcome is Outcome.PILOT:
            return f"{quoted(repeat)} is a pilot, which is never judged"
        if attempt.outcome in RERUN:
            return f"{quoted(repeat)} was lost to infrastructure, and is run again"
        return f"{quoted(repeat)} is beyond those that were registered, and is left out as it is"
    return None


def _attempts(state: StudyState, repeat: str) -> list[tuple[str, Attempt]]:
    return [
        (file.header.origin, attempt)
        for file in state.files.get(repeat.partition("/")[0], [])
        if file.header is not None
        for attempt in file.attempts
        if attempt.repeat == repeat
    ]
