"""What the processes of a sandbox take, seen from outside through ``/proc``."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_prereg.measure.executors.processes import stat_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_prereg.measure.workloads.sandbox.limits import Limits

WORKLOAD_VERSION = "1"


@cache
def tells_children() -> bool:
    """Whether this kernel has files of whose children processes are; else all processes are gone through."""
    return Path(f"/proc/self/task/{os.getpid()}/children").exists()


@cache
def tells_memory() -> bool:
    """Whether this kernel tells which memory of a process no file backs."""
    return b"\nRssAnon:" in _read("/proc/self/status")


def children(pid: int) -> list[int]:
    """Return the pids of a process's children, those of all its threads; none if it is gone."""
    if not tells_children():
        return [each for each in _all() if (fields := stat_of(each)) and int(fields[1]) == pid]
    found: list[int] = []
    with suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208  # a Path for each would cost more
            found += map(int, _read(f"/proc/{pid}/task/{task}/children").split())
    return found


def _all() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208


def family(root: int) -> list[int]:
    """Return the pids of ``root`` and of all below it."""
    found = [root]
    for pid in found:
        found += children(pid)
    return found


def threads(pids: Iterable[int]) -> int:
    """Return how many threads some processes have together."""
    return sum(map(_threads, pids))


def _threads(pid: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/task"))  # noqa: PTH208
    except OSError:
        return 0


def memory(pid: int) -> int:
    """Return the bytes of memory of a process that no file backs, swapped or not; 0 if it is gone.

    Memory that processes share counts for each of them.
    """
    return _kilobytes(f"/proc/{pid}/status", (b"RssAnon:", b"RssShmem:", b"VmSwap:"))


def shares_of_memory(pid: int) -> int:
    """Return the same with what is shared counted in shares, which takes the kernel longer."""
    return _kilobytes(f"/proc/{pid}/smaps_rollup", (b"Pss_Anon:", b"Pss_Shmem:", b"SwapPss:"))


def _kilobytes(path: str, keys: tuple[bytes, ...]) -> int:
    try:
        # A process chooses its name, which may hold whatever else ends a line, but this.
        lines = _read(path).split(b"\n")
    except OSError:
        return 0
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith(keys))


def memory_problem(pids: list[int], taken: int, limits: Limits) -> str | None:
    """Return what is wrong with so much memory ``taken``, unless it is shared and counted many times."""
    if taken <= limits.memory or (taken := sum(map(shares_of_memory, pids))) <= limits.memory:
        return None
    return f"{taken} bytes of memory, where {limits.memory} are the most"


def processes_problem(pids: list[int], limits: Limits) -> str | None:
    """Return what is wrong with so many processes and threads; the kernel refuses them, where it counts."""
    if (count := threads(pids)) <= limits.processes:
        return None
    return f"{count} processes and threads, where {limits.processes} are the most"


def files_problem(init: int, limits: Limits) -> str | None:
    """Return what is wrong with the number of files in a sandbox's folder, the folder itself left out."""
    try:
        seen = os.statvfs(f"/proc/{init}/root/tmp")
    except OSError:
        return None
    if (count := seen.f_files - seen.f_ffree - 1) <= limits.files:
        return None
    return f"{count} files and folders, where {limits.files} are the most"


def kernel_kills() -> int:
    """Return how many processes the kernel has killed on this machine for want of memory; 0 if unknown."""
    with suppress(OSError):
        for line in _read("/proc/vmstat").splitlines():
            if line.startswith(b"oom_kill "):
                return int(line.split()[1])
    return 0


def _read(path: str) -> bytes:
    return Path(path).read_bytes()
