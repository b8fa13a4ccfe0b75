"""A square wave whose kernels are queued, and awaited or not: what its author sees, and its device does."""

from __future__ import annotations

import time
from queue import Queue
from threading import Thread
from time import perf_counter
from typing import TYPE_CHECKING, Self

from pytest_prereg import experiment
from pytest_prereg.measure.instruments.wave_devices import device_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pytest_prereg import Repeat

DEPTH = 1024
"""Kernels that a stream takes before whoever launches one more has to wait, as CUDA's does."""


class Stream:
    """Runs kernels one after another on a thread of its own, whoever launched them being elsewhere by then.

    When its block ends, the kernel that runs is awaited, and what is queued behind it is thrown away.
    """

    def __init__(self, kernel: Callable[[], object], *, depth: int = DEPTH) -> None:
        self.ran: list[tuple[float, float]] = []
        """Beginning and end of each kernel, in seconds of ``time.perf_counter``."""
        self._kernel = kernel
        self._queue: Queue[Callable[[], object] | None] = Queue(depth)
        self._closing = False
        self._thread = Thread(target=self._run, name="stream")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing = True
        self._queue.put(None)
        self._thread.join()

    def launch(self) -> None:
        """Queue one kernel."""
        self._queue.put(self._kernel)

    def synchronise(self) -> None:
        """Wait for the end of all that was queued."""
        self._queue.join()

    def _run(self) -> None:
        while kernel := self._queue.get():
            if not self._closing:
                began = perf_counter()
                kernel()
                self.ran.append((began, perf_counter()))
            self._queue.task_done()


@experiment(
    metrics={
        "host": {"unit": "1", "instrument": "stopwatch"},
        "device": {"unit": "1", "instrument": "stopwatch"},
        "read": {"unit": "1", "instrument": "operator-intervals"},
    },
    preload=["torch"],
)
def queued_wave(
    repeat: Repeat,
    *,
    synchronise: bool = True,
    duty: float = 0.5,
    kernel: float = 4e-3,
    period: float = 0.2,
    seconds: float = 2.0,
) -> None:
    """Launch kernels for ``duty`` of each ``period``, each awaited or none, and sleep through the rest.

    All three are shares of the same span: ``host`` of the time in which kernels were launched, which is what
    their author takes for busy; ``device`` of the time in which one ran, by the clock of the thread that ran
    it; ``read`` of the time in which the profiler saw an operator.
    """
    stream = Stream(device_for("operator-intervals", kernel).launch)
    with repeat.instrument("operator-intervals").window("read"):
        began = perf_counter()
        with stream:
            launching = drive(stream, duty * period, period, round(seconds / period), synchronise=synchronise)
        ended = perf_counter()
    stopwatch = repeat.instrument("stopwatch")
    stopwatch.record("host", launching / (ended - began))
    stopwatch.record("device", seconds_in(stream.ran) / (ended - began))


def drive(stream: Stream, busy: float, period: float, periods: int, *, synchronise: bool) -> float:
    """Drive a stream through whole periods; return the seconds spent launching, and waiting for it."""
    launching = 0.0
    for _ in range(periods):
        began = perf_counter()
        while perf_counter() < began + busy:
            stream.launch()
            if synchronise:
                stream.synchronise()
        launching += perf_counter() - began
        time.sleep(max(0.0, began + period - perf_counter()))
    return launching


def seconds_in(spans: Iterable[tuple[float, float]]) -> float:
    """Return how long spans that don't overlap are together."""
    return sum(ended - began for began, ended in spans)
