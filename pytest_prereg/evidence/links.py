"""Each session names what was there before it, so that evidence can't vanish unnoticed.

It names the newest file of each experiment, and that names the one before it: a chain within each
experiment. Whoever removes files of one can't avoid a break in the chain of that one, and headers stay short.
"""

from __future__ import annotations

import contextlib
import hashlib
from typing import TYPE_CHECKING

from pytest_prereg.errors import Problem
from pytest_prereg.evidence.naming import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pytest_prereg.evidence.files import SessionFile


def known_digests(files: Iterable[SessionFile]) -> dict[str, str]:
    """Return what the header of the next session says of the ``files`` of the study that are there.

    Left out is what a file of the same experiment names as it is now: whatever happens to it later breaks the
    chain that leads there. A file of another experiment is no substitute. It could be given up together with
    what it names, and the break would be in an experiment that does not matter.
    """
    there = [file for file in files if file.header is not None]
    covered = {link for file in there for link in _links_within(file)}
    return {file.name: file.digest for file in there if (file.name, file.digest) not in covered}


def _links_within(file: SessionFile) -> Iterator[tuple[str, str]]:
    """Yield name and digest of what ``file`` knows of its own experiment."""
    if file.header is not None:
        yield from (link for link in file.header.known.items() if _is_of(link[0], file))


def _is_of(name: str, file: SessionFile) -> bool:
    """Whether the file called ``name`` is one of the experiment that ``file`` belongs to."""
    return name.partition("/")[0] == file.path.parent.name


def check_links(files: Iterable[SessionFile]) -> list[Problem]:
    """Return a problem for each file that a later header names and that is gone, or is no longer what it was.

    ``files`` are all session files of the study. One of another experiment may have grown since: its first
    lines must be the same. One of the same experiment may not: its session had ended before the next began.
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
                problems[name] = _broken(name, "is no longer what it was" if file else "is gone", witness)
            elif _is_of(name, witness):
                problems[name] = _broken(name, "has grown since its session had ended", witness)
    return list(problems.values())


def _broken(name: str, what: str, witness: SessionFile) -> Problem:
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
