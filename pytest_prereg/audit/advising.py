"""What to do about findings, where that depends on what else was found, or on what git can do here.

A finder knows its own finding. Only who sees all of them knows that one says *restore it* and another one
*amend it*, and a command that can't work is worse than none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from pytest_prereg.audit.finding import Finding, Level
from pytest_prereg.audit.taking_back import restoring

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_prereg.audit.assess import StudyState

_WEAKENED = "PR209"
_UNSHALLOW = "git fetch --unshallow"
_ANEW = "What is expected now is another claim: withdraw this one, and register that under an id of its own."


def advised(state: StudyState, findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings with advice that can be followed, and that no other finding contradicts.

    Once there are data, what was made easier is restored: nobody is told to amend it.
    """
    several = [_feasible(state, one) for one in findings]
    edited = {one.id for one in several if _is_edited(one)}
    if not edited:
        return several
    command = restoring(state, edited)
    return [_to_restore(one, command) if one.id in edited else one for one in several]


def _feasible(state: StudyState, finding: Finding) -> Finding:
    """Return a finding that asks for more history only where git can fetch more."""
    if not finding.advice or _UNSHALLOW not in finding.advice:
        return finding
    if state.repository is None:
        advice = "Nothing tells what came first without a repository. To begin one: git init"
    elif state.repository.shallow:
        return finding
    else:
        advice = "Nothing more can be fetched here: ask where the whole history is."
    return replace(finding, advice=advice)


def _is_edited(finding: Finding) -> bool:
    """Whether the text was made easier than what is registered, and nobody has amended it."""
    is_error = finding.level is Level.ERROR and not finding.untold
    return finding.code == _WEAKENED and is_error and finding.commit is None


def _to_restore(finding: Finding, command: str | None) -> Finding:
    asks = " amend " in (finding.advice or "") or finding.code == _WEAKENED
    if finding.level is not Level.ERROR or not asks:
        return finding
    restore = f"Restore it: {command}" if command else "Restore it as it is registered."
    return replace(finding, advice=f"{restore}\n{_ANEW}" if finding.code == _WEAKENED else restore)
