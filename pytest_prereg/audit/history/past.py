"""What a repository's history says of a study: when evidence came in, and what was registered at a commit.

Files are known by their content, whatever they are called, and locks by the study that they name, so that
renames and moves change nothing. It takes one pass over the history, that of other branches and tags
included, and a handful of processes however many files there are.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pytest_prereg.audit.history.commit_graph import CommitGraph
from pytest_prereg.audit.history.committed_sessions import EVIDENCE, CommittedSessions, is_of_another
from pytest_prereg.audit.history.following import Following
from pytest_prereg.audit.history.study_locks import StudyLocks
from pytest_prereg.errors import HistoryError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from pytest_prereg.audit.history.changed_files import Commit
    from pytest_prereg.audit.history.committed_sessions import CommittedSession, Vanished
    from pytest_prereg.audit.history.git import Repository

LOCKS = ".lock"

WITNESSES = "refs/tags/prereg/{study}/"
"""Tags of the lock, by which it can be shown that it was there without the evidence."""

Digests = dict[str, set[str]]
"""Registration digests by prediction id; more than one where two locks of a tree name the same study."""


class Introduction(msgspec.Struct, kw_only=True, frozen=True):
    """A commit that has a file while none of its parents does."""

    commit: str
    parents: tuple[str, ...]
    cut: bool
    """Its parents are missing here (shallow clone), so that it may not be one."""


class Alteration(NamedTuple):
    """A session as another ref has it."""

    blob: str
    commit: str
    """That brought it in."""


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
        self.known: dict[str, list[Introduction]] = {}
        """Where other contents that were asked for came in on HEAD's ancestry."""
        self.elsewhere: dict[str, list[Introduction]] = {}
        """Where a file, or its beginning, came in on another ref, and not on HEAD's ancestry."""
        self.refs: dict[str, str] = {}
        """The commit of each branch, remote branch and tag, by its full name."""
        self.here: frozenset[str] = frozenset()
        """Commits named by evidence that this repository has."""
        self.altered: dict[str, list[Alteration]] = {}
        """What another ref has of a session, and not HEAD's ancestry, where neither begins with the other."""
        self.locks = StudyLocks(repository, study)
        self.lock_files = Following(self.graph, (), LOCKS)
        """Files that may be locks, of whatever study or tool, at every commit of :attr:`graph`."""
        self.vanished: list[Vanished] = []
        """Sessions that HEAD does not have any more as they were, or not where the study reads them."""
        self.of_others: list[CommittedSession] = []
        """Sessions of other studies that HEAD's ancestry has had, or has where this study reads its own."""
        self.imports: list[CommittedSession] = []
        """Imports of any study that any ref has had, and that are on disk no more as they were."""
        self.unread = 0
        """Files on HEAD's ancestry that might have been sessions, and were too large to be looked into."""
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
        others: Collection[str] = (),
        broken: Collection[str] = (),
        folder: str | None = None,
    ) -> Past | NoPast:
        """As :meth:`of` up to HEAD, or why that can't be had."""
        if repository is None:
            return NoPast(detail="no git repository, so nothing shows what came first")
        try:
            head = repository.head()
            if head is None:
                return NoPast(detail="nothing is committed yet", is_empty=True)
            return cls.of(
                repository, study, head, evidence, heads, others=others, broken=broken, folder=folder
            )
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
        others: Collection[str] = (),
        broken: Collection[str] = (),
        folder: str | None = None,
    ) -> Past:
        """Reads everything that has to be known to grade.

        Args:
            repository: Where to look.
            study: The study's id.
            head: The commit at HEAD.
            evidence: The files of evidence, by the name that git has for their content.
            heads: Commits that evidence names as those that it was measured at.
            others: Other contents that are to be looked for, by the name that git has for them.
            broken: Paths of evidence that is on disk no more as HEAD has it, from the root of the repository.
            folder: Where the study reads evidence, from there; ``None`` outside of it.
        """
        past = cls(repository, study, head)
        past._find(heads)
        changed = list(repository.history(past.graph.parents, (EVIDENCE, LOCKS), {*evidence, *others}))
        own = past.graph.of([head])
        past.commits = [kept for commit in changed if commit.id in own and (kept := _of_kind(commit)).changes]
        reading = CommittedSessions(repository, study, head, evidence, folder)
        sessions = reading.read(changed)
        past._introduce(changed, evidence, own, sessions)
        came = past._first(past._introductions(changed, {*others} - {*evidence})) if others else {}
        past.known = {
            blob: [each for each in several if each.commit in own] for blob, several in came.items()
        }
        past.vanished = reading.vanished(sessions, own)
        past.missing = reading.missing(broken)
        past.unread = reading.unread
        past.of_others = [one for one in sessions if is_of_another(one, study) and _is_on(one, own)]
        past.imports = [one for one in sessions if one.header is not None and one.header.imported]
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

    def _around(self, commit: str) -> tuple[str, ...]:
        """A commit and its parents."""
        return commit, *self.graph.parents[commit]

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

    def _introduce(
        self,
        changed: list[Commit],
        evidence: Mapping[str, Path],
        own: frozenset[str],
        sessions: list[CommittedSession],
    ) -> None:
        """Find where evidence came in: on HEAD's ancestry, and on that of refs besides."""
        begun = {session.blob: session.begins for session in sessions if session.begins}
        found = self._first(self._introductions(changed, {*evidence, *begun}))
        named = self.graph.of(self.refs.values()) - own
        for blob, several in found.items():
            for now in begun.get(blob, ()) if blob not in evidence else (blob,):
                mine = self.introductions if now == blob else self.beginnings
                mine.setdefault(now, []).extend(each for each in several if each.commit in own)
                away = [each for each in several if each.commit in named]
                if away:
                    self.elsewhere.setdefault(now, []).extend(away)
        for session in sessions:
            away_at = [place.commit for place in session.places if place.commit in named]
            if away_at and not _is_on(session, own):
                for now in session.rivals:
                    self.altered.setdefault(now, []).append(Alteration(session.blob, away_at[-1]))

    def _first(self, found: dict[str, list[Introduction]]) -> dict[str, list[Introduction]]:
        """The introductions without those of a file that an earlier one had brought in: they say nothing new.

        It was known ever since, though it may have been taken out meanwhile, as by a revert.
        """
        several = {each.commit for came in found.values() if len(came) > 1 for each in came}
        after = self.graph.holders(several, {commit: commit for commit in several}) if several else {}
        later = {commit: {*names} - {commit} for commit, names in after.items()}
        return {
            blob: [each for each in came if not any(each.commit in later.get(one.commit, ()) for one in came)]
            for blob, came in found.items()
        }

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

    def _introduction(self, commit: Commit) -> Introduction:
        cut = commit.id in self.repository.shallow
        return Introduction(commit=commit.id, parents=() if cut else commit.parents, cut=cut)

    def _read(self, changed: list[Commit]) -> dict[str, Digests]:
        """What each commit that matters registers of the study; a lock that several have is read once."""
        found = (self.introductions, self.beginnings, self.elsewhere, self.known)
        came = [each for kind in found for several in kind.values() for each in several]
        asked = {commit for each in came for commit in (each.commit, *each.parents)}
        asked |= {self.head, *self.here, *self.witnesses.values()}
        asked |= {each for one in self.imports for place in one.places for each in self._around(place.commit)}
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


def _is_on(session: CommittedSession, commits: Collection[str]) -> bool:
    """Whether one of some commits brought a session in."""
    return any(place.commit in commits for place in session.places)
