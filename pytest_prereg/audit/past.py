"""What a repository's history says of a study: when evidence came in, and what was registered at a commit.

Files are known by their content and locks by the study that they name, so that renames and moves change
nothing. It takes one pass over the history, and a handful of processes however many files there are.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.errors import HistoryError
from pytest_prereg.evidence.model import Header
from pytest_prereg.registry.registered import Registered, registered

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from pytest_prereg.audit.git import Commit, Repository

EVIDENCE = "*.jsonl"
LOCKS = "*.lock"

_SESSION = re.compile(r"/[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}\.jsonl$")

Digests = dict[str, set[str]]
"""Registration digests by prediction id; more than one where two locks of a tree name the same study."""


class Introduction(msgspec.Struct, kw_only=True, frozen=True):
    """A commit that has a file while none of its parents does."""

    commit: str
    parents: tuple[str, ...]
    cut: bool
    """Its parents are missing here (shallow clone), so that it may not be one."""


class Vanished(msgspec.Struct, kw_only=True, frozen=True):
    """A session of the study that a commit brought in, and that HEAD does not have any more as it was."""

    path: str
    commit: str
    experiment: str
    origin: str
    """As its header says; a ``pilot`` could never have decided anything."""
    predictions: dict[str, str] = {}
    """Registration digests that its header binds, by prediction id."""


class NoPast(msgspec.Struct, kw_only=True, frozen=True):
    """There is no history to read, and why."""

    detail: str
    """One sentence, for people."""
    is_empty: bool = False
    """A repository without a commit: then it is known that nothing is registered."""


class Past:
    """The history of one study, up to HEAD."""

    def __init__(self, repository: Repository, study: str, head: str) -> None:
        self.repository = repository
        self.study = study
        self.head = head
        self.commits: list[Commit] = []
        """Those that brought in locks or evidence, of any study, the newest first."""
        self.introductions: dict[str, list[Introduction]] = {}
        """Where each file of evidence came in, by its blob; none for one that is not committed."""
        self.here: frozenset[str] = frozenset()
        """Commits named by evidence that this repository has."""
        self.vanished: list[Vanished] = []
        self._registered: dict[str, Digests] = {}

    @classmethod
    def read(
        cls, repository: Repository | None, study: str, blobs: set[str], heads: set[str]
    ) -> Past | NoPast:
        """As :meth:`of` up to HEAD, or why that can't be had."""
        if repository is None:
            return NoPast(detail="no git repository, so nothing shows what came first")
        try:
            head = repository.head()
            if head is None:
                return NoPast(detail="nothing is committed yet", is_empty=True)
            return cls.of(repository, study, head, blobs, heads)
        except HistoryError as error:
            return NoPast(detail=error.problems[0].message)

    @classmethod
    def of(cls, repository: Repository, study: str, head: str, blobs: set[str], heads: set[str]) -> Past:
        """Reads everything that has to be known to grade.

        Args:
            repository: Where to look.
            study: The study's id.
            head: The commit at HEAD.
            blobs: The files of evidence, by the name that git has for their content.
            heads: Commits that evidence names as those that it was measured at.
        """
        past = cls(repository, study, head)
        past.here = past._present(heads)
        past.commits = commits = list(repository.history([EVIDENCE, LOCKS]))
        past.introductions = past._introductions(commits, blobs)
        past.vanished = past._vanished(commits)
        places = {change.path for commit in commits for change in commit.changes}
        locks = {path for path in places or repository.files_at(head) if path.endswith(LOCKS[1:])}
        found = [each for several in past.introductions.values() for each in several]
        asked = {commit for each in found for commit in (each.commit, *each.parents)}
        past._registered = past._read({head, *past.here, *asked}, locks)
        return past

    def registered(self, commit: str, prediction: str) -> set[str]:
        """Digests under which a prediction was registered in a commit's tree; empty if it was not."""
        return self._registered[commit].get(prediction, set())

    def _present(self, heads: set[str]) -> frozenset[str]:
        """Those of ``heads`` that are commits here, under their full names."""
        named = sorted(heads)
        answers = self.repository.names(f"{head}^{{commit}}" for head in named)
        return frozenset(head for head, answer in zip(named, answers, strict=True) if head == answer)

    def _introductions(self, commits: list[Commit], blobs: set[str]) -> dict[str, list[Introduction]]:
        places: dict[str, set[str]] = defaultdict(set)
        bringing: list[tuple[Commit, str]] = []
        for commit in commits:
            brought = {change.blob: change.path for change in commit.changes if change.blob in blobs}
            bringing += ((commit, blob) for blob in brought)
            for change in commit.changes:
                if change.blob in blobs:
                    places[change.blob].add(change.path)
        # A file that was only renamed or copied is in a parent already, under another name.
        questions = [
            (commit, blob, f"{parent}:{place}")
            for commit, blob in bringing
            for parent in commit.parents
            for place in sorted(places[blob])
        ]
        answers = self.repository.names(question for _, _, question in questions)
        already = {
            (commit.id, blob)
            for (commit, blob, _), answer in zip(questions, answers, strict=True)
            if answer == blob
        }
        introductions: dict[str, list[Introduction]] = defaultdict(list)
        for commit, blob in bringing:
            if (commit.id, blob) not in already:
                introductions[blob].append(self._introduction(commit))
        return introductions

    def _vanished(self, commits: list[Commit]) -> list[Vanished]:
        brought = {
            (change.path, change.blob): commit.id
            for commit in commits
            for change in commit.changes
            if _SESSION.search(change.path)
        }
        paths = sorted({path for path, _ in brought})
        names = zip(paths, self.repository.names(f"{self.head}:{path}" for path in paths), strict=True)
        now = {_file(path): blob for path, blob in names if blob is not None}
        left = set(now.values())
        missing = {place: commit for place, commit in brought.items() if place[1] not in left}
        before = self.repository.contents(blob for _, blob in missing)
        after = self.repository.contents(now.get(_file(path), "") for path, _ in missing)
        found = (
            self._vanished_from(path, commit, text, later)
            for ((path, _), commit), text, later in zip(missing.items(), before, after, strict=True)
        )
        return [each for each in found if each is not None]

    def _vanished_from(
        self, path: str, commit: str, text: bytes | None, now: bytes | None
    ) -> Vanished | None:
        """``text`` as vanished, unless it has only grown, or is of another study."""
        if text is None or (now is not None and now.startswith(text)):
            return None
        try:
            header = msgspec.json.decode(text.partition(b"\n")[0], type=Header)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return None
        if header.study != self.study:
            return None
        return Vanished(
            path=path,
            commit=commit,
            experiment=header.experiment,
            origin=header.origin,
            predictions=header.predictions,
        )

    def _introduction(self, commit: Commit) -> Introduction:
        cut = commit.id in self.repository.shallow
        return Introduction(commit=commit.id, parents=() if cut else commit.parents, cut=cut)

    def _read(self, commits: Collection[str], paths: Collection[str]) -> dict[str, Digests]:
        """What each of the commits registers of the study; a lock that several of them have is read once."""
        questions = [(commit, f"{commit}:{path}") for commit in sorted(commits) for path in sorted(paths)]
        blobs = self.repository.names(question for _, question in questions)
        found = [(commit, blob) for (commit, _), blob in zip(questions, blobs, strict=True) if blob]
        locks = self._locks({blob for _, blob in found})
        registered_at: dict[str, Digests] = {commit: {} for commit in commits}
        for commit, blob in found:
            lock = locks[blob]
            if lock is not None and lock.study == self.study:
                for prediction, digest in lock.digests.items():
                    registered_at[commit].setdefault(prediction, set()).add(digest)
        return registered_at

    def _locks(self, blobs: Iterable[str]) -> dict[str, Registered | None]:
        names = sorted(blobs)
        texts = self.repository.contents(names)
        return {
            name: None if text is None else registered(text) for name, text in zip(names, texts, strict=True)
        }


def _file(path: str) -> str:
    return path.rpartition("/")[2]
