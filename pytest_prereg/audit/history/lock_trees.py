"""What commits have of a study's lock: one file of each tree, and what others of the study say otherwise.

Which file that is is followed from where the lock is today, back through every move.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pytest_prereg.errors import Problem
from pytest_prereg.registry.lock import Lock

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_prereg.audit.history import following
    from pytest_prereg.audit.history.past import Past

SUFFIX = ".lock"
OF_OTHERS = frozenset(
    f"{name}{SUFFIX}"
    for name in (
        *("uv", "poetry", "pdm", "pixi", "conda", "Pipfile", "pylock", "Cargo", "flake", "yarn", "bun"),
        *("deno", "Gemfile", "composer", "mix", "pubspec", "Podfile", "Package", "dune", "rebar", "gradle"),
    )
)
"""Locks of well-known tools: long, often changed, and read only where one of them is a study's after all.

Not to read one hides nothing: it counted nowhere for what was registered before evidence, or it is known.
"""

Files = tuple[tuple[str, str], ...]
"""Path and blob of the study's lock in one tree, and then of others that are whole locks of it."""


class Tree(msgspec.Struct, kw_only=True, frozen=True):
    """All that one commit's tree registers of a study."""

    lock: Lock | None
    """With what others have besides; ``None`` where it has none."""
    others: tuple[Lock, ...] = ()
    """Beside the study's own, those that are not the same file again."""
    problem: Problem | None = None
    """Why the study's own can't be read."""
    blob: str | None = None
    """Of the study's own."""


class _Place(NamedTuple):
    """Where the lock is in one tree."""

    followed: str | None
    """The path to which it was followed from where it is today."""
    instead: str | None
    """Where there is nothing (yet) at that path, but a lock of the study elsewhere."""
    path: str | None
    """The one of the two that this tree has."""


class LockTrees:
    """The locks of a study in the trees of all commits up to HEAD; a file that several have is read once."""

    def __init__(self, past: Past, place: str | None) -> None:
        self._past = past
        self._locks = past.locks
        self._trees: dict[Files, Tree] = {}
        own = past.graph.of([past.head])
        self.commits = {
            commit: parents for commit, parents in reversed(past.graph.parents.items()) if commit in own
        }
        """With their parents, which come first."""
        self._locks.read(self._likely())
        self._all = dict(past.lock_files.at(own, self._locks.named()))
        self._places = self._followed(place)
        self._files = {commit: self._ordered(commit) for commit in self.commits}

    def tree(self, commit: str) -> Tree:
        """Return what a commit registers."""
        files = self._files[commit]
        if files not in self._trees:
            self._trees[files] = self._united(files)
        return self._trees[files]

    def is_changed(self, commit: str) -> bool:
        """Whether a commit has locks that a parent has not as they are; of one without parents any."""
        parents = self.commits[commit]
        files = self._files[commit]
        return any(self._files[parent] != files for parent in parents) if parents else bool(files)

    def _likely(self) -> Iterable[str]:
        """Files that may ever have been a lock of the study, and count for something."""
        blobs: dict[str, list[str]] = {}
        for commit in self._past.commits:
            for change in commit.changes:
                if change.path.endswith(SUFFIX):
                    blobs.setdefault(change.path, []).append(change.blob)
        foreign = {path: each for path, each in blobs.items() if path.rpartition("/")[2] in OF_OTHERS}
        self._locks.read(blob for path, each in blobs.items() if path not in foreign for blob in each)
        self._locks.read(blob for each in foreign.values() for blob in (each[0], each[-1]))
        known = self._locks.named()
        return [blob for each in foreign.values() if not known.isdisjoint(each) for blob in each]

    def _followed(self, place: str | None) -> dict[str, _Place]:
        """Where the lock is in each tree: from HEAD back, by what each commit did to its parents' files."""
        places = {self._past.head: self._before(_Place(place, None, None), {}, self._past.head)}
        for commit, parents in reversed(self.commits.items()):
            for parent in parents:
                if parent not in places:
                    places[parent] = self._before(places[commit], self._all[commit], parent)
        return places

    def _before(self, after: _Place, files_after: following.Files, commit: str) -> _Place:
        """Where a commit has the lock, by where it is in a child, and what files that has."""
        files = self._all[commit]
        if files is files_after:
            return after
        if after.followed in files:
            return after._replace(path=after.followed)
        whole = [path for path, blob in files.items() if self._locks.whole(blob) is not None]
        same = files_after.get(after.path or "")
        if gone := [path for path in whole if path not in files_after]:
            path = self._likeliest(gone, same, commit)
            return _Place(path, None, path)
        if after.instead in whole:
            return after._replace(path=after.instead)
        instead = self._likeliest(whole, same, commit) if whole else None
        return _Place(after.followed, instead or after.instead, instead)

    def _likeliest(self, paths: list[str], same: str | None, commit: str) -> str:
        """A path with the same content, if there is one, and a prediction file beside it; else the first."""
        files = self._all[commit]
        alike = sorted(path for path in paths if files[path] == same) or sorted(paths)
        if len(alike) == 1:
            return alike[0]
        beside = self._past.repository.names(f"{commit}:{path.removesuffix(SUFFIX)}.toml" for path in alike)
        return next((path for path, blob in zip(alike, beside, strict=True) if blob), alike[0])

    def _ordered(self, commit: str) -> Files:
        files, own = self._all[commit], self._places[commit].path
        first = [(own, files[own])] if own is not None else []
        others = [(path, blob) for path, blob in files.items() if path != own and self._locks.whole(blob)]
        return (*first, *sorted(others))

    def _united(self, files: Files) -> Tree:
        if not files:
            return Tree(lock=None)
        blob = files[0][1]
        first = self._locks.whole(blob)
        if first is None:
            return Tree(lock=None, problem=self._locks.problem(blob), blob=blob)
        several = self._locks.of(dict.fromkeys(other for _, other in files if other != blob))
        return Tree(lock=_together(first, *several.values()), others=tuple(several.values()), blob=blob)


def _together(first: Lock, *others: Lock) -> Lock:
    """A lock with the predictions that others have besides, since those count as registered as well."""
    if not others:
        return first
    every = (first, *others)
    entries = {name: entry for lock in reversed(every) for name, entry in lock.predictions.items()}
    return msgspec.structs.replace(first, predictions=entries)
