"""Where what was imported had been before: the files that it came from, and other studies that took them in.

What the history has to be asked for beside the study's own evidence. A header names the file that it came
from by its content, as git does, so that a rename hides nothing.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pytest_prereg.audit.history.committed_sessions import SESSION
from pytest_prereg.errors import HistoryError
from pytest_prereg.evidence.file_origins import blob_of, digests_of, origins_of
from pytest_prereg.evidence.model import Header
from pytest_prereg.evidence.naming import blob_id

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

    from pytest_prereg.audit.history.git import Repository
    from pytest_prereg.evidence.files import SessionFile

_header = msgspec.json.Decoder(Header)


class Foreign(NamedTuple):
    """A session of another study of the repository, with data from a file that this study takes in, too."""

    path: Path
    blob: str
    header: Header

    @property
    def name(self) -> str:
        """``experiment/file``: the path below the evidence folder."""
        return f"{self.path.parent.name}/{self.path.name}"


class Origins(NamedTuple):
    """What the history is to be asked for, of the files that imports came from."""

    files: frozenset[str] = frozenset()
    """Their contents, as git names them."""
    foreign: tuple[Foreign, ...] = ()

    @property
    def contents(self) -> set[str]:
        """All that is to be looked for, as git names it."""
        return {*self.files, *(one.blob for one in self.foreign)}

    @property
    def heads(self) -> set[str]:
        """Commits at which other studies took in the same."""
        return {one.header.head for one in self.foreign if one.header.head is not None}


def origins(
    repository: Repository | None, study: str, files: Iterable[SessionFile], offered: Collection[str] = ()
) -> Origins:
    """Return where what a study imported came from.

    Args:
        repository: The one that it lies in.
        study: Its id.
        files: All of its sessions.
        offered: Digests of files that it is about to take in.
    """
    every = list(files)
    digests = {*offered}.union(*(digests_of(one.header) for one in every))
    if repository is None or not digests:
        return Origins()
    own = {one.path for one in every}
    foreign: tuple[Foreign, ...] = ()
    with suppress(HistoryError):  # who reads the history is told
        foreign = tuple(_foreign(repository, study, own, digests))
    blobs = (blob_of(origin) for one in every for origin in origins_of(one.header))
    return Origins(files=frozenset(filter(None, blobs)), foreign=foreign)


def _foreign(
    repository: Repository, study: str, own: Collection[Path], digests: Collection[str]
) -> Iterator[Foreign]:
    for path in repository.tracked("*.jsonl"):
        if path in own or not SESSION.search(path.as_posix()):
            continue
        header = _header_of(path)
        if header is not None and header.study != study and not digests_of(header).isdisjoint(digests):
            yield Foreign(path, blob_id(path.read_bytes(), repository.algorithm), header)


def _header_of(path: Path) -> Header | None:
    try:
        with path.open("rb") as stream:
            return _header.decode(stream.readline())
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
