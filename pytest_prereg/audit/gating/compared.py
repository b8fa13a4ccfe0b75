"""Predictions at both ends of a pull request: what was recorded, what is, and since when it is registered."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from pytest_prereg.audit.audited import Audited, Came
from pytest_prereg.audit.auditing import recorded
from pytest_prereg.audit.gating.places import registered_in
from pytest_prereg.audit.gating.sides import wants_of
from pytest_prereg.audit.history.past import Past
from pytest_prereg.audit.recordable import is_recordable, recorded_entry
from pytest_prereg.errors import PreregError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.gating.ends import Ends
    from pytest_prereg.audit.gating.sequence import Sequences
    from pytest_prereg.audit.gating.sides import Base, Side
    from pytest_prereg.registry.lock import LockEntry


def compared(head: Side, base: Base, ends: Ends, sequences: Sequences) -> tuple[Audited, ...]:
    """Return where each prediction stands at head, beside what the lock at the base had of it.

    One that only the base has is among them, as removed.

    Args:
        head: The study at the later commit.
        base: What there was of it at the merge base.
        ends: The commits.
        sequences: In what sequence each prediction was registered, measured and changed.
    """
    past = head.state.past
    before = past.graph.of([ends.base]) if isinstance(past, Past) else frozenset[str]()
    here = [
        _given(head.state, _compared(head.state, base, one, sequences), before)
        for one in head.audit.predictions
    ]
    known = {one.id for one in here}
    entries = base.lock.predictions if base.lock else {}
    gone = [_removed(head.state, base, name, entry) for name, entry in entries.items() if name not in known]
    return tuple(sorted(_dated(head.state, [*here, *gone]), key=lambda one: one.id))


def _dated(state: StudyState, several: Iterable[Audited]) -> list[Audited]:
    """Return predictions with the days of their commits, which git is asked for once."""
    several = list(several)
    commits = dict.fromkeys(each.commit for one in several for each in one.came if each.commit)
    days = state.repository.days(commits) if state.repository else {}
    return [
        replace(one, came=tuple(replace(each, on=days.get(each.commit or "")) for each in one.came))
        for one in several
    ]


def _removed(state: StudyState, base: Base, name: str, entry: LockEntry) -> Audited:
    registered = registered_in(state, name, entry)
    return Audited(
        id=name,
        status="removed",
        order=None,
        standing=None,
        base=recorded(entry),
        head=None,
        withdrawal=None,
        is_counted=False,
        is_at_base=True,
        wanted=base.wants.get(name, ""),
        claimed=base.claims.get(name, ""),
        registered=registered,
        came=(Came(what="registered", commit=registered),) if registered else (),
    )


def _compared(state: StudyState, base: Base, one: Audited, sequences: Sequences) -> Audited:
    entry, before = state.lock.predictions.get(one.id) if state.lock else None, base.entry(one.id)
    is_there, sequence = one.id in state.study.predictions, sequences.of(one.id)
    return replace(
        one,
        base=recorded(before),
        is_at_base=before is not None and (entry is None or before.digest == entry.digest),
        registered=sequence.registered,
        measured=sequence.measured,
        came=sequence.came,
        wants=wants_of(state, one.id) if is_there else "",
        wanted=base.wants.get(one.id, ""),
        claimed=base.claims.get(one.id, ""),
        flags=_flags(state, one.id) if is_there else (),
    )


def _given(state: StudyState, one: Audited, before: frozenset[str]) -> Audited:
    """Return a prediction with what its evidence gives, if that is new and no lock records it."""
    if one.base or one.head or one.status != "registered" or one.measured is None or one.measured in before:
        return one
    with suppress(PreregError):
        assessment = state.assess(state.study.predictions[one.id])
        if assessment.entry is not None and is_recordable(assessment):
            return replace(one, given=recorded(recorded_entry(assessment, assessment.entry)))
    return one


def _flags(state: StudyState, name: str) -> tuple[str, ...]:
    with suppress(PreregError):
        return state.assess(state.study.predictions[name]).flags
    return ()
