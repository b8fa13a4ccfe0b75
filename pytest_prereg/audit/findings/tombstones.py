"""Tombstones that were set, or are gone, and what was judged after one was set: PR203 and PR215."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from pytest_prereg.audit.finding import Level
from pytest_prereg.audit.findings.fingerprints import fingerprint
from pytest_prereg.audit.findings.records import record_of
from pytest_prereg.audit.findings.telling import in_commit, short, told
from pytest_prereg.audit.history.past import NoPast
from pytest_prereg.audit.withdrawn import counts_as_refuted
from pytest_prereg.audit.withdrawn import tombstones as buried
from pytest_prereg.errors import PreregError, StudyError
from pytest_prereg.registry.lock import parse_lock
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.finding import Finding
    from pytest_prereg.audit.history.chronicle import Change
    from pytest_prereg.evidence.files import SessionFile
    from pytest_prereg.registry.lock import LockEntry, Withdrawal


def tombstones(state: StudyState) -> Iterator[Finding]:
    """Yield a notice for each withdrawal, and what happened to predictions after they had been withdrawn."""
    yield from _withdrawals(state)
    ever = dict.fromkeys(one.id for one in state.chronicle.changes if one.after and one.after.withdrawal)
    for name in ever:
        yield from _of_tombstone(state, name)
    for change in state.chronicle.changes:
        if change.id in ever and _is_judged_after(change):
            yield _judged(state, change)
    if ever:
        yield from _measured(state, set(ever))


def _withdrawals(state: StudyState) -> Iterator[Finding]:
    """Yield what is withdrawn, since which commit, and whether it counts all the same."""
    entries = state.chronicle.now.predictions.items()
    withdrawn = {name: entry for name, entry in entries if entry.withdrawal is not None}
    gone = {one.id: one.standing for one in buried(state)} if withdrawn else {}
    for name, entry in withdrawn.items():
        standing = gone.get(name)
        with suppress(PreregError):
            standing = standing or state.assess(state.study.predictions[name]).standing
        yield _withdrawn(state, name, entry, is_counted=counts_as_refuted(entry, standing))


def _withdrawn(state: StudyState, name: str, entry: LockEntry, *, is_counted: bool) -> Finding:
    tombstone = entry.withdrawal
    reason = tombstone.reason if tombstone else ""
    own = state.chronicle.of(name)
    commit = next((one.commit for one in own if one.after and one.after.withdrawal == tombstone), None)
    lost = f"; it was {entry.verdict}, and counts no more" if entry.verdict else ""
    counts = "; counted as refuted" if is_counted else lost
    return told(
        state,
        "PR203",
        name,
        Level.NOTICE,
        f"{quoted(name)} was withdrawn{in_commit(commit)}: {reason}{counts}",
        commit=commit,
        about=f"withdrawn {short(entry.digest)}",
    )


def _of_tombstone(state: StudyState, name: str) -> Iterator[Finding]:
    """Yield what became of the tombstones of a prediction that the lock still has."""
    entry = state.chronicle.now.predictions.get(name)
    if entry is None:
        return
    done = {entry.withdrawal}
    for step in state.chronicle.steps[name]:
        left = step.after.withdrawal if step.after else None
        for parent, known in step.before.items():
            if known.withdrawal is None or known.withdrawal in done or (left and left == known.withdrawal):
                continue
            done.add(known.withdrawal)
            yield _changed(state, name, known.withdrawal, step.version.commit, parent)


def _changed(state: StudyState, name: str, tombstone: Withdrawal, commit: str | None, parent: str) -> Finding:
    """An error where it is withdrawn no more, and a review where that is told in other words."""
    now = state.chronicle.now.predictions[name].withdrawal
    what = "was written anew" if now else "was taken away"
    return told(
        state,
        "PR203",
        name,
        Level.REVIEW if now else Level.ERROR,
        f"the tombstone of {quoted(name)} ({tombstone.reason}) {what}{in_commit(commit)}",
        commit=commit,
        about=f"tombstone {tombstone.at} to {fingerprint(now)}" if now else f"tombstone {tombstone.at}",
        advice=f"What is withdrawn stays withdrawn: put it back as {parent[:8]} has it.",
    )


def _is_judged_after(change: Change) -> bool:
    """Whether a change records what none of its sides had, and a side had been withdrawn."""
    if change.after is None or not any(entry.withdrawal for entry in change.before):
        return False
    return record_of(change.after) not in {record_of(entry) for entry in change.before}


def _judged(state: StudyState, change: Change) -> Finding:
    verdict = (change.after.verdict if change.after else None) or "without a verdict"
    return told(
        state,
        "PR215",
        change.id,
        Level.ERROR,
        f"{quoted(change.id)} had been withdrawn, and was recorded as {verdict}{in_commit(change.commit)}",
        commit=change.commit,
        about=f"recorded {verdict} {short(change.after.evidence if change.after else None)}",
        advice=f"Put its record back as {change.parents[0][:8]} has it; register a new prediction instead.",
    )


def _measured(state: StudyState, withdrawn: set[str]) -> Iterator[Finding]:
    """Yield an error for each session that was measured for what had been withdrawn where it was."""
    files = [
        (file, file.header, name)
        for several in state.files.values()
        for file in several
        if file.header is not None and file.attempts
        for name in file.header.predictions
        if name in withdrawn
    ]
    buried = _Buried(state, {header.head for _, header, _ in files if header.head is not None})
    for file, header, name in files:
        if header.head is not None and buried.has(name, header.head):
            yield _session(state, file, name, header.head)


class _Buried:
    """Which predictions have a tombstone at the commits that evidence names."""

    def __init__(self, state: StudyState, heads: set[str]) -> None:
        self._timeline = state.timeline
        self._tombs = [
            (change.id, change.commit)
            for change in state.chronicle.changes
            if change.commit is not None and change.after and change.after.withdrawal
        ]
        self._there: dict[str, set[str]] = {}
        past, place = state.past, None
        if not isinstance(past, NoPast) and (place := past.repository.relative(state.study.lock_path)):
            known = sorted(heads & past.here)
            texts = past.repository.contents(f"{head}:{place}" for head in known)
            self._there = {head: _withdrawn_in(text) for head, text in zip(known, texts, strict=True)}

    def has(self, name: str, head: str) -> bool:
        """Whether the lock says so there, or one that it comes from does."""
        there = name in self._there.get(head, ())
        return there or any(name == one and self._timeline.leads(tomb, head) for one, tomb in self._tombs)


def _withdrawn_in(text: bytes | None) -> set[str]:
    try:
        lock = parse_lock(text or b"", "")
    except StudyError:
        return set()
    return {name for name, entry in lock.predictions.items() if entry.withdrawal is not None}


def _session(state: StudyState, file: SessionFile, name: str, head: str) -> Finding:
    return told(
        state,
        "PR215",
        name,
        Level.ERROR,
        f"{file.name} was taken for {quoted(name)} at {head[:8]}, where that is withdrawn",
        commit=head,
        about=file.path.name,
        advice="It counts for nothing. Register a new prediction instead.",
    )
