"""A study at each of the two commits that a gate compares."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.audit.assess import StudyState
from pytest_prereg.audit.auditing import Audit
from pytest_prereg.audit.finding import Finding, sound
from pytest_prereg.errors import PreregError
from pytest_prereg.registry.lock import Lock
from pytest_prereg.registry.regions import describe
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
    wants: Mapping[str, str] = {}
    """What each prediction predicts, by id, as a verdict's line shows it."""
    claims: Mapping[str, str] = {}
    """In what words, by id."""
    findings: tuple[Finding, ...] = ()
    """What an audit says of it there."""
    unread: tuple[Finding, ...] = ()
    """Why it could not be looked at, if it was there."""
    left: tuple[Finding, ...] = ()
    """What became of other studies that were where this one was looked for."""

    @classmethod
    def of(cls, side: Side) -> Base:
        """Return what there was of a study that could be audited."""
        state = side.state
        return cls(
            lock=state.lock,
            table=state.study.table,
            wants={name: wants_of(state, name) for name in state.study.predictions},
            claims={name: sound(one.claim) for name, one in state.study.predictions.items()},
            findings=side.audit.findings,
        )

    def entry(self, name: str) -> LockEntry | None:
        """What the lock had of a prediction."""
        return self.lock.predictions.get(name) if self.lock else None


def wants_of(state: StudyState, name: str) -> str:
    """Return the region that a prediction predicts, for people; empty where that can't be told."""
    prediction = state.study.predictions[name]
    if prediction.members:
        return f"all of {', '.join(prediction.members)}"
    with suppress(PreregError):
        return describe(state.terms(prediction).predicts)
    return ""
