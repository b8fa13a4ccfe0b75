"""A study at each of the two commits that a gate compares."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.audit.assess import StudyState
from pytest_prereg.audit.auditing import Audit
from pytest_prereg.audit.finding import Finding
from pytest_prereg.registry.lock import Lock
from pytest_prereg.registry.tables import StudyTable

if TYPE_CHECKING:
    from pytest_prereg.registry.lock import LockEntry


class Side(msgspec.Struct, kw_only=True, frozen=True):
    """A study as a commit has it, and what an audit says of it there."""

    state: StudyState
    audit: Audit


class Base(msgspec.Struct, kw_only=True, frozen=True):
    """What there was of a study at the merge base."""

    commit: str = ""
    lock: Lock | None = None
    table: StudyTable | None = None
    findings: tuple[Finding, ...] = ()
    """What an audit says of it there."""
    unread: tuple[Finding, ...] = ()
    """Why it could not be looked at, if it was there."""
    left: tuple[Finding, ...] = ()
    """What became of other studies that were where this one was looked for."""

    @classmethod
    def of(cls, side: Side) -> Base:
        """Return what there was of a study that could be audited."""
        return cls(lock=side.state.lock, table=side.state.study.table, findings=side.audit.findings)

    def entry(self, name: str) -> LockEntry | None:
        """What the lock had of a prediction."""
        return self.lock.predictions.get(name) if self.lock else None
