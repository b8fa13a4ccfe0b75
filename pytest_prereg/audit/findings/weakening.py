"""Registrations that were made easier to meet: PR209; and, beside them, claims that contradict each other."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.audit.comparing.changes import Revision
from pytest_prereg.audit.comparing.weakening import weakened
from pytest_prereg.audit.finding import Level
from pytest_prereg.audit.findings.contradicting import contradicting
from pytest_prereg.audit.findings.problems import guarded
from pytest_prereg.audit.findings.telling import in_commit, short, told
from pytest_prereg.audit.history.chronicle import Amended, amended
from pytest_prereg.audit.history.past import Past
from pytest_prereg.audit.history.revisions import NoRevision, Revisions, commits_with
from pytest_prereg.registry.refusals import quoted, typed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.comparing.changes import Weakening
    from pytest_prereg.audit.finding import Finding


def of_weakening(state: StudyState) -> Iterator[Finding]:
    """Yield PR209 for what a changed registration made easier, and PR214 for claims that contradict it."""
    for finder in (_weakened, contradicting):
        yield from guarded(finder, state)


class _Replaced(msgspec.Struct, kw_only=True, frozen=True):
    """A registration that gave way to another one, and what was known by then."""

    one: Amended
    seen: str | None
    """Which evidence was there for it as it had been, in words."""
    reason: str | None
    """As the lock has it, if it says why."""


def _weakened(state: StudyState) -> Iterator[Finding]:
    """Yield what each change made easier, up to the file as it is on disk."""
    if not isinstance(state.past, Past):
        return
    revisions = Revisions.of(state.past, state.study)
    for each in _replaced(state):
        before, after = _before(state, revisions, each.one), _after(state, revisions, each.one)
        if isinstance(before, NoRevision):
            yield _untold(state, each, before)
        elif isinstance(after, NoRevision):
            yield _untold(state, each, after)
        else:
            yield from _told(state, each, before, after)


def _replaced(state: StudyState) -> Iterator[_Replaced]:
    """Yield each replaced registration; one that was never committed only if there is evidence for it."""
    earlier: dict[str, set[str]] = defaultdict(set)
    entries = state.chronicle.now.predictions
    for one in (*amended(state.chronicle), *_hidden(state), *_edited(state)):
        earlier[one.id].add(one.old)
        seen = state.timeline.seen(one.id, earlier[one.id] - {one.new}, one.after)
        if one.before or seen:
            amendments = entries[one.id].amendments if one.id in entries else ()
            reasons = [each.reason for each in amendments if (each.old, each.new) == (one.old, one.new)]
            yield _Replaced(one=one, seen=seen, reason=next(iter(reasons), None))


def _hidden(state: StudyState) -> Iterator[Amended]:
    """Yield amendments of what no commit has: it was replaced before a commit, or commits were squashed."""
    known = {(change.id, change.after.digest) for change in state.chronicle.changes if change.after}
    for name, entry in state.chronicle.now.predictions.items():
        for each in entry.amendments:
            if each.key == "digest" and (name, each.old) not in known:
                yield Amended(id=name, old=each.old, new=each.new, before=(), after=None)


def _edited(state: StudyState) -> Iterator[Amended]:
    """Yield what is no longer written as the lock has it, and nobody has amended."""
    committed = state.head_lock.predictions if state.head_lock else {}
    for name, entry in state.chronicle.now.predictions.items():
        digest = state.digests.get(name, entry.digest)
        if digest != entry.digest and entry.withdrawal is None:
            has_it = name in committed and committed[name].digest == entry.digest
            before = ("HEAD",) if has_it else ()
            yield Amended(id=name, old=entry.digest, new=digest, before=before, after=None)


def _before(state: StudyState, revisions: Revisions, one: Amended) -> Revision | NoRevision:
    commits = [*one.before, *commits_with(state.chronicle, one.id, one.old)]
    return revisions.registered(commits, one.id, one.old)


def _after(state: StudyState, revisions: Revisions, one: Amended) -> Revision | NoRevision:
    """Return what was registered instead; of what is not committed it is what is written now."""
    prediction = state.study.predictions.get(one.id)
    if prediction is not None and (one.after is None or state.digests[one.id] == one.new):
        return Revision(study=state.study, prediction=prediction)
    commits = [*([one.after] if one.after else []), *commits_with(state.chronicle, one.id, one.new)]
    return revisions.registered(commits, one.id, one.new)


def _told(state: StudyState, replaced: _Replaced, before: Revision, after: Revision) -> Iterator[Finding]:
    now = state.study.predictions.get(replaced.one.id)
    lasts = replaced.seen is not None and not state.is_withdrawn(replaced.one.id)
    if now is not None:
        lasts = lasts and bool(weakened(before, Revision(study=state.study, prediction=now)))
    for one in weakened(before, after):
        yield _finding(state, replaced, one, lasts=lasts)


def _finding(state: StudyState, replaced: _Replaced, weakening: Weakening, *, lasts: bool) -> Finding:
    """What was made easier: once there are data that is an error, until it is taken back or withdrawn."""
    one, name = replaced.one, replaced.one.id
    message = f"{quoted(name)} was changed{_after_data(replaced)}{_where(replaced)}: {weakening.message}"
    reason = replaced.reason
    restore = "Restore it, or withdraw it and register under another id what is expected now."
    explain = f"Restore it, or say why it changed: pytest-prereg amend {typed(name)} --reason '…'"
    return told(
        state,
        "PR209",
        name,
        Level.ERROR if lasts else Level.REVIEW,
        message,
        commit=one.after,
        about=f"{short(one.new)} {weakening.what}",
        advice=restore if lasts else None if reason else explain,
        acknowledged=None if lasts or reason is None else f"amended: {reason}",
    )


def _untold(state: StudyState, replaced: _Replaced, missing: NoRevision) -> Finding:
    """What was changed can't be told: nobody has seen that it was made no easier, whatever the lock says."""
    one = replaced.one
    what = f"what changed of {quoted(one.id)}{_after_data(replaced)}{_where(replaced)}"
    message = f"could not tell {what}: {missing.why}"
    finding = told(
        state,
        "PR209",
        one.id,
        Level.ERROR if replaced.seen else Level.REVIEW,
        message,
        commit=one.after,
        about=f"{short(one.new)} unknown",
        advice="The text that was registered is in no commit here; a clone needs the whole history.",
    )
    return msgspec.structs.replace(finding, untold=True)


def _where(replaced: _Replaced) -> str:
    """Return by which commit; what was edited, committed or not, no version of the lock has."""
    is_edited = replaced.one.after is None and replaced.reason is None
    return ", and no amendment says so" if is_edited else in_commit(replaced.one.after)


def _after_data(replaced: _Replaced) -> str:
    return f" after the data ({replaced.seen})" if replaced.seen else ""
