"""How a prediction that was edited comes back as it is registered, and what is told once there are data.

The edit may be committed by then: HEAD has the edited text, and only an earlier commit the registered one.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from pytest_prereg.audit.history.past import Past
from pytest_prereg.audit.history.revisions import NoRevision, Revisions, commits_with
from pytest_prereg.audit.withdrawn import files_of, repeats_in
from pytest_prereg.evidence.naming import shown
from pytest_prereg.registry.digest import registration_digest
from pytest_prereg.registry.refusals import typed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.registry.model import Study

_HEAD = "HEAD"
_SHORT = 8


def restoring(state: StudyState, edited: Iterable[str]) -> str | None:
    """Return the command that brings back the prediction file as it is registered; ``None`` if none does."""
    commit = _commit_of_all(state, edited)
    return _checkout(commit, [state.study.path]) if commit else None


def way_back(state: StudyState, name: str, *, with_lock: bool = False) -> str:
    """Return how the text of a prediction comes back: a command, or where it is to be copied from.

    Args:
        state: The study's, with the lock that registers what is to come back.
        name: The prediction's id.
        with_lock: Whether the lock at HEAD comes back as well.
    """
    path, lock = state.study.path, _checkout(_HEAD, [state.study.lock_path])
    commit = _commit_of_all(state, [name])
    if commit == _HEAD and with_lock:
        return _checkout(_HEAD, [path, state.study.lock_path])
    if commit is not None:
        return f"{_checkout(commit, [path])} && {lock}" if with_lock else _checkout(commit, [path])
    there = commit_with(state, name)
    where = (
        f"as {_short(there)} has it (git diff {_short(there)} -- {_typed(path)})" if there else "as it was"
    )
    return f"[predictions.{name}] {where}" + (f" and {lock}" if with_lock else "")


def has_data(state: StudyState, name: str) -> bool:
    """Whether there are repeats for a prediction as it is registered, or a verdict on them."""
    entry = state.lock.predictions.get(name) if state.lock else None
    if entry is None or entry.withdrawal is not None:
        return False
    return entry.verdict is not None or repeats_in(files_of(state, name, {entry.digest})) > 0


def after_data(state: StudyState, name: str) -> str:
    """Return what to do about a prediction that was edited when there were data for it."""
    return (
        f"There are data for what was registered. Take it back: {way_back(state, name)}\n"
        "Register what you expect now under an id of its own, a successor, which is measured anew.\n"
        "Amended now it is exploratory, and no audit or gate passes what that made easier (PR209):\n"
        f"pytest-prereg amend {typed(name)} --reason '…'"
    )


def commit_with(state: StudyState, name: str) -> str | None:
    """Return a commit that has the text of one prediction as the lock registers it, whatever else it has."""
    if not isinstance(state.past, Past) or state.lock is None:
        return None
    revisions, digest = Revisions.of(state.past, state.study), state.lock.predictions[name].digest
    for commit in dict.fromkeys([_HEAD, *_candidates(state, [name])]):
        study = revisions.at(commit)
        if isinstance(study, NoRevision) or study.path.resolve() != state.study.path.resolve():
            continue
        if name in study.predictions and registration_digest(study, study.predictions[name]) == digest:
            return commit
    return None


def _commit_of_all(state: StudyState, edited: Iterable[str]) -> str | None:
    """Return a commit whose prediction file is as the lock registers it, and lacks nothing written since."""
    if not isinstance(state.past, Past) or state.lock is None:
        return None
    revisions = Revisions.of(state.past, state.study)
    for commit in dict.fromkeys([_HEAD, *_candidates(state, edited)]):
        study = revisions.at(commit)
        if not isinstance(study, NoRevision) and _is_registered(state, study):
            return commit
    return None


def _candidates(state: StudyState, edited: Iterable[str]) -> Iterator[str]:
    entries = state.chronicle.now.predictions
    for name in edited:
        if name in entries:
            yield from reversed(commits_with(state.chronicle, name, entries[name].digest))


def _is_registered(state: StudyState, study: Study) -> bool:
    """Whether a study is at its place, as the lock registers it, and lacks nothing of what is written now."""
    entries = state.chronicle.now.predictions.items()
    standing = {name: entry.digest for name, entry in entries if entry.withdrawal is None}
    known = {name: registration_digest(study, one) for name, one in study.predictions.items()}
    is_here = study.path.resolve() == state.study.path.resolve()
    return is_here and standing.items() <= known.items() and state.study.predictions.keys() <= known.keys()


def _checkout(commit: str, paths: Iterable[Path]) -> str:
    return f"git checkout {_short(commit)} -- {' '.join(_typed(path) for path in paths)}"


def _short(commit: str) -> str:
    return commit if commit == _HEAD else commit[:_SHORT]


def _typed(path: Path) -> str:
    return shlex.quote(shown(path))
