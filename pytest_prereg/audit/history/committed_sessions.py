"""Sessions as commits had them: what evidence on disk began as, what is gone, what is another study's.

All is read from git, whatever a work tree makes of it. A session is known by its first line, so that its
name and its folder don't matter; among files called like one in other places, data sets perhaps, only so
much is read.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pytest_prereg.evidence.model import Finished, Header

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from pytest_prereg.audit.history.changed_files import Commit
    from pytest_prereg.audit.history.git import Repository

EVIDENCE = ".jsonl"
SESSION = re.compile(r"/[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}\.jsonl$")
"""The path of a session's file, whatever folder holds its experiment's."""
LARGEST = 1 << 20
TOGETHER = 1 << 25
"""Bytes of one file, and of all, that are neither called like a session nor lie where the study's do."""

_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_header = msgspec.json.Decoder(Header)
_finished = msgspec.json.Decoder(Finished)


class Vanished(msgspec.Struct, kw_only=True, frozen=True):
    """A session of the study that a commit has, and that the study does not have any more as it was."""

    path: str
    commit: str
    experiment: str
    origin: str
    """As its header says; a ``pilot`` could never have decided anything."""
    predictions: dict[str, str] = {}
    """Registration digests that its header binds, by prediction id."""
    kept: str | None = None
    """Where HEAD still has it, and the study does not read it."""


class Place(NamedTuple):
    """Where a file came in."""

    path: str
    commit: str


class CommittedSession(msgspec.Struct, kw_only=True, frozen=True):
    """A file that commits have, that may be a session, and that no evidence on disk is as it was."""

    blob: str
    places: tuple[Place, ...]
    """Children first."""
    header: Header | None
    """``None`` where its first line can't be read."""
    begins: tuple[str, ...] = ()
    """Evidence on disk that begins with it, by the name that git has for that."""
    rivals: tuple[str, ...] = ()
    """Evidence on disk that is the same session by its name or its header, where neither begins with the
    other."""
    text: bytes = b""
    """What is in it; nothing where evidence begins with it, or where it is another study's."""


class CommittedSessions:
    """Reads the sessions that commits brought in, beside the evidence that a study has on disk."""

    def __init__(
        self, repository: Repository, study: str, head: str, evidence: Mapping[str, Path], folder: str | None
    ) -> None:
        """Take in what there is on disk.

        Args:
            repository: Where to read.
            study: The study's id.
            head: The commit at HEAD.
            evidence: Its files of evidence, by the name that git has for their content.
            folder: Where it reads evidence, from the root of the repository; ``None`` outside of it.
        """
        self._repository = repository
        self._study = study
        self._head = head
        self._disk = _Disk(evidence)
        self._folder = folder
        self.unread = 0
        """Files that are called ``*.jsonl``, lie elsewhere, and were too large to be looked into."""

    def read(self, commits: Iterable[Commit]) -> list[CommittedSession]:
        """Return all files that may be sessions, but those that are evidence on disk, the newest first."""
        brought: dict[str, list[Place]] = defaultdict(list)
        for commit in commits:
            for change in commit.changes:
                if change.path.endswith(EVIDENCE) and change.blob not in self._disk.evidence:
                    brought[change.blob].append(Place(change.path, commit.id))
        asked = self._asked(brought)
        texts = self._repository.contents(asked)
        found = (
            self._session(blob, tuple(brought[blob]), text)
            for blob, text in zip(asked, texts, strict=True)
            if text is not None
        )
        return [each for each in found if each is not None]

    def _asked(self, brought: Mapping[str, list[Place]]) -> list[str]:
        """Files to be read: all that are likely, and of others as many as there is time for."""
        likely = {
            blob for blob, places in brought.items() if any(self._is_likely(each.path) for each in places)
        }
        others = [blob for blob in brought if blob not in likely and any("/" in p for p, _ in brought[blob])]
        left, chosen = TOGETHER, set[str]()
        sizes = self._repository.sizes(others)
        for size, blob in sorted(zip(sizes, others, strict=True)):
            left -= size
            if size <= LARGEST and left >= 0:
                chosen.add(blob)
        self.unread = len({place.path for blob in others if blob not in chosen for place in brought[blob]})
        foreign = self._of_others({blob: brought[blob] for blob in likely})
        return [blob for blob in brought if blob in chosen or (blob in likely and blob not in foreign)]

    def _is_likely(self, path: str) -> bool:
        return bool(SESSION.search(path)) or self._is_read(path) or _file(path) in self._disk.named

    def _is_read(self, path: str) -> bool:
        """Whether a file of this path is where the study looks for sessions."""
        return self._folder is not None and path.rpartition("/")[0].rpartition("/")[0] == self._folder

    def _of_others(self, brought: Mapping[str, list[Place]]) -> set[str]:
        """Files that HEAD has, and that say in the work tree that they are another study's."""
        paths = [
            (blob, path)
            for blob, places in brought.items()
            for path, _ in places
            if not self._is_read(path) and _file(path) not in self._disk.named
        ]
        names = self._repository.names(f"{self._head}:{path}" for _, path in paths)
        at_head = [place for place, now in zip(paths, names, strict=True) if now == place[0]]
        headers = ((blob, self._disk.header(self._repository.root / path)) for blob, path in at_head)
        return {blob for blob, header in headers if header is not None and header.study != self._study}

    def _session(self, blob: str, places: tuple[Place, ...], text: bytes) -> CommittedSession | None:
        first, newline, _ = text.partition(b"\n")
        header = _decoded(first)
        begins = self._disk.beginning_with(text, first if newline else None, places)
        if begins:
            return CommittedSession(blob=blob, places=places, header=header, begins=begins)
        if header is None:
            damaged = bool(newline) and any(self._is_read(path) for path, _ in places)
            return CommittedSession(blob=blob, places=places, header=None, text=text) if damaged else None
        rivals = self._disk.same(text, header, places)
        if header.study != self._study and not rivals:
            return CommittedSession(blob=blob, places=places, header=header)
        return CommittedSession(blob=blob, places=places, header=header, rivals=rivals, text=text)

    def vanished(self, sessions: Iterable[CommittedSession], own: Collection[str]) -> list[Vanished]:
        """Return the study's evidence that commits had, and that neither its folder at HEAD nor the disk has.

        A session that has only grown since is not among it.

        Args:
            sessions: All that were read.
            own: The commits on HEAD's ancestry.
        """
        every = [(each, tuple(place for place in each.places if place.commit in own)) for each in sessions]
        lost = [(each, places) for each, places in every if each.text and self._were_evidence(each, places)]
        lost = self._without_grown(lost, self._read_at_head()) if lost else []
        kept = self._kept(lost)
        lost = [one for one in lost if not (one[0].blob in kept and self._is_of_copy(one[0]))]
        lost = self._without_grown(lost, set(kept), even_so=set(kept))
        return [one for each, places in lost for one in self._vanished(each, places, kept.get(each.blob))]

    def missing(self, broken: Collection[str]) -> list[Vanished]:
        """Return sessions as HEAD has them, of files that the disk has otherwise.

        Args:
            broken: Their paths, from the root of the repository.
        """
        texts = self._repository.contents(f"{self._head}:{path}" for path in broken)
        found = (
            (path, _decoded((text or b"").partition(b"\n")[0]))
            for path, text in zip(broken, texts, strict=True)
        )
        return [
            _gone(path, self._head, header)
            for path, header in found
            if header is not None and header.study == self._study
        ]

    def _were_evidence(self, session: CommittedSession, places: Iterable[Place]) -> bool:
        return any(self._was_evidence(session, path) for path, _ in places)

    def _is_of_copy(self, session: CommittedSession) -> bool:
        """Whether a session is of a study that was made from this one, and is kept beside it."""
        return is_of_another(session, self._study) and not any(
            self._is_read(path) or _file(path) in self._disk.named for path, _ in session.places
        )

    def _was_evidence(self, session: CommittedSession, path: str) -> bool:
        header = session.header
        if header is None:
            return self._is_read(path) and self._disk.lacks(session.text, path)
        if header.study != self._study and not session.rivals:
            return False
        return bool(SESSION.search(path)) or _experiment(path) == header.experiment

    def _read_at_head(self) -> set[str]:
        if self._folder is None:
            return set()
        below = self._repository.blobs_at(self._head, self._folder)
        return {blob for path, blob in below.items() if self._is_read(path) and path.endswith(EVIDENCE)}

    @staticmethod
    def _without_grown(
        lost: list[tuple[CommittedSession, tuple[Place, ...]]],
        now: Collection[str],
        even_so: Collection[str] = (),
    ) -> list[tuple[CommittedSession, tuple[Place, ...]]]:
        """Those of which no file that is there ``now`` begins with them; ``even_so`` stay all the same."""
        texts = [each.text for each, _ in lost if each.blob in now]
        return [
            (each, places)
            for each, places in lost
            if each.blob in even_so
            or not (each.blob in now or any(text.startswith(each.text) for text in texts))
        ]

    def _kept(self, lost: Iterable[tuple[CommittedSession, tuple[Place, ...]]]) -> dict[str, str]:
        """Where HEAD has files elsewhere, by the name that git has for them."""
        paths = [(each.blob, path) for each, places in lost for path, _ in places]
        names = self._repository.names(f"{self._head}:{path}" for _, path in paths)
        return {blob: path for (blob, path), now in zip(paths, names, strict=True) if now == blob}

    def _vanished(
        self, session: CommittedSession, places: Iterable[Place], kept: str | None
    ) -> Iterator[Vanished]:
        commits = {path: commit for path, commit in places if self._was_evidence(session, path)}
        for path, commit in commits.items():
            yield _gone(path, commit, session.header, kept)


class _Disk:
    """The evidence on disk, found by what a session is known by."""

    def __init__(self, evidence: Mapping[str, Path]) -> None:
        self.evidence = evidence
        self.named: dict[str, list[str]] = defaultdict(list)
        """By name of the file."""
        for blob, path in evidence.items():
            self.named[path.name].append(blob)

    @cached_property
    def _first_lines(self) -> dict[str, bytes]:
        return {blob: _first_line(path) for blob, path in self.evidence.items()}

    @cached_property
    def _with_line(self) -> dict[bytes, list[str]]:
        found: dict[bytes, list[str]] = defaultdict(list)
        for blob, line in self._first_lines.items():
            found[line].append(blob)
        return found

    @cached_property
    def _sessions(self) -> dict[tuple[str, str], list[str]]:
        """By the name and the experiment that headers give."""
        found: dict[tuple[str, str], list[str]] = defaultdict(list)
        for blob, line in self._first_lines.items():
            if (header := _decoded(line)) is not None:
                found[header.session, header.experiment].append(blob)
        return found

    def beginning_with(self, text: bytes, first: bytes | None, places: Iterable[Place]) -> tuple[str, ...]:
        """Return the evidence that begins with a text: among that of its name, or of its first line."""
        known = [blob for path, _ in places for blob in self.named.get(_file(path), ())]
        if first is not None:
            known += self._with_line.get(first, ())
        return tuple(blob for blob in dict.fromkeys(known) if text and self._starts(blob, text))

    def same(self, text: bytes, header: Header, places: Iterable[Place]) -> tuple[str, ...]:
        """Return the evidence that is the same session as a text, and that the text does not begin with."""
        known = [
            blob for path, _ in places if SESSION.search(path) for blob in self.named.get(_file(path), ())
        ]
        known += self._sessions.get((header.session, header.experiment), ())
        others = (blob for blob in dict.fromkeys(known) if not self._starts(blob, text))
        return tuple(blob for blob in others if not text.startswith(self.evidence[blob].read_bytes()))

    def lacks(self, text: bytes, path: str) -> bool:
        """Whether a text has repeats that no evidence of its name has: its own first line can't be read."""
        repeats = {line for line in text.split(b"\n") if _is_finished(line)}
        for blob in self.named.get(_file(path), ()):
            repeats -= {*self.evidence[blob].read_bytes().split(b"\n")}
        return bool(repeats)

    @staticmethod
    def header(path: Path) -> Header | None:
        """Return the header of a file of the work tree, if there is one."""
        try:
            return _decoded(_first_line(path))
        except OSError:
            return None

    def _starts(self, blob: str, text: bytes) -> bool:
        with self.evidence[blob].open("rb") as stream:
            return stream.read(len(text)) == text


def is_of_another(session: CommittedSession, study: str) -> bool:
    """Return whether a session says that it is of another study."""
    return session.header is not None and session.header.study != study


def _gone(path: str, commit: str, header: Header | None, kept: str | None = None) -> Vanished:
    return Vanished(
        path=path,
        commit=commit,
        experiment=header.experiment if header else _experiment(path),
        origin=header.origin if header else "measured",
        predictions=header.predictions if header else {},
        kept=kept,
    )


def _decoded(line: bytes) -> Header | None:
    try:
        return _header.decode(line)
    except _UNREADABLE:
        return None


def _is_finished(line: bytes) -> bool:
    try:
        _finished.decode(line)
    except _UNREADABLE:
        return False
    return True


def _first_line(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.readline().removesuffix(b"\n")


def _file(path: str) -> str:
    return path.rpartition("/")[2]


def _experiment(path: str) -> str:
    """The name of the folder that a file lies in."""
    return path.rpartition("/")[0].rpartition("/")[2]
