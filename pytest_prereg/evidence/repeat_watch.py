"""What the tool itself records of the machine while a repeat runs: all that a registered rule may name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_prereg.evidence import gpu_readings, kernel_counters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pytest_prereg.evidence.gpu_readings import Gpu, Look

PROCESSES = Path("/proc")

_COUNTERS: dict[str, tuple[Callable[[], int | None], ...]] = {
    "cpu_throttled": (kernel_counters.heat_throttles, kernel_counters.quota_throttles),
    "swapped": (kernel_counters.pages_swapped,),
}


class RepeatWatch:
    """Looks at the machine before and after a repeat, never while it runs.

    Used by the process that watches over the body: :meth:`begin` before anything of the repeat is started (a
    service included), :meth:`end` once its clock has stopped. Both never raise. Without a GPU they take less
    than a millisecond together; with one each waits for ``nvidia-smi``, at most a few seconds.
    """

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        """Watch on behalf of a body that will run with ``environ`` (which says what GPUs it can see)."""
        self.environ = os.environ if environ is None else environ
        self.load_average = 0.0
        self.counts: dict[str, list[int | None]] = {}
        self.looks: list[Look] = []
        self.foreign: list[set[int] | None] = []

    def begin(self) -> None:
        """Take the readings that those of :meth:`end` are compared with."""
        self.load_average = round(os.getloadavg()[0], 2)
        self.counts = {name: [count() for count in counters] for name, counters in _COUNTERS.items()}
        if gpu_readings.gpu_is_there():
            self._look()

    def end(self) -> dict[str, Any]:
        """What was read, by the names that rules and conditions use.

        ``load_average``: over a minute, when it began. ``swapped``: pages went in or out of the machine's
        swap meanwhile. ``cpu_throttled``: the kernel counted a slowdown by heat, or a stop for want of CPU
        quota. Of the GPUs that the body could see, the worst of the two looks: ``gpu_clock_mhz``, the lowest
        clock, of GPUs that were not idle; ``gpu_temp_c``, the highest; ``gpu_throttled``, whether any was
        slowed down in either look, or by heat or power brake in between where the driver counts that;
        ``gpu_foreign_processes``, how many that compute there come from outside of the repeat. ``None`` is
        what could not be read, never 0.
        """
        if self.looks and not self.looks[0].hung:
            self._look()
        return {
            "load_average": self.load_average,
            **{name: self._grew(name) for name in _COUNTERS},
            **self._of_gpus(),
        }

    def _look(self) -> None:
        seen = gpu_readings.look()
        self.looks.append(seen)
        known = self.foreign[0] if self.foreign else None
        self.foreign.append(self._foreign(seen, known))

    def _grew(self, name: str) -> bool | None:
        """Whether any of the counters behind ``name`` has risen; ``None`` if none could be read twice."""
        before = self.counts.get(name, [])
        pairs = [
            (old, new)
            for old, count in zip(before, _COUNTERS[name], strict=False)
            if old is not None and (new := count()) is not None
        ]
        return any(new > old for old, new in pairs) if pairs else None

    def _of_gpus(self) -> dict[str, Any]:
        read = [self._seen(look) for look in self.looks if look.gpus is not None]
        both = [gpu for look in read for gpu in look] if len(read) > 1 else []
        running = [gpu for gpu in both if gpu.reasons is None or not gpu.reasons & gpu_readings.GPU_IDLE]
        return {
            "gpu_clock_mhz": _worst(min, [gpu.clock_mhz for gpu in running]),
            "gpu_temp_c": _worst(max, [gpu.temp_c for gpu in both]),
            "gpu_throttled": _throttled(read),
            "gpu_foreign_processes": self._count_foreign(),
        }

    def _seen(self, look: Look) -> tuple[Gpu, ...]:
        return gpu_readings.visible(look.gpus or (), self.environ)

    def _foreign(self, look: Look, before: set[int] | None) -> set[int] | None:
        """The pids that compute on a visible GPU and are not of this repeat; ``None`` if that can't be told.

        A pid that is new and that ``/proc`` does not have was ended meanwhile, or is one of another
        namespace, which the driver does not translate: in a container the body itself may look like that.
        Before there is a body, all that computes is foreign.
        """
        if look.processes is None or look.gpus is None:
            return None
        uuids = {gpu.uuid for gpu in self._seen(look)}
        pids = {pid for uuid, pid in look.processes if uuid in uuids}
        if before is None and len(self.looks) == 1:
            return {pid for pid in pids if not _is_ours(pid)}
        foreign = {pid for pid in pids if pid in (before or ()) or (_exists(pid) and not _is_ours(pid))}
        unknown = any(pid not in foreign and not _exists(pid) for pid in pids)
        return None if unknown and not foreign else foreign

    def _count_foreign(self) -> int | None:
        if not any(self._seen(look) for look in self.looks):
            return None
        found = set().union(*(pids for pids in self.foreign if pids))
        return len(found) if found or (len(self.foreign) > 1 and None not in self.foreign) else None


def _worst(pick: Callable[[Iterable[float]], float], readings: list[float | None]) -> float | None:
    """The worst of all readings, which is known only if each is."""
    known = [reading for reading in readings if reading is not None]
    return pick(known) if known and len(known) == len(readings) else None


def _throttled(looks: list[tuple[Gpu, ...]]) -> bool | None:
    """Whether any GPU was slowed down in any look; ``False`` takes two looks that say so of every one."""
    reasons = [gpu.reasons for look in looks for gpu in look]
    if any(bits is not None and bits & ~gpu_readings.NO_THROTTLING for bits in reasons) or _slowed(looks):
        return True
    return False if len(looks) > 1 and reasons and None not in reasons else None


def _slowed(looks: list[tuple[Gpu, ...]]) -> bool:
    """Whether the driver's counters of slowdowns have risen from one look to the next."""
    before = {gpu.uuid: gpu.slowed_us for look in looks[:1] for gpu in look}
    pairs = ((before.get(gpu.uuid), gpu.slowed_us) for look in looks[1:] for gpu in look)
    return any(old is not None and new is not None and new > old for old, new in pairs)


def _exists(pid: int) -> bool:
    return (PROCESSES / str(pid)).exists()


def _is_ours(pid: int) -> bool:
    """Whether a process is this one or descends from it."""
    own = os.getpid()
    while pid > 1:
        if pid == own:
            return True
        try:
            pid = int((PROCESSES / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return False
    return False
