"""Counters of the Linux kernel that say whether a machine was slowed down: by heat, a quota or swapping."""

from __future__ import annotations

import functools
import os
from pathlib import Path

CPUS = Path("/sys/devices/system/cpu")
MEMBERSHIP = Path("/proc/self/cgroup")
GROUPS = Path("/sys/fs/cgroup")
MACHINE = Path("/proc/vmstat")


def pages_swapped() -> int | None:
    """How many pages the whole machine has ever swapped in or out; ``None`` if the kernel does not say.

    It is the machine's, not the repeat's: what swaps beside a repeat takes its memory bus and its disk, and
    the body's own share is gone with the body.
    """
    counts = _counted(MACHINE, "pswpin", "pswpout")
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def heat_throttles() -> int | None:
    """How often the CPUs that this process may use, or their package, have ever been slowed down by heat.

    ``None`` where the kernel does not count it: on most CPUs but Intel's, and in virtual machines.
    """
    folders = [CPUS / f"cpu{number}" / "thermal_throttle" for number in sorted(os.sched_getaffinity(0))]
    if not folders[0].is_dir():
        return None
    paths = [folder / "core_throttle_count" for folder in folders]
    counts = [_number(path) for path in (*paths, folders[0] / "package_throttle_count")]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def quota_throttles() -> int | None:
    """How often this control group, or one around it, has ever been stopped for having used its CPU quota.

    ``None`` where no control group with that count can be read. A container may show its own group as the
    root of all; the groups around it then can't be seen.
    """
    files = _quota_files(_membership(), GROUPS)
    counts = [count for path in files for count in _counted(path, "nr_throttled")]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _membership() -> bytes:
    try:
        return MEMBERSHIP.read_bytes()
    except OSError:
        return b""


@functools.lru_cache(maxsize=2)  # looking for them takes longer than reading
def _quota_files(membership: bytes, groups: Path) -> tuple[Path, ...]:
    """``cpu.stat`` of a process's control group and of those around it: of version 2, else of version 1."""
    own = _groups_of(membership)
    for controller, root in (("", groups), ("cpu", groups / "cpu"), ("cpu", groups / "cpu,cpuacct")):
        if controller not in own or ".." in Path(own[controller]).parts:
            own_folder = root
        else:
            own_folder = root / own[controller].lstrip("/")
        around = (folder for folder in (own_folder, *own_folder.parents) if folder.is_relative_to(root))
        if found := tuple(folder / "cpu.stat" for folder in around if (folder / "cpu.stat").is_file()):
            return found
    return ()


def _groups_of(membership: bytes) -> dict[str, str]:
    """Path of a process's control group by controller; ``""`` is version 2, which has all."""
    try:
        lines = membership.decode().splitlines()
    except ValueError:
        return {}
    rows = [line.split(":", 2) for line in lines if line.count(":") >= 2]  # noqa: PLR2004
    return {controller: path for _, controllers, path in rows for controller in controllers.split(",")}


def _counted(path: Path, *names: str) -> list[int | None]:
    """The counts of those names in a file of ``name count`` lines."""
    try:
        lines = b"\n" + path.read_bytes() + b"\n"
    except OSError:
        return []
    found = [lines.rpartition(f"\n{name} ".encode())[1:] for name in names]
    values = [rest.partition(b"\n")[0] if name else b"" for name, rest in found]
    return [int(value) if value.isdigit() else None for value in values]


def _number(path: Path) -> int | None:
    try:
        text = path.read_bytes().decode().strip()
    except (OSError, ValueError):
        return None
    return int(text) if text.isdecimal() else None
