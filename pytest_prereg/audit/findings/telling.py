"""How findings about the lock's history are worded."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from pytest_prereg.audit.finding import Finding, Level
from pytest_prereg.audit.findings.places import place_of
from pytest_prereg.audit.recorded import short

if TYPE_CHECKING:
    from pytest_prereg.audit.assess import StudyState

__all__ = ["acknowledging", "in_commit", "short", "told"]


def acknowledging(code: str, name: str) -> str:
    """Return the command that acknowledges a review, for a shell."""
    return f"pytest-prereg acknowledge {code} {shlex.quote(name)} --reason '…'"


def in_commit(commit: str | None) -> str:
    """Return where something was done, to be put directly behind what was."""
    return f" in {commit[:8]}" if commit is not None else ", and that is not committed yet"


def told(
    state: StudyState,
    code: str,
    name: str,
    level: Level,
    message: str,
    *,
    commit: str | None = None,
    about: str = "",
    advice: str | None = None,
    acknowledged: str | None = None,
) -> Finding:
    """Return a finding about a prediction, or an experiment, at its line."""
    path, line = place_of(state, name)
    return Finding(
        code=code,
        id=name,
        level=level,
        message=message,
        path=path,
        line=line,
        commit=commit,
        about=about,
        advice=advice,
        acknowledged=acknowledged,
    )
