"""The temporary folder of a fork server: its log, output and a working folder for every repeat."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

LOG = "server.log"
CACHES = "caches"


def make() -> Path:
    """Return a new folder."""
    import tempfile  # noqa: PLC0415 - a fork server, which is made small, makes none

    return Path(tempfile.mkdtemp(prefix="prereg-"))


@contextlib.contextmanager
def folder(path: Path) -> Iterator[Path]:
    """Make a folder, and remove it again with all that is in it."""
    path.mkdir()
    try:
        yield path
    finally:
        remove_tree(path)


def remove(folder: Path) -> None:
    """Remove the folder; the output of repeats that failed stays, for someone to look at."""
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
