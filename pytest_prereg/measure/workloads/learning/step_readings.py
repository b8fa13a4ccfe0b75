"""What one step of training reads: times, kept apart from the repeat so that a checkpoint can hold them."""

from __future__ import annotations

import math

from pytest_prereg.measure.instruments.wall_clock import WallClock

WORKLOAD_VERSION = "1"


class Readings:
    """Samples by metric, each in the metric's own unit."""

    def __init__(self) -> None:
        self.samples: dict[str, list[float]] = {}

    def timer(self, name: str) -> WallClock:
        """Return a context manager that appends the seconds of its block."""
        return WallClock(lambda: None, self.samples.setdefault(name, []).append)

    def take(self, **values: float) -> None:
        """Set metrics that have one value per step."""
        self.samples.update({name: [float(value)] for name, value in values.items()})

    def extend(self, samples: dict[str, list[float]]) -> None:
        """Append what was read elsewhere."""
        for name, values in samples.items():
            self.samples.setdefault(name, []).extend(values)

    def add_up(self, name: str, *more: float) -> None:
        """Make one reading of all of a metric's, and ``more``; 0 where there is none."""
        self.samples[name] = [math.fsum([*self.samples.get(name, []), *more])]
