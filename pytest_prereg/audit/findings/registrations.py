"""Since when predictions are registered, and which are registered no more: PR201 and PR203."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.audit.finding import Finding, Level
from pytest_prereg.audit.findings.telling import committing, in_commit, short, told, waits_for_commit
from pytest_prereg.audit.history.past import Past
from pytest_prereg.evidence.naming import shown
from pytest_prereg.registry.refusals import quoted, typed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.history.chronicle import Change


def registrations(state: StudyState) -> Iterator[Finding]:
    """Yield a notice for each prediction that the lock has, with the commit that registered it first."""
    first: dict[str, Change] = {}
    for change in state.chronicle.changes:
        if change.after is not None:
            first.setdefault(change.id, change)
    for name, entry in state.chronicle.now.predictions.items():
        change = first[name]
        if change.commit is None and waits_for_commit(state, name):
            continue  # told as PR102, or with its evidence as PR212
        about = short(entry.digest)
        yield told(state, "PR201", name, Level.NOTICE, _since(change), commit=change.commit, about=about)


def uncommitted(state: StudyState) -> Iterator[Finding]:
    """Yield a notice if the lock on disk is not HEAD's, unless predictions that wait for that say so."""
    if not isinstance(state.past, Past) or state.lock is None or state.lock == state.head_lock:
        return
    if not any(waits_for_commit(state, name) for name in state.lock.predictions):
        yield Finding(
            code="PR102",
            id="",
            level=Level.NOTICE,
            message="the lock is not committed as it is on disk: what it says anew counts for nothing yet",
            path=shown(state.study.lock_path),
            about="lock",
            advice=f"Commit it: {committing(state)}",
        )


def _since(change: Change) -> str:
    name = quoted(change.id)
    if change.version.is_cut and change.commit is None:
        return f"{name} is registered, and no history says since when"
    if change.version.is_cut:
        return f"{name} was registered{in_commit(change.commit)} or before: there the history is cut"
    if change.commit is None:
        return f"{name} is registered{in_commit(None)}"
    return f"{name} was registered{in_commit(change.commit)}"


def removals(state: StudyState) -> Iterator[Finding]:
    """Yield an error for each prediction that was registered and is gone: from the lock, or the study.

    One that was taken out of the lock and put back is a notice.
    """
    now = state.chronicle.now.predictions
    gone: dict[str, Change] = {}
    for change in state.chronicle.changes:
        if change.after is None:
            gone.setdefault(change.id, change)
        elif change.restored and (out := gone.pop(change.id, None)) and change.id in now:
            yield _put_back(state, out, change)
    yield from (_taken_out(state, change) for name, change in gone.items() if name not in now)
    for name in state.removed():
        message = f"{quoted(name)} is registered, and is no longer in {shown(state.study.path)}"
        about = short(now[name].digest)
        advice = f"Put it back, or say why it is given up: pytest-prereg withdraw {typed(name)} --reason '…'"
        yield told(state, "PR203", name, Level.ERROR, message, about=about, advice=advice)


def _put_back(state: StudyState, out: Change, back: Change) -> Finding:
    message = f"{quoted(out.id)} was taken out of the lock{in_commit(out.commit)}, and put back"
    if back.commit is not None:
        message = f"{message}{in_commit(back.commit)}"
    about = f"put back {short(out.before[0].digest)}"
    return told(state, "PR203", out.id, Level.NOTICE, message, commit=out.commit, about=about)


def _taken_out(state: StudyState, change: Change) -> Finding:
    entry = change.before[0]
    verdict = f", {entry.verdict}" if entry.verdict else ""
    tombstone = " with its tombstone" if entry.withdrawal else ""
    message = (
        f"{quoted(change.id)} (registered with digest {short(entry.digest)}{verdict}) was taken out of the "
        f"lock{tombstone}{in_commit(change.commit)}"
    )
    advice = (
        f"Put its table back as {change.parents[0][:8]} has it. What is given up is withdrawn with a\n"
        f"reason, never removed: pytest-prereg withdraw {typed(change.id)} --reason '…'"
    )
    return told(
        state,
        "PR203",
        change.id,
        Level.ERROR,
        message,
        commit=change.commit,
        about=short(entry.digest),
        advice=advice,
    )
