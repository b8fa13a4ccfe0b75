"""What a batch of reward programs leaves behind: processes, told from others by a name of their own."""

from __future__ import annotations

import os
import secrets
import signal
import time
from contextlib import suppress
from pathlib import Path

TAKE_NAME = "import ctypes; ctypes.CDLL(None).prctl(15, {name!r}, 0, 0, 0)"
"""A line of a program: ``PR_SET_NAME``, as sandboxes let nobody write to ``/proc``. Children have it, too."""
PATIENCE = 5.0
_LONGEST = 15
"""Bytes of a name that the kernel keeps."""


def new_name() -> bytes:
    """Return a name that no other process has."""
    return secrets.token_hex(_LONGEST).encode()[:_LONGEST]


def alive(name: bytes) -> list[int]:
    """Return the ids of the living processes of a name, whatever group, session or sandbox they moved to."""
    folders = (folder for folder in Path("/proc").iterdir() if folder.name.isdecimal())
    return [int(folder.name) for folder in folders if _is_alive(folder, name)]


def _is_alive(folder: Path, name: bytes) -> bool:
    try:
        ours, _, fields = (folder / "stat").read_bytes().partition(b"(")[2].rpartition(b")")
    except OSError:  # gone by now
        return False
    return ours == name and fields.split()[0] not in {b"Z", b"X"}


def end(name: bytes) -> None:
    """Kill until nothing of that name is left: one round can miss what is forked while it looks.

    Raises:
        TimeoutError: A killed process did not go away.
    """
    give_up = time.monotonic() + PATIENCE
    while left := alive(name):
        if time.monotonic() > give_up:
            raise TimeoutError(f"processes {left} outlived SIGKILL for {PATIENCE:g} s")
        for process in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.001)
