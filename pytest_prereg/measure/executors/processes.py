"""Linux processes: who belongs to whom, and how to be rid of all of them."""

from __future__ import annotations

import ctypes
import os
import signal
import time
import warnings
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
POLL_SECONDS = 0.002

_adopters: list[int] = []
_libc = ctypes.CDLL(None, use_errno=True)


def fork() -> int:
    """Fork, without Python 3.12's warning about threads.

    The threads that importing numpy leaves behind are OpenBLAS's, which stops them around a fork by itself;
    nothing else of ours has any.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def become_subreaper() -> None:
    """Adopt every descendant whose own parent dies, whatever session it moved to."""
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    _adopters[:] = [os.getpid()]


@contextmanager
def adopting() -> Generator[None]:
    """Adopt for a while what is left by processes that this one starts."""
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        _libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def adopter() -> int:
    """Return who adopts what this process leaves behind: below it is all that belongs to a repeat.

    It is the process itself, or the one that it was forked from, whichever called :func:`become_subreaper`
    last. Where neither did, orphans are lost to this process, and it is its own pid.
    """
    return _adopters[0] if _adopters else os.getpid()


def die_with_parent(parent: int, number: int = signal.SIGKILL) -> None:
    """Receive a signal when ``parent`` dies, at once if it already has."""
    _libc.prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def outlive_parent() -> None:
    """Receive no signal any more when the parent dies."""
    _libc.prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0)


def kill_descendants(seconds: float) -> set[int]:
    """Kill and reap all descendants of this process, again until none is left; return their pids.

    Every orphan among them has to have been adopted (:func:`become_subreaper`). Gives up after ``seconds``,
    which only processes stuck in the kernel outlast.
    """
    killed: set[int] = set()
    deadline = time.monotonic() + seconds
    while has_children() and time.monotonic() < deadline:
        for pid in descendants(os.getpid()):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
        time.sleep(POLL_SECONDS)
    return killed


def has_children() -> bool:
    """Reap every child that has ended; return whether any child remains."""
    try:
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
    except ChildProcessError:
        return False
    return True


def descendants(root: int) -> list[int]:
    """Return the pids of all living descendants of ``root``, parents before children.

    Read from ``/proc/*/stat``: the ``children`` files exist only on kernels built with them.
    """
    return _below(root, _living_parent)


def family(root: int) -> list[int]:
    """Return ``root`` and the pids of all its descendants, those that ended and were not waited for, too."""
    return [root, *_below(root, _parent)]


def stat_of(pid: int) -> list[bytes] | None:
    """Return the fields of ``/proc/PID/stat`` from the state on (the third of proc(5)); ``None`` if gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None


def _below(root: int, parent_of: Callable[[int], int | None]) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (parent := parent_of(pid := int(entry.name))) is not None:
            children.setdefault(parent, []).append(pid)
    found = list(children.get(root, ()))
    for pid in found:
        found.extend(children.get(pid, ()))
    return found


def _parent(pid: int) -> int | None:
    """Return the parent's pid, or ``None`` if the process is gone."""
    fields = stat_of(pid)
    return int(fields[1]) if fields else None


def _living_parent(pid: int) -> int | None:
    """Return the parent's pid, or ``None`` if the process has ended; a zombie has."""
    fields = stat_of(pid)
    return None if fields is None or fields[0] in {b"Z", b"X"} else int(fields[1])
