"""Acknowledging a review: a person says, with a reason, why what an audit found may stand.

An entry of the lock is of one finding, by what exactly that is about. It covers none that comes later.
"""

from __future__ import annotations

import shlex
from collections import Counter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from pytest_prereg.audit.auditing import audit_study
from pytest_prereg.audit.finding import Finding, Level, sound
from pytest_prereg.errors import Problem, StudyError, UsageError, one_line
from pytest_prereg.evidence.naming import shown, utc_now
from pytest_prereg.registry.lock_file import Acknowledgement
from pytest_prereg.registry.reasons import given_reason
from pytest_prereg.registry.refusals import quoted, suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.registry.lock import Lock


CODES = tuple(f"PR{number}" for number in range(201, 217))
"""Those of which a finding can be a review."""


def acknowledge(
    state: StudyState, code: str, name: str, reason: str, gated: Iterable[Finding] | None = None
) -> tuple[Lock, list[Finding]]:
    """Return the study's lock with every open review of a code and an id acknowledged, and those reviews.

    Args:
        state: The study with its evidence and its history.
        code: Of the finding, such as ``PR208``.
        name: Id that the finding is about: of a prediction, or of an experiment.
        reason: Why it may stand, in the words of whoever has looked.
        gated: What a gate finds, where that is asked instead of an audit.

    Raises:
        UsageError: There is no reason, or no such code (PR005), or nothing has the id (PR007).
        StudyError: Nothing of the kind is open (PR152).
    """
    code = code.upper()
    reason = given_reason(reason)
    findings = audit_study(state).findings if gated is None else tuple(gated)
    _check_code(code, name, findings)
    chosen = [one for one in _open(findings) if (one.code, one.id) == (code, name)]
    if not any(name in known for known in _known(state)) and all(one.id != name for one in findings):
        raise UsageError(_unknown(state, findings, name))
    if not chosen or state.lock is None:
        raise StudyError(_nothing(state, findings, code, name))
    entries = {one.about: _entry(one, sound(reason)) for one in chosen}.values()
    return replace(state.lock, acknowledged=(*state.lock.acknowledged, *entries)), chosen


def _known(state: StudyState) -> Iterator[Iterable[str]]:
    yield from (state.study.predictions, state.study.experiments, state.files)
    yield from [state.lock.predictions] if state.lock else []


def _check_code(code: str, name: str, findings: Iterable[Finding]) -> None:
    if code in CODES or any(one.code == code for one in findings):
        return
    if name.upper() in CODES:
        message = f"the code comes first, and then the id: {quoted(name)} is a code"
        advice = f"pytest-prereg acknowledge {name.upper()} {shlex.quote(code.lower())} --reason '…'"
    else:
        message = f"nothing that is found has the code {quoted(code)}; there are {CODES[0]} to {CODES[-1]}"
        advice = "What is open, with its code: pytest-prereg audit"
    raise UsageError(Problem(code="PR005", message=message, advice=advice))


def _unknown(state: StudyState, findings: Iterable[Finding], name: str) -> Problem:
    hint = suggestion(name, state.study.predictions, "there are")
    message = f"there is no prediction or experiment {quoted(name)}{hint}; {_what_is_open(findings)}"
    return Problem(code="PR007", path=shown(state.study.path), message=message)


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
        message = f"{what} is acknowledged already: {one_line(seen)}"
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
