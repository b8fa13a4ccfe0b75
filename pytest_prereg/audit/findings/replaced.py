"""Registrations that were replaced though no amendment says so: PR202, an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pytest_prereg.audit.finding import Level
from pytest_prereg.audit.findings.amendments import WHAT, digest_of, leads
from pytest_prereg.audit.findings.telling import acknowledging, in_commit, short, told
from pytest_prereg.registry.refusals import quoted, typed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.finding import Finding
    from pytest_prereg.audit.history.chronicle import Change


class _Replacement(NamedTuple):
    """A digest that stands where another one stood."""

    key: str
    old: str
    new: str


def replaced(state: StudyState) -> Iterator[Finding]:
    """Yield an error for each registration, its words or its code, that was replaced by hand.

    Of two that branches registered under one id a merge keeps one; that the other one is gone is a review.
    """
    done: set[tuple[str, _Replacement]] = set()
    for change in state.chronicle.changes:
        for one, parent in _replacements(state, change):
            if (change.id, one) not in done:
                done.add((change.id, one))
                yield _by_hand(state, change, one, parent)
    spoken_of = {(name, digest) for name, one in done for digest in (one.old, one.new)}
    yield from _dropped(state, spoken_of)


def _replacements(state: StudyState, change: Change) -> Iterator[tuple[_Replacement, str]]:
    """Yield what a change replaced without an amendment, with the commit that has it still."""
    after = change.after
    if after is None:
        return
    now = state.chronicle.now.predictions.get(change.id)
    amendments = (*after.amendments, *(now.amendments if now else ()))
    for key in WHAT:
        new = digest_of(after, key)
        before = {
            parent: digest_of(entry, key) for parent, entry in zip(change.parents, change.before, strict=True)
        }
        for parent, old in before.items():
            if new not in before.values() and not leads(amendments, key, old, new):
                yield _Replacement(key, old, new), parent


def _by_hand(state: StudyState, change: Change, one: _Replacement, parent: str) -> Finding:
    what = f"the {WHAT[one.key]} of {quoted(change.id)} (digest {short(one.old)})"
    again = "after it had been taken out of the lock, " if change.restored else ""
    where = f"{in_commit(change.commit)}: {again}no amendment says so"
    ever = {each.after.digest for each in state.chronicle.of(change.id) if each.after}
    seen = state.timeline.seen(change.id, ever, change.commit)
    when = f", after the data ({seen})" if seen else ""
    advice = (
        f"Put it back as {parent[:8]} has it; what is to change is amended with a reason:\n"
        f"pytest-prereg amend {typed(change.id)} --reason '…'"
    )
    return told(
        state,
        "PR202",
        change.id,
        Level.ERROR,
        f"{what} was replaced with {short(one.new)}{where}{when}",
        commit=change.commit,
        about=f"replaced: {WHAT[one.key]} {short(one.old)} -> {short(one.new)}",
        advice=advice,
    )


def _dropped(state: StudyState, spoken_of: set[tuple[str, str]]) -> Iterator[Finding]:
    """Yield a review for each registration that the history has and the lock accounts for nowhere."""
    for name, entry in state.chronicle.now.predictions.items():
        own = [(one, one.after) for one in state.chronicle.of(name) if one.after]
        told_of = {digest for _, after in own for one in after.amendments for digest in (one.old, one.new)}
        for change, after in own:
            digest = after.digest
            if digest != entry.digest and digest not in told_of and (name, digest) not in spoken_of:
                told_of.add(digest)
                yield _of_a_branch(state, change, digest)


def _of_a_branch(state: StudyState, change: Change, digest: str) -> Finding:
    message = (
        f"{quoted(change.id)} was registered otherwise on a branch (digest {short(digest)})"
        f"{in_commit(change.commit)}; merging took another one"
    )
    return told(
        state,
        "PR202",
        change.id,
        Level.REVIEW,
        message,
        commit=change.commit,
        about=f"dropped: {short(digest)}",
        advice=f"Say why this one stands: {acknowledging('PR202', change.id)}",
    )
