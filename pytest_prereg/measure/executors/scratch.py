"""The temporary folder of a fork server: its log, output and a working folder for every repeat."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

LOG = "server.log"
CACHES = "caches"


PREFIX = "prereg-"
KEPT_SECONDS = 24 * 3600.0
"""For how long the output of repeats that failed is kept: whoever wants it has looked by then."""


def make() -> Path:
    """Return a new folder, and remove what earlier sessions have kept for long enough."""
    import tempfile  # noqa: PLC0415 - a fork server, which is made small, makes none

    above = Path(tempfile.gettempdir())
    for kept in above.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if _is_old_output(kept):
                remove_tree(kept)
    return Path(tempfile.mkdtemp(prefix=PREFIX, dir=above))


def _is_old_output(folder: Path) -> bool:
    """Whether a folder of this user has had nothing but output for long; one of a server has a log, too."""
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        return False
    names = os.listdir(folder)  # noqa: PTH208
    is_output = bool(names) and all(name[:1].isdigit() and name.endswith(".log") for name in names)
    return is_output and time.time() - found.st_mtime > KEPT_SECONDS


@contextlib.contextmanager
def folder(path: Path) -> Iterator[Path]:
    """Make a folder, and remove it again with all that is in it."""
    path.mkdir()
    try:
        yield path
    finally:
        remove_tree(path)


def remove(folder: Path) -> None:
    """Remove the folder; the output of repeats that failed stays for a day, to be looked at."""
    with contextlib.suppress(OSError):
        (folder / LOG).unlink()
    for workdir in (*folder.glob("work-*"), folder / CACHES):
        remove_tree(workdir)
    with contextlib.suppress(OSError):
        folder.rmdir()


def remove_tree(folder: Path) -> None:
    """Remove a folder with all that is in it, as far as that is allowed.

    A body may have nested folders deeper than Python recurses, or than files can be open at once: what is
    left is flattened first.
    """
    try:
        folder.rmdir()  # as most are: empty
    except FileNotFoundError:
        return
    except OSError:
        _remove_full(folder)


def _remove_full(folder: Path) -> None:
    with contextlib.suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    if folder.is_dir() and not folder.is_symlink():
        while _raise_nested(folder):
            pass
        shutil.rmtree(folder, ignore_errors=True)


def _raise_nested(folder: Path) -> int:
    """Move the folders that lie two levels down up by one; return how many."""
    moved = 0
    for outer in _folders(folder):
        for inner in _folders(outer):
            with contextlib.suppress(OSError):
                inner.rename(folder / os.urandom(8).hex())
                moved += 1
        with contextlib.suppress(OSError):
            outer.rmdir()
    return moved


def _folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return [Path(entry) for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
