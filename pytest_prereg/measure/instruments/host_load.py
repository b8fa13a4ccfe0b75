"""How much of the machine's CPU time went to others than this repeat, over a window.

Unit: 1, a share of all cores that the kernel counts, and not only of those that this process may use: others
take memory bandwidth and clock rate from wherever they run, and what a child did elsewhere can't hide what
ran here. What a hypervisor took while a core had work to do is in it, for that did not go to the repeat
either; waiting for disks isn't. The repeat is this process, all that descends from it, its orphans and its
service.

Known bias: what the kernel counts of the machine in samples, it misreads where a load keeps step with them.
A child whose end nobody waits for, because its parent ignores it, counts as others'.
"""

from __future__ import annotations

import os
from math import sqrt
from typing import Any

from pytest_prereg.evidence import kernel_counters
from pytest_prereg.measure.instruments import cpu_counters
from pytest_prereg.measure.instruments.cpu_counters import ALL, BUSY, TICK, Snapshot, snapshot
from pytest_prereg.measure.instruments.reading import Reading, UnreadableError

SHORTEST_SECONDS = 0.1
"""Ten ticks."""
FEWEST_COUNTED = 0.5
"""Of all CPU time, idle included, that there must have been."""
SIGMAS = 3


class HostLoad:
    """Reads the share of the machine's CPU time that was not this repeat's.

    Details: ``raw``, the share as it was before one below 0 became 0; ``noise``, by how much ticks and
    samples may put it out; ``own``, ``others`` and ``stolen``, seconds of CPU time; ``cores``;
    ``usable_cores``, which this process may use, and ``usable_cores_busy``, the share of theirs that
    anybody used, this repeat included; ``processes``, of the repeat, and ``runnable``, of the machine, both
    at the end; ``load_start`` and ``load_end``, load averages over a minute. ``pressure``: the share of the
    window in which somebody waited for a CPU, and ``quota_stops``, how often the control group was stopped
    for having used its quota; both ``None`` where the kernel doesn't count that.
    """

    def __init__(self) -> None:
        self._looks: list[Snapshot] = []
        self._loads: list[float] = []
        self._pressures: list[float | None] = []
        self._quota_stops: list[int | None] = []

    def start(self) -> None:
        """Look at the counters.

        Raises:
            UnreadableError: ``/proc`` has none, or not the kernel's own.
        """
        self._look()

    def stop(self) -> None:
        """Look again.

        Raises:
            UnreadableError: As :meth:`start`.
        """
        self._look()

    def reading(self) -> Reading:
        """Return the share.

        Raises:
            UnreadableError: The window is too short for ticks, or the counters contradict each other.
        """
        begin, end = self._looks
        _refuse_what_was_not_counted(begin, end)
        capacity = (end.at - begin.at) * end.cores
        own = end.own - begin.own
        stolen = _spent(begin, end, ALL, ("steal",))
        others = _spent(begin, end, ALL, BUSY) - own
        raw = (others + stolen) / capacity
        noise = _noise(begin, end) / capacity
        if not -noise <= raw <= 1 + noise:
            raise UnreadableError(
                f"this repeat had {own:.2f} s of CPU time, the machine {others + own:.2f} s and {stolen:.2f} "
                f"s stolen, of {capacity:.2f} s: that leaves others {raw:.3f}, and ticks explain {noise:.3f}"
            )
        spent = {"own": own, "others": others, "stolen": stolen}
        details = {"raw": raw, "noise": noise, **spent, **self._details(begin, end)}
        return Reading(value=min(max(raw, 0.0), 1.0), instrument="host-load", details=details)

    def _look(self) -> None:
        self._loads.append(round(os.getloadavg()[0], 2))
        self._quota_stops.append(kernel_counters.quota_throttles())
        self._pressures.append(cpu_counters.pressure())
        self._looks.append(snapshot())

    def _details(self, begin: Snapshot, end: Snapshot) -> dict[str, Any]:
        seconds = end.at - begin.at
        usable = [name for number in os.sched_getaffinity(0) if (name := f"cpu{number}") in end.cpus]
        busy = sum(_spent(begin, end, name, BUSY) for name in usable)
        waited = _grew(self._pressures)
        return {
            "cores": end.cores,
            "usable_cores": len(usable),
            "usable_cores_busy": busy / (seconds * len(usable)) if usable else None,
            "processes": end.processes,
            "runnable": end.runnable,
            "load_start": self._loads[0],
            "load_end": self._loads[1],
            "pressure": None if waited is None else waited / seconds,
            "quota_stops": _grew(self._quota_stops),
        }


def _refuse_what_was_not_counted(begin: Snapshot, end: Snapshot) -> None:
    seconds = end.at - begin.at
    if seconds < SHORTEST_SECONDS:
        raise UnreadableError(
            f"the window took {seconds:.3f} s, and the kernel counts in ticks of {TICK:g} s; it takes "
            f"{SHORTEST_SECONDS:g} s"
        )
    if begin.cpus.keys() != end.cpus.keys():
        raise UnreadableError(
            f"the machine had {begin.cores} cores when the window began, and {end.cores} then"
        )
    counted = _spent(begin, end, ALL, tuple(end.cpus[ALL]))
    if counted < FEWEST_COUNTED * seconds * end.cores:
        raise UnreadableError(
            f"/proc/stat counted {counted:.2f} s of CPU time, idle included, in {seconds:.2f} s on "
            f"{end.cores} cores"
        )


def _spent(begin: Snapshot, end: Snapshot, cpu: str, columns: tuple[str, ...]) -> float:
    """Return the seconds that a CPU spent in those columns; one that an old kernel doesn't have is 0."""
    before, after = begin.cpus[cpu], end.cpus[cpu]
    return sum(after.get(column, 0.0) - before.get(column, 0.0) for column in columns)


def _noise(begin: Snapshot, end: Snapshot) -> float:
    """Return by how many seconds others' time may be out.

    A tick at either end for each core and each process, and what sampling the repeat's own time with one
    sample a tick adds: the count of a binomial has at most the variance of its mean.
    """
    rounding = TICK * (2 * end.cores + begin.processes + end.processes)
    return rounding + SIGMAS * sqrt(max(end.own - begin.own, 0.0) * TICK)


def _grew(counts: list[Any]) -> Any:
    """Return by how much a count has grown; ``None`` if it can't be told."""
    before, after = counts
    return None if before is None or after is None else after - before
