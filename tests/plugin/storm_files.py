"""Faults of files: torn, altered, cut or removed, by somebody who has an editor."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from storm_sessions import Storm


def torn(storm: Storm) -> None:
    """The last line of a session that was killed did not get to the disk as a whole: it is run again."""
    process = storm.start()
    storm.after_a_few(process, "returned")
    storm.kill(process)
    last = storm.files()[-1]
    *_, line = last.read_bytes().splitlines(keepends=True)
    off = storm.chance.randint(1, len(line) - 1)
    storm.what.append(f"{off} of {len(line)} bytes")
    os.truncate(last, last.stat().st_size - off)
    # The line that is torn may be the end of a repeat, after which another one had begun.
    storm.may_lose = 2
    if storm.chance.random() < 0.5:
        storm.commit()


def byte_changed(storm: Storm) -> None:
    """A byte is another in a file that something names; or in one that nothing names, as far as one can see it."""
    if storm.chance.random() < 0.2:
        _change_unnamed(storm)
        return
    path = _named(storm)
    before = path.read_bytes()
    whole = _protected(storm, path)
    place = storm.chance.randrange(whole)
    other = storm.chance.choice([one for one in b"0123456789 ,.ex\n\x00\xff" if one != before[place]])
    storm.what.append(f"byte {place} of {whole}")
    _tell(storm, path, lambda: path.write_bytes(before[:place] + bytes([other]) + before[place + 1 :]))


def _change_unnamed(storm: Storm) -> None:
    """A digit in the only file, of a session that was killed: only the log knows, unless git or a successor does."""
    storm.what.append("named by nothing")
    storm.partly(killed=True)
    (path,) = storm.files()
    before = path.read_bytes()
    digits = [match.start() for match in re.finditer(rb'(?<="t":\d\.)\d', before)]
    if not digits:
        return
    place = storm.chance.choice(digits)
    digit = bytes([ord("0") + (before[place] - ord("0") + 1) % 10])
    path.write_bytes(before[:place] + digit + before[place + 1 :])
    found = storm.audit()
    assert (found["altered"], len(found["values"])) == ([], 1), found
    status, output = storm.go("--prereg-verify")
    assert status == 0, output
    assert "1 supported" not in output, output
    storm.unnamed_changes += 1
    path.write_bytes(before)


def line_cut(storm: Storm) -> None:
    path = _named(storm)
    lines = path.read_bytes().splitlines(keepends=True)
    whole = path.read_bytes()[: _protected(storm, path)].count(b"\n")
    number = storm.chance.randrange(whole)
    storm.what.append(f"line {number + 1} of {len(lines)}")
    _tell(storm, path, lambda: path.write_bytes(b"".join([*lines[:number], *lines[number + 1 :]])))


def file_removed(storm: Storm) -> None:
    """A file is gone, empty, cut to some of its lines, told twice, or another's."""
    path = _named(storm, footer=False)
    before = path.read_bytes()
    lines = before.splitlines(keepends=True)
    keep = storm.chance.randrange(len(lines))
    twin = path.with_name(path.name.replace("Z-", "Z-0"))
    changes: dict[str, Callable[[], object]] = {
        "removed": path.unlink,
        "emptied": lambda: path.write_bytes(b""),
        "cut short": lambda: path.write_bytes(b"".join(lines[:keep])),
        "renamed": lambda: path.rename(twin),
        "all lines twice": lambda: path.write_bytes(before + before),
    }
    what = storm.chance.choice(list(changes))
    storm.what.append(what)
    _tell(storm, path, changes[what], lambda: twin.unlink(missing_ok=True))


def _protected(storm: Storm, path: Path) -> int:
    """How many bytes of a file are held to a digest: its whole lines, or those that its own footer is about."""
    before = path.read_bytes()
    if "closed" in storm.what:
        return before.index(b'{"type":"footer"')
    return before.rfind(b"\n") + 1


def _named(storm: Storm, *, footer: bool = True) -> Path:
    """A file whose change has to be noticed: closed, named by a successor, or committed."""
    state = storm.chance.choice([*(["closed"] if footer else []), "succeeded", "committed"])
    killed = storm.chance.random() < 0.5 and state != "closed"
    storm.what.append(f"{'killed, ' * killed}{state}")
    storm.partly(killed=killed)
    (path,) = storm.files()
    if state == "succeeded":
        storm.partly(killed=storm.chance.random() < 0.5)
    elif state == "committed":
        storm.commit()
    return path


def _tell(
    storm: Storm, path: Path, change: Callable[[], object], also: Callable[[], object] = lambda: None
) -> None:
    """Changes the file, which has to be told, and brings it back as it was."""
    before = path.read_bytes()
    is_committed = not storm.git("status", "--porcelain", "--", str(path))

    def restore() -> None:
        also()
        if is_committed:
            storm.git("checkout", "HEAD", "--", str(path))
        path.write_bytes(before)

    storm.notices(change, restore)
