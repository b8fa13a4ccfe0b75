"""What the processes of a sandbox take, seen from outside through ``/proc``."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

WORKLOAD_VERSION = "1"

_PAGE = os.sysconf("SC_PAGE_SIZE")


def family(root: int) -> list[int]:
    """Return the pids of ``root`` and of all below it, threads' children included."""
    found = [root]
    for pid in found:
        with suppress(OSError):
            for task in os.listdir(f"/proc/{pid}/task"):
                found += map(int, _read(f"/proc/{pid}/task/{task}/children").split())
    return found


def threads(pid: int) -> int:
    """Return how many threads a process has; 0 if it is gone."""
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return 0


def memory(pid: int) -> int:
    """Return the bytes of resident memory of a process that no file backs; 0 if it is gone.

    Memory that processes share counts for each of them.
    """
    try:
        lines = _read(f"/proc/{pid}/status").splitlines()
    except OSError:
        return 0
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith((b"RssAnon:", b"RssShmem:")))


def private_memory(pid: int) -> int:
    """Return the same with what is shared counted in shares, which takes the kernel longer."""
    try:
        lines = _read(f"/proc/{pid}/smaps_rollup").splitlines()
    except OSError:
        return memory(pid)
    return sum(
        1024 * int(line.split()[1]) for line in lines if line.startswith((b"Pss_Anon:", b"Pss_Shmem:"))
    )


def kernel_kills() -> int:
    """Return how many processes the kernel has killed on this machine for want of memory; 0 if unknown."""
    with suppress(OSError):
        for line in _read("/proc/vmstat").splitlines():
            if line.startswith(b"oom_kill "):
                return int(line.split()[1])
    return 0


def _read(path: str) -> bytes:
    return Path(path).read_bytes()
