"""Merging the files of a lock as git asks a merge driver to: in place, with an exit status.

See "Defining a custom merge driver" in gitattributes(5): zero is a merge, up to 128 a conflict, and more
means that there is no result.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from typing import TYPE_CHECKING, NamedTuple

from pytest_prereg.errors import Problem, StudyError
from pytest_prereg.registry.lock_file import Lock, LockEntry, parse_lock, render_lock
from pytest_prereg.registry.merging import Merged, merge_locks
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MERGED, CONFLICT, FAILED = 0, 1, 129
"""Exit status: merged; merged but for what stands between markers; no result."""

OURS, BETWEEN, THEIRS = "<<<<<<< ours\n", "=======\n", ">>>>>>> theirs\n"

_EMPTY = "\n[predictions]\n"
"""How a lock without predictions ends."""


class Outcome(NamedTuple):
    """What merging came to."""

    status: int
    problems: tuple[Problem, ...] = ()
    """What a person has to decide, or mend."""
    remarks: tuple[str, ...] = ()


def merge_files(base: Path, ours: Path, theirs: Path, name: str) -> Outcome:
    """Merge a lock into ``ours``, whole or not at all.

    Args:
        base: The version that both sides grew out of; empty or absent where there is none.
        ours: The version of one side; it becomes the result.
        theirs: The version of the other side.
        name: The lock, for messages.

    Returns:
        The exit status that git wants, and what to tell. Where a side can't be read, or the sides are of two
        studies, the result is both of them, whole, between markers: never one of them alone, which would pass
        for a merge.
    """
    try:
        mine, yours = ours.read_bytes(), theirs.read_bytes()
        result, outcome = _merged(_bytes(base), mine, yours, name)
        if result != mine:
            _write(ours, result)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        message = f"can't be merged: {place}{error.strerror or error}"
        return Outcome(FAILED, (Problem(code="PR011", path=name, message=message),))
    return outcome


def _merged(base: bytes, ours: bytes, theirs: bytes, name: str) -> tuple[bytes, Outcome]:
    try:
        mine, yours = _side(ours, "our side", name), _side(theirs, "their side", name)
        if mine.study != yours.study:
            raise _two_studies(mine, yours, name)
    except StudyError as error:
        between = [each if each.endswith(b"\n") else each + b"\n" for each in (ours, theirs)]
        marks = [mark.encode() for mark in (OURS, BETWEEN, THEIRS)]
        whole = b"".join([marks[0], between[0], marks[1], between[1], marks[2]])
        return whole, Outcome(CONFLICT, error.problems)
    merged = merge_locks(_common(base, mine.study, name), mine, yours)
    text, lines = merged_text(merged)
    problems = tuple(_undecided(one.message, lines.get(one.table), name) for one in merged.conflicts)
    return text.encode(), Outcome(CONFLICT if problems else MERGED, problems, merged.remarks)


def _side(data: bytes, side: str, name: str) -> Lock:
    try:
        return parse_lock(data, name)
    except StudyError as error:
        first = error.problems[0]
        what = first.message.removeprefix("unreadable lock: ")
        line = f"line {first.line}: " if first.line else ""
        message = f"can't be merged by prediction, since {side} can't be read: {line}{what}"
        raise StudyError(_unmerged(message, name)) from None


def _two_studies(ours: Lock, theirs: Lock, name: str) -> StudyError:
    studies = f"our side registers study {quoted(ours.study)}, and their side study {quoted(theirs.study)}"
    return StudyError(_unmerged(f"can't be merged: {studies}", name))


def _unmerged(message: str, name: str) -> Problem:
    advice = (
        "Both sides stand there whole, between markers. Once this release can read both, of one study:\n"
        f"git checkout -m -- {shlex.quote(name)} && git add {shlex.quote(name)}"
    )
    return Problem(code="PR011", path=name, message=message, advice=advice)


def _undecided(message: str, line: int | None, name: str) -> Problem:
    advice = "Keep what stands on one side of the markers whole; then do anew what the other side did."
    return Problem(code="PR010", path=name, line=line, message=message, advice=advice)


def _common(base: bytes, study: str, name: str) -> Lock | None:
    """The version that both sides grew out of, if there is one that says anything about them.

    Of a criss-cross history git merges the common versions first, and hands over what came of it, markers
    and all.
    """
    try:
        lock = parse_lock(base, name)
    except StudyError:
        return None
    return lock if lock.study == study else None


def merged_text(merged: Merged) -> tuple[str, dict[str, int]]:
    """The text of a merged lock, and the line of the marker by table.

    Where the sides disagree both stand there, a whole table each, so that what is left is in the one form of
    locks whichever of them is taken out.
    """
    text = ""
    lines: dict[str, int] = {}
    for table, ours, theirs in _in_pairs(merged):
        if ours == theirs:
            text += ours
        else:
            lines.setdefault(table, text.count("\n") + 1)
            text += f"{OURS}{ours}{BETWEEN}{theirs}{THEIRS}"
    return text, lines


def _in_pairs(merged: Merged) -> Iterator[tuple[str, str, str]]:
    """Parts of both texts in the order in which they stand there; what one of them lacks is empty."""
    head = render_lock(Lock(study=merged.ours.study)).removesuffix(_EMPTY)
    ours, theirs = (_parts(lock, head) for lock in merged[:2])
    ids = sorted(merged.ours.predictions.keys() | merged.theirs.predictions.keys())
    lists = ("exclusion", "voided", "acknowledged")
    yield "", head, head
    places = [
        *((name, f"short {name}") for name in lists),
        ("predictions", "predictions"),
        *((f"predictions.{name}", f"predictions.{name}") for name in ids),
        *((name, name) for name in lists),
    ]
    for table, part in places:
        yield table, ours.get(part, ""), theirs.get(part, "")


def _parts(lock: Lock, head: str) -> dict[str, str]:
    """The text of a lock after its head, in parts; lists of short entries stand before all predictions."""
    lists = {
        "exclusion": Lock(study=lock.study, exclusions=lock.exclusions),
        "voided": Lock(study=lock.study, voided=lock.voided),
        "acknowledged": Lock(study=lock.study, acknowledged=lock.acknowledged),
    }
    parts = {"predictions": "" if lock.predictions else _EMPTY}
    for name, entry in lock.predictions.items():
        parts[f"predictions.{name}"] = _part(name, entry, lock.study, head)
    for name, alone in lists.items():
        short, _, long = render_lock(alone).removeprefix(head).partition(_EMPTY)
        parts |= {f"short {name}": short, name: long}
    return parts


def _part(name: str, entry: LockEntry, study: str, head: str) -> str:
    return render_lock(Lock(study=study, predictions={name: entry})).removeprefix(head)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _write(path: Path, data: bytes) -> None:
    """Write a file so that whoever reads it has the old one or the new one."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_bytes(data)
        draft.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise
