"""How findings about the lock's history are worded."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from pytest_prereg.audit.finding import Finding, Level
from pytest_prereg.audit.findings.places import place_of
from pytest_prereg.audit.recorded import short
from pytest_prereg.evidence.naming import shown

if TYPE_CHECKING:
    from pytest_prereg.audit.assess import StudyState

__all__ = ["acknowledging", "committing", "in_commit", "short", "told", "waits_for_commit"]


def acknowledging(code: str, name: str, base: str | None = None) -> str:
    """Return the command that acknowledges a review, for a shell; with a base one that only a gate finds."""
    where = f"--base {shlex.quote(base)} " if base is not None else ""
    return f"pytest-prereg acknowledge {code} {shlex.quote(name)} {where}--reason '…'"


def committing(state: StudyState) -> str:
    """Return the command that commits the prediction file and its lock."""
    files = (shlex.quote(shown(path)) for path in (state.study.path, state.study.lock_path))
    return f"git add {' '.join(files)} && git commit -m {shlex.quote(f'Register {state.study.id}')}"


def waits_for_commit(state: StudyState, name: str) -> bool:
    """Whether a prediction is registered as it stands in the lock on disk, and in no commit up to HEAD.

    Raises:
        StudyError: HEAD's lock can't be read.
    """
    entry = state.lock.predictions.get(name) if state.lock else None
    if entry is None or entry.digest != state.digests.get(name):
        return False
    return state.repository is not None and (
        state.head_lock is None or name not in state.head_lock.predictions
    )


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
