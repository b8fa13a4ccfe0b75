"""The built-in ``known_pause``: one span of time by two clocks."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pytest_prereg.measure.experiment import experiment
from pytest_prereg.measure.instruments.square_wave import drive_once
from pytest_prereg.measure.instruments.wall_clock import NAME as WALL_CLOCK
from pytest_prereg.measure.instruments.wave_devices import device_for
from pytest_prereg.measure.workloads.calibration.reading import calibrating, check_seconds, read_during
from pytest_prereg.registry.instruments import CALIBRATES
from pytest_prereg.registry.refusals import quoted, suggestion

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_prereg.measure.instruments.reading import Reader
    from pytest_prereg.measure.repeat import Repeat

WORKLOAD_VERSION = "1"

CLOCKS = {"monotonic-raw-clock": time.CLOCK_MONOTONIC_RAW, "boot-clock": time.CLOCK_BOOTTIME}
"""The system's other clocks: the counter as it runs, and the monotonic clock with what was slept through."""
AGAINST = {"wall-clock": (*CLOCKS,), "cuda-events": (WALL_CLOCK,)}
"""What an instrument may be held against; the first unless something is asked for."""
KERNEL_SECONDS = 5e-4


@experiment(metrics={"known": "s", "read": "s", "error": "1"})
def known_pause(
    repeat: Repeat, *, instrument: str = "wall-clock", against: str = "", seconds: float = 2.0
) -> None:
    """Let ``seconds`` pass, by a clock of the system and by the instrument.

    The wall clock is held against ``monotonic-raw-clock``, which nobody sets right, or ``boot-clock``; CUDA
    events against the wall clock, over a span in which the device works for a half and idles for a half.
    ``known`` is the span by that clock, ``read`` by the instrument, ``error`` how much of the first the
    second is above it. All three are recorded as taken by that clock.
    """
    check_seconds(seconds)
    with calibrating(repeat, instrument, CALIBRATES["known_pause"]):
        clock = against or AGAINST[instrument][0]
        if clock not in AGAINST[instrument]:
            hint = suggestion(clock, AGAINST[instrument], "it knows")
            raise ValueError(f"against: {instrument} is not held against {quoted(clock)}{hint}")
        act = _sleep(CLOCKS[clock], seconds) if clock in CLOCKS else _work(instrument, seconds)
        reading, known = read_during(repeat, instrument, act)
        taken = repeat._taken_by(clock)  # noqa: SLF001
        taken.record("known", known)
        taken.record("read", reading.value)
        taken.record("error", reading.value / known - 1)


def _sleep(clock: int, seconds: float) -> Callable[[Reader], float]:
    """Return what sleeps, and says how long by ``clock``."""

    def act(_: Reader) -> float:
        began = time.clock_gettime_ns(clock)
        time.sleep(seconds)
        return (time.clock_gettime_ns(clock) - began) * 1e-9

    return act


def _work(instrument: str, seconds: float) -> Callable[[Reader], float]:
    """Return what keeps the device busy for half of the time, and says how long that was in all."""
    device = device_for(instrument, KERNEL_SECONDS)
    return lambda _: drive_once(device, duty=0.5, seconds=seconds).seconds
