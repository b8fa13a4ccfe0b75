"""Each session names what was there before it, so that evidence can't vanish unnoticed."""

from __future__ import annotations

import contextlib
import hashlib
from typing import TYPE_CHECKING

from pytest_prereg.errors import Problem
from pytest_prereg.evidence.naming import shown

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pytest_prereg.evidence.files import SessionFile


def known_digests(files: Iterable[SessionFile]) -> dict[str, str]:
    """Return what the header of the next session says of the ``files`` of the study that are there."""
    return {file.name: file.digest for file in files if file.header is not None}


def check_links(files: Iterable[SessionFile]) -> list[Problem]:
    """Return a problem for each file that a later header names and that is gone, or is no longer what it was.

    ``files`` are all session files of the study. A file may have grown since: its first lines must be the
    same.
    """
    present = {file.name: file for file in files}
    prefixes: dict[str, frozenset[str]] = {}
    problems: dict[str, Problem] = {}
    for witness in present.values():
        for name, digest in witness.header.known.items() if witness.header else ():
            file = present.get(name)
            if name in problems or (file is not None and file.digest == digest):
                continue
            if name not in prefixes:
                prefixes[name] = _prefix_digests(file.path) if file else frozenset()
            if digest not in prefixes[name]:
                problems[name] = _broken(name, file, witness)
    return list(problems.values())


def _broken(name: str, file: SessionFile | None, witness: SessionFile) -> Problem:
    what = "is gone" if file is None else "is no longer what it was"
    return Problem(
        code="PR207",
        message=f'evidence "{name}" {what}; "{witness.name}" was written when it was there',
        path=shown(witness.path.parent.parent / name),
        advice="Bring it back from git: what must not count is excluded with a reason, never removed.",
    )


def _prefix_digests(path: Path) -> frozenset[str]:
    """Return the digests of all beginnings of the file that end with a whole line."""
    total = hashlib.sha256()
    digests = set()
    with (
        contextlib.suppress(OSError),
        path.open("rb") as stream,
    ):  # that it can't be read is a problem of the file
        for line in stream:
            if line.endswith(b"\n"):
                total.update(line)
                digests.add(f"sha256:{total.hexdigest()}")
    return frozenset(digests)
