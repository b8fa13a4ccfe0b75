"""What a repository's history says of a study: when evidence came in, and what was registered at a commit.

Files are known by their content, whatever they are called, and locks by the study that they name, so that
renames and moves change nothing. It takes one pass over the history, that of other branches and tags
included, and a handful of processes however many files there are.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.audit.commit_graph import CommitGraph
from pytest_prereg.audit.following import Following
from pytest_prereg.audit.study_locks import StudyLocks
from pytest_prereg.errors import HistoryError
from pytest_prereg.evidence.model import Header

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from pytest_prereg.audit.changed_files import Commit
    from pytest_prereg.audit.git import Repository

EVIDENCE = ".jsonl"
LOCKS = ".lock"

WITNESSES = "refs/tags/prereg/{study}/"
"""Tags of the lock, by which it can be shown that it was there without the evidence."""

SESSION = re.compile(r"/[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}\.jsonl$")
"""The path of a session's file, whatever folder holds its experiment's."""

Digests = dict[str, set[str]]
"""Registration digests by prediction id; more than one where two locks of a tree name the same study."""


class Introduction(msgspec.Struct, kw_only=True, frozen=True):
    """A commit that has a file while none of its parents does."""

    commit: str
    parents: tuple[str, ...]
    cut: bool
    """Its parents are missing here (shallow clone), so that it may not be one."""


class Vanished(msgspec.Struct, kw_only=True, frozen=True):
    """A session of the study that a commit has, and that HEAD, or the disk, does not have as it was."""

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
    """The history of one study, up to HEAD, and beside it that of branches, remote branches and tags."""

    def __init__(self, repository: Repository, study: str, head: str) -> None:
        self.repository = repository
        self.study = study
        self.head = head
        self.commits: list[Commit] = []
        """Those on HEAD's ancestry that brought in locks or evidence, of any study: children first."""
        self.graph = CommitGraph({})
        """All commits that are known of: from HEAD, from every ref, and from those that evidence names."""
        self.introductions: dict[str, list[Introduction]] = {}
        """Where each file of evidence came in, by its blob; none for one that is not committed."""
        self.beginnings: dict[str, list[Introduction]] = {}
        """The same of files as they were before they grew, by the blob of what they are now."""
        self.elsewhere: dict[str, list[Introduction]] = {}
        """Where a file, or its beginning, came in on another ref, and not on HEAD's ancestry."""
        self.refs: dict[str, str] = {}
        """The commit of each branch, remote branch and tag, by its full name."""
        self.here: frozenset[str] = frozenset()
        """Commits named by evidence that this repository has."""
        self.vanished: list[Vanished] = []
        self.locks = StudyLocks(repository, study)
        self.lock_files = Following(self.graph, (), LOCKS)
        """Files that may be locks, of whatever study or tool, at every commit of :attr:`graph`."""
        """Sessions that HEAD does not have any more as they were."""
        self.missing: list[Vanished] = []
        """Those that HEAD has, and that are gone from disk or altered there."""
        self._registered: dict[str, Digests] = {}
        self._behind: dict[str, frozenset[str]] = {}

    @classmethod
    def read(
        cls,
        repository: Repository | None,
        study: str,
        evidence: Mapping[str, Path],
        heads: set[str],
        *,
        broken: Collection[str] = (),
    ) -> Past | NoPast:
        """As :meth:`of` up to HEAD, or why that can't be had."""
        if repository is None:
            return NoPast(detail="no git repository, so nothing shows what came first")
        try:
            head = repository.head()
            if head is None:
                return NoPast(detail="nothing is committed yet", is_empty=True)
            return cls.of(repository, study, head, evidence, heads, broken=broken)
        except HistoryError as error:
            return NoPast(detail=error.problems[0].message)

    @classmethod
    def of(
        cls,
        repository: Repository,
        study: str,
        head: str,
        evidence: Mapping[str, Path],
        heads: set[str],
        *,
        broken: Collection[str] = (),
    ) -> Past:
        """Reads everything that has to be known to grade.

        Args:
            repository: Where to look.
            study: The study's id.
            head: The commit at HEAD.
            evidence: The files of evidence, by the name that git has for their content.
            heads: Commits that evidence names as those that it was measured at.
            broken: Paths of evidence that is on disk no more as HEAD has it, from the root of the repository.
        """
        past = cls(repository, study, head)
        past._find(heads)
        changed = list(repository.history(past.graph.parents, (EVIDENCE, LOCKS), evidence))
        own = past.graph.of([head])
        past.commits = [kept for commit in changed if commit.id in own and (kept := _of_kind(commit)).changes]
        past._introduce(changed, evidence, own)
        past.vanished = past._vanished(past.commits)
        past.missing = past._missing(broken)
        past._registered = past._read(changed)
        return past

    def registered(self, commit: str, prediction: str) -> set[str]:
        """Digests under which a prediction was registered in a commit's tree; empty if it was not."""
        return self._registered[commit].get(prediction, set())

    def came_in(self, blob: str) -> list[Introduction]:
        """Where a file of evidence, or what it was before it grew, came in on HEAD's ancestry."""
        return [*self.introductions.get(blob, ()), *self.beginnings.get(blob, ())]

    def holders(self, commits: Collection[str]) -> dict[str, tuple[str, ...]]:
        """Full names of the refs that have each of some commits."""
        return self.graph.holders(commits, self.refs)

    def witness(self, blob: str, prediction: str, digest: str) -> tuple[str, str] | None:
        """Return a tag of the lock, and its commit, that has a prediction and never had the evidence.

        Args:
            blob: The evidence, which no commit may have brought in from which the tagged one comes.
            prediction: Its id.
            digest: What it has to be registered under.
        """
        came = {each.commit for each in (*self.came_in(blob), *self.elsewhere.get(blob, ()))}
        for name, commit in self.witnesses.items():
            if digest in self.registered(commit, prediction) and came.isdisjoint(self._from(commit)):
                return name.removeprefix("refs/tags/"), commit
        return None

    @property
    def witnesses(self) -> dict[str, str]:
        """The commits that tags of the study's lock name, by full name of the tag."""
        prefix = WITNESSES.format(study=self.study)
        return {name: commit for name, commit in self.refs.items() if name.startswith(prefix)}

    def _from(self, commit: str) -> frozenset[str]:
        """All commits from which one comes, itself included."""
        if commit not in self._behind:
            self._behind[commit] = self.graph.of([commit])
        return self._behind[commit]

    def _find(self, heads: set[str]) -> None:
        """Find out which commits there are, and how they follow each other."""
        targets = self.repository.refs()
        asked = list({*heads, *targets.values()})
        answers = self.repository.names(f"{each}^{{commit}}" for each in asked)
        commits = dict(zip(asked, answers, strict=True))
        self.here = frozenset(head for head in heads if commits[head] == head)
        self.refs = {name: commit for name, target in targets.items() if (commit := commits[target])}
        self.graph = CommitGraph(self.repository.ancestry({self.head, *self.here, *self.refs.values()}))

    def _introduce(self, changed: list[Commit], evidence: Mapping[str, Path], own: frozenset[str]) -> None:
        """Find where evidence came in: on HEAD's ancestry, and on that of refs besides."""
        begun = self._begun(changed, evidence)
        found = self._introductions(changed, {*evidence, *begun})
        named = self.graph.of(self.refs.values()) - own
        for blob, several in found.items():
            for now in begun.get(blob, ()) if blob not in evidence else (blob,):
                mine = self.introductions if now == blob else self.beginnings
                mine.setdefault(now, []).extend(each for each in several if each.commit in own)
                away = [each for each in several if each.commit in named]
                if away:
                    self.elsewhere.setdefault(now, []).extend(away)

    def _begun(self, changed: list[Commit], evidence: Mapping[str, Path]) -> dict[str, list[str]]:
        """Committed contents that files of evidence began with, each with what they are now."""
        named: dict[str, list[str]] = defaultdict(list)
        for blob, path in evidence.items():
            named[path.name].append(blob)
        pairs = dict.fromkeys(
            (change.blob, blob)
            for commit in changed
            for change in commit.changes
            if change.blob not in evidence
            for blob in named.get(_file(change.path), ())
        )
        begun: dict[str, list[str]] = defaultdict(list)
        texts = self.repository.contents(before for before, _ in pairs)
        for (before, blob), text in zip(pairs, texts, strict=True):
            if text and evidence[blob].read_bytes().startswith(text):
                begun[before].append(blob)
        return begun

    def _introductions(self, changed: list[Commit], blobs: set[str]) -> dict[str, list[Introduction]]:
        """Commits that have one of the contents while none of their parents does, by content."""
        places: dict[str, set[str]] = defaultdict(set)
        bringing: dict[str, list[Commit]] = defaultdict(list)
        for commit in changed:
            brought = [change for change in commit.changes if change.blob in blobs]
            for change in brought:
                places[change.blob].add(change.path)
            for blob in dict.fromkeys(change.blob for change in brought):
                bringing[blob].append(commit)
        several = {blob: commits for blob, commits in bringing.items() if len(commits) > 1}
        copied = self._copied(several, places)
        return {
            blob: [self._introduction(commit) for commit in commits if (commit.id, blob) not in copied]
            for blob, commits in bringing.items()
        }

    def _copied(
        self, bringing: Mapping[str, list[Commit]], places: Mapping[str, set[str]]
    ) -> set[tuple[str, str]]:
        """Commits, with contents that are new at a place and that a parent has under another name."""
        pairs = [(commit, blob) for blob, commits in bringing.items() for commit in commits]
        moved = {(commit.id, blob) for commit, blob in pairs if _replaces(commit, blob)}
        questions = [
            (commit.id, blob, f"{parent}:{place}")
            for commit, blob in pairs
            if (commit.id, blob) not in moved
            for parent in commit.parents
            for place in sorted(places[blob])
        ]
        answers = self.repository.names(question for _, _, question in questions)
        kept = (
            (commit, blob)
            for (commit, blob, _), answer in zip(questions, answers, strict=True)
            if answer == blob
        )
        return {*moved, *kept}

    def _vanished(self, commits: list[Commit]) -> list[Vanished]:
        brought = {
            (change.path, change.blob): commit.id
            for commit in commits
            for change in commit.changes
            if SESSION.search(change.path)
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

    def _missing(self, broken: Collection[str]) -> list[Vanished]:
        """Sessions as HEAD has them, of files that the disk has otherwise."""
        texts = self.repository.contents(f"{self.head}:{path}" for path in broken)
        found = (
            self._vanished_from(path, self.head, text, None) for path, text in zip(broken, texts, strict=True)
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

    def _read(self, changed: list[Commit]) -> dict[str, Digests]:
        """What each commit that matters registers of the study; a lock that several have is read once."""
        found = (self.introductions, self.beginnings, self.elsewhere)
        came = [each for kind in found for several in kind.values() for each in several]
        asked = {commit for each in came for commit in (each.commit, *each.parents)}
        asked |= {self.head, *self.here, *self.witnesses.values()}
        merges = self.repository.merged(self.graph.merges, LOCKS)
        single = (commit for commit in changed if len(commit.parents) < 2)  # noqa: PLR2004
        self.lock_files = Following(self.graph, [*single, *merges], LOCKS)
        blobs = {blob for _, files in self.lock_files.at(asked) for blob in files.values()}
        own = self.locks.of(sorted(blobs))
        registered_at: dict[str, Digests] = {commit: {} for commit in asked}
        for commit, files in self.lock_files.at(asked, own):
            for blob in files.values():
                for prediction, entry in own[blob].predictions.items():
                    registered_at[commit].setdefault(prediction, set()).add(entry.digest)
        return registered_at


def _of_kind(commit: Commit) -> Commit:
    """A commit without what it changed of files that neither are locks nor are called like evidence."""
    changes = tuple(each for each in commit.changes if each.path.endswith((EVIDENCE, LOCKS)))
    return commit if len(changes) == len(commit.changes) else msgspec.structs.replace(commit, changes=changes)


def _replaces(commit: Commit, blob: str) -> bool:
    """Whether a commit took a file away, or put another in its place, and so a parent has it."""
    replaced = (*(each.before for each in commit.changes), *(each.before for each in commit.removals))
    return any(blob in before for before in replaced)


def _file(path: str) -> str:
    return path.rpartition("/")[2]
