"""Acknowledging a review: a person says, with a reason, why what an audit found may stand.

An entry of the lock is of one finding, by what exactly that is about. It covers none that comes later.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from pytest_prereg.audit.auditing import audit_study
from pytest_prereg.audit.finding import Finding, Level, sound
from pytest_prereg.errors import Problem, StudyError, UsageError
from pytest_prereg.evidence.naming import shown, utc_now
from pytest_prereg.registry.lock_file import Acknowledgement
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.registry.lock import Lock


def acknowledge(state: StudyState, code: str, name: str, reason: str) -> tuple[Lock, list[Finding]]:
    """Return the study's lock with every open review of a code and an id acknowledged, and those reviews.

    Args:
        state: The study with its evidence and its history.
        code: Of the finding, such as ``PR208``.
        name: Id that the finding is about: of a prediction, or of an experiment.
        reason: Why it may stand, in the words of whoever has looked.

    Raises:
        UsageError: There is no reason (PR005).
        StudyError: Nothing of the kind is open (PR152).
    """
    code = code.upper()
    if not any(map(str.isalnum, reason)):
        message = (
            f"{quoted(code)} of {quoted(name)} needs a reason: whoever reads the verdict has to judge it"
        )
        raise UsageError(Problem(code="PR005", message=message, advice="Say it with --reason '…'"))
    findings = audit_study(state).findings
    chosen = [one for one in _open(findings) if (one.code, one.id) == (code, name)]
    if not chosen or state.lock is None:
        raise StudyError(_nothing(state, findings, code, name))
    entries = {one.about: _entry(one, sound(reason.strip())) for one in chosen}.values()
    return replace(state.lock, acknowledged=(*state.lock.acknowledged, *entries)), chosen


def _entry(finding: Finding, reason: str) -> Acknowledgement:
    return Acknowledgement(code=finding.code, id=finding.id, about=finding.about, reason=reason, at=utc_now())


def _open(findings: Iterable[Finding]) -> list[Finding]:
    return [one for one in findings if one.level is Level.REVIEW and one.acknowledged is None]


def _nothing(state: StudyState, findings: Iterable[Finding], code: str, name: str) -> Problem:
    """Return why there is nothing to acknowledge under a code and an id, and what is open."""
    findings = list(findings)
    same = [one for one in findings if (one.code, one.id) == (code, name)]
    what = f"{code} of {quoted(name)}"
    if any(one.level is Level.ERROR for one in same):
        message = f"{what} is an error, which nobody can acknowledge"
    elif seen := next((one.acknowledged for one in same if one.acknowledged is not None), None):
        message = f"{what} is acknowledged already: {seen}"
    elif same:
        message = f"{what} is a notice, which waits for nobody"
    else:
        message = f"there is no {what} to acknowledge"
    return Problem(
        code="PR152",
        path=shown(state.study.lock_path),
        message=f"{message}; {_what_is_open(findings)}",
        advice=next((one.advice for one in same if one.level is Level.ERROR), None) or "pytest-prereg audit",
    )


def _what_is_open(findings: Iterable[Finding]) -> str:
    counts = Counter((one.code, one.id) for one in _open(findings))
    names = [
        f"{code} {name}" + (f" ({count})" if count > 1 else "") for (code, name), count in counts.items()
    ]
    return f"open: {', '.join(names)}" if names else "nothing is open"
