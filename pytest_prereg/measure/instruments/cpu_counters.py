"""CPU time as the Linux kernel counts it: of the machine, and of one repeat's processes.

Most kernels sample the machine's, at 100 to 1000 a second, and scale that of a process to what the scheduler
has timed to the nanosecond; both are told in ticks of 1/100 s (proc(5)).
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec

from pytest_prereg.measure.executors import processes
from pytest_prereg.measure.instruments.reading import UnreadableError

PROC = Path("/proc")
TICK = 1 / os.sysconf("SC_CLK_TCK")
"""Seconds; of all files in ``/proc``."""
COLUMNS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
"""Of a CPU's line in ``/proc/stat``; the time of guests, which follows, is in ``user`` and ``nice`` too."""
BUSY = ("user", "nice", "system", "irq", "softirq")
ALL = "cpu"
ATTEMPTS = 5
_TIMES_OF_PROCESS = slice(11, 15)
"""``utime``, ``stime``, and both of the children waited for, in ``/proc/PID/stat`` from the state on."""


class Snapshot(msgspec.Struct, kw_only=True, frozen=True):
    """What the kernel has counted until one moment, in seconds of CPU time but for ``at``."""

    at: float
    """The monotonic clock."""
    cpus: dict[str, dict[str, float]]
    """Columns by CPU: ``cpu`` is all of them together, ``cpu0`` the first."""
    runnable: int
    """Processes of the machine that have a CPU, or want one."""
    own: float
    """Of this repeat's processes, and of all children that they have waited for."""
    processes: int
    """How many of them there are."""

    @property
    def cores(self) -> int:
        """How many cores the kernel counts."""
        return len(self.cpus) - 1


def snapshot() -> Snapshot:
    """Return what the kernel has counted until now.

    To look for the repeat's processes takes longest and comes first; then all is read at once. Where one of
    them ends meanwhile, its time is nowhere, so it is all done again.

    Raises:
        UnreadableError: ``/proc`` has no such counters, or not the kernel's own.
    """
    _refuse_a_mount()
    own = None
    for _ in range(ATTEMPTS):
        pids = processes.family(processes.adopter())
        own = [_cpu_time(pid) for pid in pids]
        at = time.monotonic()
        cpus, runnable = _machine()
        if None not in own:
            break
    known = [seconds for seconds in own or () if seconds is not None]
    return Snapshot(at=at, cpus=cpus, runnable=runnable, own=sum(known), processes=len(known))


def pressure() -> float | None:
    """Return the seconds in which somebody on the machine waited for a CPU, ever; ``None`` if not counted."""
    try:
        some = (PROC / "pressure" / "cpu").read_text(encoding="ascii").split("\n")[0]
        return int(some.partition("total=")[2]) * 1e-6
    except (OSError, ValueError):
        return None


def _refuse_a_mount() -> None:
    try:
        same = (PROC / "stat").stat().st_dev == PROC.stat().st_dev
    except OSError as error:
        raise UnreadableError(f"/proc/stat: {error.strerror}") from None
    if not same:
        raise UnreadableError(
            "/proc/stat is not the kernel's own: what is mounted over it tells of this container alone"
        )


def _machine() -> tuple[dict[str, dict[str, float]], int]:
    try:
        rows = [line.split() for line in (PROC / "stat").read_bytes().decode().splitlines()]
        cpus = {row[0]: _columns(row) for row in rows if row and row[0].startswith(ALL)}
        runnable = next(int(row[1]) for row in rows if row and row[0] == "procs_running")
    except (OSError, ValueError, IndexError, StopIteration):
        raise UnreadableError("/proc/stat has not the form that the Linux kernel gives it") from None
    if len(cpus) < 2 or ALL not in cpus:  # noqa: PLR2004
        raise UnreadableError("/proc/stat counts no CPUs")
    return cpus, runnable


def _columns(row: list[str]) -> dict[str, float]:
    return {name: int(ticks) * TICK for name, ticks in zip(COLUMNS, row[1:], strict=False)}


def _cpu_time(pid: int) -> float | None:
    """Return the seconds of CPU time of a process and the children that it waited for; ``None`` if gone."""
    fields = processes.stat_of(pid)
    return sum(map(int, fields[_TIMES_OF_PROCESS])) * TICK if fields else None
