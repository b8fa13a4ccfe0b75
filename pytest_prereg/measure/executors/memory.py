"""Whether the kernel has killed for want of memory."""

from __future__ import annotations

import contextlib
import functools
import os
from pathlib import Path

MEMBERSHIP = Path("/proc/self/cgroup")
GROUPS = Path("/sys/fs/cgroup")
MACHINE = Path("/proc/vmstat")


def oom_kills() -> int:
    """Return how many processes the kernel has killed in this control group, or else on this machine.

    A rise says who killed a process that died of SIGKILL. Control groups of version 2 and 1 have the
    counter in different files; ``/proc/vmstat`` counts the whole machine.
    """
    path = _counter(_membership(), GROUPS, MACHINE)
    return 0 if path is None else _count(path) or 0


def prefer_as_victim() -> None:
    """Make the kernel kill this process and its children first: not whoever watches them and says so."""
    with contextlib.suppress(OSError):
        descriptor = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        try:
            os.write(descriptor, b"500")
        finally:
            os.close(descriptor)


@functools.lru_cache(maxsize=2)  # looking for it takes longer than reading
def _counter(membership: bytes, groups: Path, machine: Path) -> Path | None:
    """Return the file that counts for a process of these control groups."""
    own = _groups(membership)
    # Inside a container the path is the host's, while the mount shows the container's own group as its root.
    version2 = [groups / own.get("", "").lstrip("/"), groups]
    version1 = [groups / "memory" / own.get("memory", "").lstrip("/"), groups / "memory"]
    files = [
        *(folder / "memory.events" for folder in version2),
        *(folder / "memory.oom_control" for folder in version1),
        machine,
    ]
    return next((path for path in files if _count(path) is not None), None)


def _membership() -> bytes:
    try:
        return MEMBERSHIP.read_bytes()
    except OSError:
        return b""


def _groups(membership: bytes) -> dict[str, str]:
    """Return the path of a control group by controller; ``""`` is version 2, which has all."""
    rows = (os.fsdecode(line).split(":", 2) for line in membership.splitlines())
    return {controller: path for _, controllers, path in rows for controller in controllers.split(",")}


def _count(path: Path) -> int | None:
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), None)
