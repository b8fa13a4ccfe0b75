"""What commits have of a study's lock: every file that is a lock of it, wherever it lies, read as one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.errors import Problem, StudyError
from pytest_prereg.registry.lock import Lock
from pytest_prereg.registry.lock_versions import LockReader, may_be_lock, study_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_prereg.audit.past import Past

SUFFIX = ".lock"
OF_OTHERS = frozenset(
    f"{name}{SUFFIX}"
    for name in (
        *("uv", "poetry", "pdm", "pixi", "conda", "Pipfile", "pylock", "Cargo", "flake", "yarn", "bun"),
        *("deno", "Gemfile", "composer", "mix", "pubspec", "Podfile", "Package", "dune", "rebar", "gradle"),
    )
)
"""Locks of well-known tools: long, often changed, and read only where one of them is a study's after all."""
AT_ONCE = 64
"""Files that are asked for together: as many are in memory."""

Files = tuple[tuple[str, str], ...]
"""Locks of the study in one tree: path and blob, the one that is preferred first."""


class Tree(msgspec.Struct, kw_only=True, frozen=True):
    """All that one commit's tree registers of a study."""

    lock: Lock | None
    """``None`` where it has none."""
    problem: Problem | None = None
    """Why a lock of it can't be read."""
    rivals: tuple[tuple[str, str], ...] = ()
    """Prediction and digest, where a lock beside ``lock`` registers it otherwise."""


class LockTrees:
    """The locks of a study in the trees of some commits; a file that several have is read once."""

    def __init__(self, past: Past, place: str | None) -> None:
        self._past = past
        self._place = place
        self._reader = LockReader()
        self._locks: dict[str, Lock | Problem | None] = {}
        self._trees: dict[Files, Tree] = {}
        self._files: dict[str, Files] = {}
        paths = self._paths()
        self.lineage = past.repository.lineage(paths)
        """Commits in which a lock is not as a parent has it, with their parents, parents first."""
        self._ask(
            {past.head, *(each for commit, parents in self.lineage for each in (commit, *parents))}, paths
        )

    def files(self, commit: str) -> Files:
        """Return what names the locks of a commit: equal for equal trees."""
        return self._files[commit]

    def tree(self, commit: str) -> Tree:
        """Return what a commit of :attr:`lineage`, one of their parents, or HEAD registers."""
        files = self._files[commit]
        if files not in self._trees:
            self._trees[files] = self._united(files)
        return self._trees[files]

    def _paths(self) -> list[str]:
        """Paths that may ever have held a lock of the study."""
        blobs: dict[str, list[str]] = {}
        for commit in self._past.commits:
            for change in commit.changes:
                if change.path.endswith(SUFFIX):
                    blobs.setdefault(change.path, []).append(change.blob)
        unlikely = {path: each for path, each in blobs.items() if path.rpartition("/")[2] in OF_OTHERS}
        self._read(blob for each in unlikely.values() for blob in (each[0], each[-1]))
        others = {
            path
            for path, each in unlikely.items()
            if self._locks[each[0]] is None and self._locks[each[-1]] is None
        }
        return sorted(blobs.keys() - others)

    def _ask(self, commits: Iterable[str], paths: list[str]) -> None:
        questions = [(commit, path) for commit in sorted(commits) for path in paths]
        blobs = self._past.repository.names(f"{commit}:{path}" for commit, path in questions)
        found: dict[str, list[tuple[str, str]]] = {commit: [] for commit in commits}
        for (commit, path), blob in zip(questions, blobs, strict=True):
            if blob is not None:
                found[commit].append((path, blob))
        self._read(blob for each in found.values() for _, blob in each)
        self._files = {commit: self._preferred(each) for commit, each in found.items()}

    def _preferred(self, files: list[tuple[str, str]]) -> Files:
        own = [each for each in files if self._locks[each[1]] is not None]
        return tuple(sorted(own, key=lambda each: (each[0] != self._place, each)))

    def _read(self, blobs: Iterable[str]) -> None:
        """Read files that may be locks; ``None`` is entered for those that are not this study's."""
        for names in _parts([blob for blob in dict.fromkeys(blobs) if blob not in self._locks]):
            for name, data in zip(names, self._past.repository.contents(names), strict=True):
                self._locks[name] = None if data is None else self._lock(name, data)

    def _lock(self, name: str, data: bytes) -> Lock | Problem | None:
        if not may_be_lock(data):
            return None
        try:
            lock = self._reader.read(data, name[:8])
        except StudyError as error:
            return error.problems[0] if study_named(data) == self._past.study else None
        return lock if lock.study == self._past.study else None

    def _united(self, files: Files) -> Tree:
        known = [self._locks[blob] for _, blob in files]
        problem = next((one for one in known if isinstance(one, Problem)), None)
        locks = [one for one in known if isinstance(one, Lock)]
        if not locks or problem:
            return Tree(lock=None, problem=problem)
        first, *others = locks
        return Tree(lock=_together(first, others), rivals=tuple(_rivals(first, others)))


def _parts(names: list[str]) -> Iterator[list[str]]:
    return (names[start : start + AT_ONCE] for start in range(0, len(names), AT_ONCE))


def _together(first: Lock, others: list[Lock]) -> Lock:
    """A lock with what others have besides."""
    if not others:
        return first
    every = [first, *others]
    return msgspec.structs.replace(
        first,
        predictions={name: entry for lock in reversed(every) for name, entry in lock.predictions.items()},
        exclusions=tuple(dict.fromkeys(one for lock in every for one in lock.exclusions)),
        voided=tuple(dict.fromkeys(one for lock in every for one in lock.voided)),
        acknowledged=tuple(dict.fromkeys(one for lock in every for one in lock.acknowledged)),
    )


def _rivals(first: Lock, others: list[Lock]) -> Iterator[tuple[str, str]]:
    for lock in others:
        for name, entry in lock.predictions.items():
            if name in first.predictions and entry.digest != first.predictions[name].digest:
                yield name, entry.digest
