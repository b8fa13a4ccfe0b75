"""Versions of the lock that can't be read: nobody sees what they said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.audit.finding import Finding, Level
from pytest_prereg.audit.findings.telling import acknowledging, in_commit
from pytest_prereg.audit.history.past import NoPast
from pytest_prereg.evidence.naming import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.history.chronicle import Unread

_SHORT = 8


def unread(state: StudyState) -> Iterator[Finding]:
    """Yield a finding for each version that can't be read; the next one is compared with the one before.

    A notice where nothing was known yet, else a review: what was decided by then could be hidden by it.
    """
    for one in state.chronicle.unread:
        what = f"the lock can't be read{in_commit(one.commit)}: {one.problem.message}"
        decided = _decided(state, one)
        yield Finding(
            code=one.problem.code,
            id=state.study.id,
            level=Level.REVIEW if decided else Level.NOTICE,
            message=f"{what}; {decided}" if decided else what,
            path=shown(state.study.lock_path),
            commit=one.commit,
            about=f"unread {one.blob[:_SHORT]}",
            advice=f"Say how it came: {acknowledging(one.problem.code, state.study.id)}" if decided else None,
        )


def _decided(state: StudyState, version: Unread) -> str | None:
    """Return what was there already when the lock could not be read, in words."""
    entries = [entry for lock in version.before for entry in lock.predictions.values()]
    if any(entry.withdrawal is not None for entry in entries):
        return "by then something was withdrawn"
    if any(entry.verdict is not None for entry in entries):
        return "by then a verdict was recorded"
    return "there was evidence while it was so" if _has_evidence(state, version) else None


def _has_evidence(state: StudyState, version: Unread) -> bool:
    bound = [one for several in state.timeline.bound.values() for one in several]
    came = {commit for one in bound for commit in one.commits}
    is_now = not isinstance(state.past, NoPast) and state.past.head in version.commits
    return (is_now and bool(bound)) or any(
        state.timeline.leads(commit, later) for commit in came for later in version.commits
    )
