"""A file of records that survives a kill at any moment: what was appended is there, whole, or not at all.

Each record is a frame: its length, the SHA-256 of its payload, and a digest of both and of all heads before,
then the payload. A kill can leave a beginning of the last frame, which is dropped. Anything else that doesn't
fit is damage, and said. A file cut off between two frames is what it was at an earlier moment: nothing in it
can tell.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

WORKLOAD_VERSION = "1"

_LENGTH, _DIGEST, _CHECK = 8, 32, 8
_HEAD = _LENGTH + _DIGEST + _CHECK


class DamagedError(ValueError):
    """A file is not what was written to it."""


class Frames(NamedTuple):
    """What a file holds."""

    payloads: list[bytes]
    whole: int
    """Bytes up to the end of the last whole frame."""
    last: bytes
    """What the next frame is chained to."""


def frames(*payloads: bytes) -> bytes:
    """Return a file of payloads, each with what it is checked by."""
    content, last = b"", b""
    for payload in payloads:
        made, last = _frame(payload, last)
        content += made
    return content


def _frame(payload: bytes, before: bytes) -> tuple[bytes, bytes]:
    """Return a frame, and what the next one is chained to."""
    head = len(payload).to_bytes(_LENGTH, "little") + hashlib.sha256(payload).digest()
    check = _check(before + head)
    return head + check + payload, check


def read_frames(path: Path) -> Frames:
    """Return the payloads of a file; the beginning of a frame at its end is left out.

    Raises:
        DamagedError: A frame is not what was written.
    """
    content = path.read_bytes()
    payloads, place, last = [], 0, b""
    while len(content) - place >= _HEAD:
        head = content[place : place + _HEAD - _CHECK]
        start = place + _HEAD
        check = content[start - _CHECK : start]
        if check != _check(last + head):
            raise DamagedError(f"{path}: the head of the frame at byte {place} was changed, or one before it")
        end = start + int.from_bytes(head[:_LENGTH], "little")
        if end > len(content):
            break
        payload = content[start:end]
        if hashlib.sha256(payload).digest() != head[_LENGTH:]:
            raise DamagedError(f"{path}: the frame at byte {place} was changed")
        payloads.append(payload)
        place, last = end, check
    return Frames(payloads, place, last)


class Journal:
    """Appends frames to a file, each on disk when :meth:`append` returns; any thread may."""

    def __init__(self, path: Path, found: Frames) -> None:
        """Open a file that holds ``found``; what comes after that is cut off.

        Raises:
            OSError: The file can't be written.
        """
        self._whole, self._last = found.whole, found.last
        self._lock = Lock()
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(self._descriptor, self._whole)
        except OSError:
            self.close()
            raise

    def append(self, payload: bytes) -> None:
        """Append one frame.

        Raises:
            OSError: It can't be written, and what had been of it is cut off again, as far as that can be.
        """
        with self._lock:
            content, last = _frame(payload, self._last)
            try:
                self._write(content)
            except BaseException:
                with suppress(OSError):
                    os.ftruncate(self._descriptor, self._whole)
                raise
            self._whole, self._last = self._whole + len(content), last

    def close(self) -> None:
        """Append no more."""
        os.close(self._descriptor)

    def _write(self, content: bytes) -> None:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]
        os.fsync(self._descriptor)


def write_whole(path: Path, content: bytes) -> None:
    """Put a file in place, all of it or not at all, and on disk when this returns."""
    draft = path.with_name(f"{path.name}.draft")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Have the names of a folder on disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _check(head: bytes) -> bytes:
    return hashlib.sha256(head).digest()[:_CHECK]
