"""Reads what has to be a plain file: a pipe or a device that has its name would be read for ever."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def kind_of(path: os.PathLike[str]) -> str | None:
    """Return what a path is, or leads to, in place of a plain file; ``None`` if it is one, or nothing."""
    try:
        return _KINDS.get(stat.S_IFMT(Path(path).stat().st_mode))
    except OSError:
        return None


def read_plain(path: os.PathLike[str]) -> bytes:
    """Return what is in a plain file, or behind a link to one.

    Raises:
        OSError: It can't be read, or is none.
    """
    if kind := kind_of(path):
        raise OSError(errno.EINVAL, f"it is {kind}, and no file", os.fspath(path))
    # What takes the file's place just now would not be waited for, either.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:  # noqa: PTH123
        return file.read()
