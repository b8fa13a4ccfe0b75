"""Whether the kernel has killed for want of memory."""

from __future__ import annotations

from pathlib import Path

MEMBERSHIP = Path("/proc/self/cgroup")
GROUPS = Path("/sys/fs/cgroup")
MACHINE = Path("/proc/vmstat")


def oom_kills() -> int:
    """Return how many processes the kernel has killed in this control group, or else on this machine.

    A rise says who killed a process that died of SIGKILL. Control groups of version 2 and 1 have the
    counter in different files; ``/proc/vmstat`` counts the whole machine.
    """
    for path in _counters():
        count = _count(path)
        if count is not None:
            return count
    return 0


def prefer_as_victim() -> None:
    """Make the kernel kill this process and its children first: not whoever watches them and says so."""
    try:
        Path("/proc/self/oom_score_adj").write_text("500", encoding="ascii")
    except OSError:
        return


def _counters() -> list[Path]:
    own = _groups()
    # Inside a container the path is the host's, while the mount shows the container's own group as its root.
    version2 = [GROUPS / own.get("", "").lstrip("/"), GROUPS]
    version1 = [GROUPS / "memory" / own.get("memory", "").lstrip("/"), GROUPS / "memory"]
    return [
        *(folder / "memory.events" for folder in version2),
        *(folder / "memory.oom_control" for folder in version1),
        MACHINE,
    ]


def _groups() -> dict[str, str]:
    """Return the path of this process's control group by controller; ``""`` is version 2, which has all."""
    try:
        lines = MEMBERSHIP.read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    rows = (line.split(":", 2) for line in lines)
    return {controller: path for _, controllers, path in rows for controller in controllers.split(",")}


def _count(path: Path) -> int | None:
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), None)
