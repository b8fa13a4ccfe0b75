"""What commits changed, as git lists it: files by path, with their content before and after."""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_CHUNK = 1 << 20
"""Bytes that are read at once."""
_NO_FILE = frozenset({b"000000", b"160000"})
"""Modes of what a tree does not have, and of a folder that another repository keeps."""
_NOTHING = "0"


class Change(msgspec.Struct, kw_only=True, frozen=True):
    """A file that a commit has and none of its parents has at that place with that content."""

    path: str
    blob: str
    before: tuple[str, ...] = ()
    """What each parent has there; zeros where it has nothing."""


class Removal(msgspec.Struct, kw_only=True, frozen=True):
    """A file that a commit does not have, and all of its parents have."""

    path: str
    before: tuple[str, ...]


class Commit(msgspec.Struct, kw_only=True, frozen=True):
    """A commit with the files that it brought in, and those that it took away."""

    id: str
    parents: tuple[str, ...]
    changes: tuple[Change, ...]
    removals: tuple[Removal, ...] = ()


def _parts(answers: IO[bytes]) -> Iterator[bytes]:
    """What stands between zero bytes."""
    rest = b""
    while chunk := answers.read(_CHUNK):
        *whole, rest = (rest + chunk).split(b"\0")
        yield from whole
    yield rest


def read_commits(
    answers: IO[bytes], suffixes: tuple[bytes, ...], blobs: frozenset[bytes]
) -> Iterator[Commit]:
    """Yield what ``diff-tree -c --raw -z --no-abbrev --format='%H %P'`` says of commits, as it says it.

    Args:
        answers: A part for each commit, then two for each file, with zero bytes between them.
        suffixes: How the names of files end that are kept.
        blobs: Contents that are kept as well, as they come or as they go, whatever the file is called.
    """
    parts = _parts(answers)
    header = b""
    entries: list[tuple[list[bytes], bytes]] = []
    for part in parts:
        if part[:1] == b":" or part[:2] == b"\n:":
            path, fields = next(parts), part.split(b" ")
            if path.endswith(suffixes) or not blobs.isdisjoint(fields):
                entries.append((fields, path))
        elif text := part.lstrip(b"\n"):
            if entries:
                yield _commit(header, entries)
            header, entries = text, []
    if entries:
        yield _commit(header, entries)


def _commit(header: bytes, entries: Iterable[tuple[list[bytes], bytes]]) -> Commit:
    changes, removals = [], []
    for fields, path in entries:
        modes, blobs, is_gone = _sides(fields)
        *before, now = (
            _NOTHING * len(blob) if mode in _NO_FILE else blob.decode("ascii")
            for mode, blob in zip(modes, blobs, strict=True)
        )
        if is_gone or modes[-1] in _NO_FILE:
            if not _NO_FILE.issuperset(modes):
                removals.append(Removal(path=os.fsdecode(path), before=tuple(before)))
        else:
            changes.append(Change(path=os.fsdecode(path), blob=now, before=tuple(before)))
    commit, *parents = header.decode("ascii").split()
    return Commit(id=commit, parents=tuple(parents), changes=tuple(changes), removals=tuple(removals))


def _sides(fields: list[bytes]) -> tuple[list[bytes], list[bytes], bool]:
    """Modes and contents of the parents, then of the commit itself; and whether it has nothing there.

    ``:`` for each parent comes first; then modes of all, and contents in the same order; a letter for each
    parent is the last field.
    """
    count = fields[0].count(b":")
    modes = [fields[0].rpartition(b":")[2], *fields[1 : count + 1]]
    return modes, fields[count + 1 : 2 * count + 2], set(fields[-1]) == {ord("D")}
