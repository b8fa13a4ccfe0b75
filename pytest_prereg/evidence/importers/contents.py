"""The bytes of a result file, read once: a pipe or a device is none, and nothing is without end."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_prereg.evidence.importers.complaints import Complaints

LARGEST = 1 << 29
"""Bytes; read as JSON, numbers take some ten times the room that they take in a file."""


def contents_of(path: Path, complaints: Complaints) -> bytes:
    """Return what is in a regular file, or behind a link to one.

    Raises:
        EvidenceError: PR110: it can't be read, is no regular file, or is larger than ``LARGEST``.
    """
    try:
        # what is opened to be looked at must not wait for somebody to write into it
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            data = _regular(descriptor, complaints)
        finally:
            os.close(descriptor)
    except OSError as error:
        complaints.fail("PR110", f"the file can't be read: {error.strerror}")
    if len(data) > LARGEST:
        complaints.fail("PR110", f"the file has more than {LARGEST >> 20} MiB")
    return data


def _regular(descriptor: int, complaints: Complaints) -> bytes:
    """Return what is in an open file, and one byte more than ``LARGEST`` if it is larger."""
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        message = "this is a pipe or a device, which leaves nothing to be looked up later"
        complaints.fail("PR110", message, advice="Save what comes out of it as a file.")
    with open(descriptor, "rb", closefd=False) as stream:
        return stream.read(LARGEST + 1)
