"""Whether the numbers of a prediction can be quoted: only those of a recorded verdict that still follows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.errors import one_line
from pytest_prereg.registry.refusals import RefusedError, quoted

if TYPE_CHECKING:
    from pytest_prereg.audit.standing import Assessment
    from pytest_prereg.errors import Problem

CODE = "PR210"
RECORD = "Record, then write: pytest --prereg --prereg-verify --prereg-record; pytest-prereg cite"
VOIDED = "voided"
"""The flag of a verdict whose series its author declared broken."""


def obstacle(assessment: Assessment, *, exploratory: bool) -> RefusedError | None:
    """Return why the record of a prediction does not stand, so that nothing of it can be quoted, or ``None``.

    Args:
        assessment: Where the prediction stands.
        exploratory: Whether the citation says that it quotes what is exploratory.
    """
    name, entry = quoted(assessment.prediction.id), assessment.entry
    if entry is not None and entry.withdrawal is not None:
        return RefusedError(
            CODE, f"{name} is withdrawn: {one_line(entry.withdrawal.reason)}", "Quote it no more."
        )
    if assessment.problems:
        return _no_longer(assessment.problems[0])
    if assessment.order.removed:
        gone = assessment.order.removed[0]
        return RefusedError(CODE, f"evidence of {name} was committed, and is gone or altered: {gone}")
    if assessment.judgement is None:
        return _pending(assessment)
    return _exploratory(assessment, said=exploratory) or _unrecorded(assessment)


def voided(assessment: Assessment) -> RefusedError | None:
    """Return why the numbers of a prediction can't be quoted, where its author declared its series broken."""
    if VOIDED not in assessment.flags:
        return None
    advice = "What a prediction that follows it measures, with data of its own, can be quoted."
    name = quoted(assessment.prediction.id)
    return RefusedError(CODE, f"the series that {name} rests on is voided", advice)


def _no_longer(problem: Problem) -> RefusedError:
    advice = RECORD if problem.code == "PR211" else problem.advice
    return RefusedError(
        CODE, f"the recorded verdict no longer follows: {problem.code}: {problem.message}", advice
    )


def _pending(assessment: Assessment) -> RefusedError:
    name = quoted(assessment.prediction.id)
    if assessment.prediction.table.kind == "guard" and assessment.entry and assessment.entry.verdict:
        message = f"the recorded verdict of {name} is of an earlier version of its subject"
        return RefusedError(CODE, message, "Measure it as it is now: pytest --prereg --prereg-record")
    return RefusedError(CODE, f"{name} is pending: {assessment.pending or 'not every repeat is in'}")


def _exploratory(assessment: Assessment, *, said: bool) -> RefusedError | None:
    name = quoted(assessment.prediction.id)
    if assessment.standing == "exploratory" and not said:
        advice = (
            f"To quote it all the same, say so: <!-- prereg: {assessment.prediction.id}.… exploratory -->"
        )
        return RefusedError(CODE, f"{name} is exploratory: {assessment.order.grade.value}", advice)
    if said and assessment.standing != "exploratory":
        return RefusedError(CODE, f'{name} is {assessment.standing}; take the option "exploratory" away')
    return None


def _unrecorded(assessment: Assessment) -> RefusedError | None:
    """Say that a verdict is not in the lock; one that is exploratory never is."""
    if assessment.standing == "exploratory":
        return None
    entry = assessment.entry
    if entry is not None and assessment.recorded is not None and entry.series == assessment.series:
        return None
    return RefusedError(CODE, f"the verdict on {quoted(assessment.prediction.id)} is not recorded", RECORD)
