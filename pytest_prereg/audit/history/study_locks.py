"""Which files are locks of a study: one answer for its order and for its history, and each file read once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.errors import Problem, StudyError
from pytest_prereg.registry.lock import Lock
from pytest_prereg.registry.lock_versions import LockReader, may_be_lock, study_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_prereg.audit.history.git import Repository

AT_ONCE = 64
"""Files that are asked for together: as many are in memory."""


class StudyLocks:
    """The locks of one study by the name that git has for their content, wherever they lie."""

    def __init__(self, repository: Repository, study: str) -> None:
        self._repository = repository
        self._study = study
        self._reader = LockReader()
        self._known: dict[str, Lock | Problem | None] = {}
        self.of_others: dict[str, Lock] = {}
        """Those of other studies, as far as they were read."""

    def __contains__(self, blob: object) -> bool:
        """Whether a file that was read is one of the study's, whole or broken."""
        return isinstance(blob, str) and self._known.get(blob) is not None

    def read(self, blobs: Iterable[str]) -> None:
        """Read files that may be locks, those that are known already excepted."""
        for names in _parts([blob for blob in dict.fromkeys(blobs) if blob not in self._known]):
            for name, data in zip(names, self._repository.contents(names), strict=True):
                self._known[name] = None if data is None else self._lock(name, data)

    def whole(self, blob: str) -> Lock | None:
        """Return the lock that a file is: what can't be read whole registers nothing."""
        known = self._known.get(blob)
        return known if isinstance(known, Lock) else None

    def problem(self, blob: str) -> Problem | None:
        """Return why a file that names the study can't be read as its lock."""
        known = self._known.get(blob)
        return known if isinstance(known, Problem) else None

    def of(self, blobs: Iterable[str]) -> dict[str, Lock]:
        """Return those of some files that are whole locks of the study."""
        names = list(blobs)
        self.read(names)
        return {name: lock for name in names if (lock := self.whole(name)) is not None}

    def named(self) -> frozenset[str]:
        """Return all files read so far that are the study's, whole or broken."""
        return frozenset(name for name, known in self._known.items() if known is not None)

    def _lock(self, name: str, data: bytes) -> Lock | Problem | None:
        if not may_be_lock(data):
            return None
        try:
            lock = self._reader.read(data, name[:8])
        except StudyError as error:
            return error.problems[0] if study_named(data) == self._study else None
        if lock.study != self._study:
            self.of_others[name] = lock
            return None
        return lock


def _parts(names: list[str]) -> Iterator[list[str]]:
    return (names[start : start + AT_ONCE] for start in range(0, len(names), AT_ONCE))
