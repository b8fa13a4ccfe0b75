"""Writing to disk so that it outlives a power cut: what returns without an error is there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def write_synced(descriptor: int, data: bytes) -> None:
    """Append ``data``: one write and one sync.

    Raises:
        OSError: It could not be written; some of it may be there.
    """
    view = memoryview(data)
    while view:  # more than once only if the disk is filling up, or for gigabytes
        view = view[os.write(descriptor, view) :]
    os.fsync(descriptor)


def write_new(path: Path, data: bytes) -> None:
    """Write a file that must not be there yet.

    Raises:
        OSError: It is there, or could not be written; some of it may be there.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        write_synced(descriptor, data)
    finally:
        os.close(descriptor)


def put(path: Path, data: bytes) -> None:
    """Write a file whole or not at all, in place of what is there; its folder is not synced.

    Raises:
        OSError: It could not be written; nothing of it is there.
    """
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)  # of a writer that was killed
    try:
        write_new(part, data)
        part.rename(path)
    finally:
        part.unlink(missing_ok=True)


def sync_file(path: Path) -> None:
    """Let what is in a file outlive a power cut.

    Raises:
        OSError: It is gone, or can't be synced.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Make ``folder`` and its parents.

    Raises:
        OSError: One can't be made, or is a file.
    """
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for place in missing:
        sync_folder(place.parent)


def sync_folder(folder: Path) -> None:
    """Let the names in ``folder`` outlive a power cut.

    Raises:
        OSError: It is gone, or can't be synced.
    """
    sync_file(folder)
