"""The built-ins ``square_wave`` and ``trailing_wait``: a known share of the time in which a device is busy.

The wave knows its own duty from the host's clock, and refuses a device that it did not wait for; so an
instrument that reads such a share is held against it, not against a duty that was merely asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.measure.experiment import experiment
from pytest_prereg.measure.instruments import square_wave as wave
from pytest_prereg.measure.instruments.kernel_intervals import KernelIntervals
from pytest_prereg.measure.instruments.reading import UnreadableError
from pytest_prereg.measure.instruments.wave_devices import device_for
from pytest_prereg.measure.workloads.calibration.reading import calibrating, detail, read_during
from pytest_prereg.registry.instruments import CALIBRATES

if TYPE_CHECKING:
    from pytest_prereg.measure.instruments.reading import Reader, Reading
    from pytest_prereg.measure.instruments.wave_devices import CpuDevice, CudaDevice
    from pytest_prereg.measure.repeat import Repeat

WORKLOAD_VERSION = "1"

LOST_IN = 1000
"""One launch in as many may be without its kernel; a profiler that loses more has not seen what ran."""


@experiment(
    metrics={
        "duty": {"unit": "1", "instrument": "square-wave"},
        "read": {"unit": "1", "instrument": "square-wave"},
        "error": {"unit": "1", "instrument": "square-wave"},
        "half_width": {"unit": "1", "instrument": "square-wave"},
        "kernel": {"unit": "s", "instrument": "square-wave"},
        "launched": {"unit": "kernel", "exact": True},
        "lost": {"unit": "kernel", "exact": True},
    },
    preload=["torch"],
)
def square_wave(
    repeat: Repeat,
    *,
    instrument: str = "kernel-intervals",
    duty: float = 0.5,
    period: float = 0.1,
    seconds: float = 5.0,
    kernel: float = 5e-4,
) -> None:
    """Drive a device for ``duty`` of each ``period``, in kernels of about ``kernel`` seconds, and read it.

    ``duty`` is what the wave measured of itself and ``half_width`` half of its interval at 95 %, ``read``
    what the instrument made of it, ``error`` the second less the first: its mean over repeats is the
    instrument's bias, its standard deviation the spread. ``kernel`` is the shortest kernel. ``lost`` counts
    launches whose kernel the instrument did not see; 0 where it counts none.
    """
    with calibrating(repeat, instrument, CALIBRATES["square_wave"]):
        device = device_for(instrument, kernel)

        def drive(reader: Reader) -> wave.Wave:
            done = wave.drive(device, duty=duty, period=period, seconds=seconds)
            _expect(reader, done.launched, device)
            return done

        reading, driven = read_during(repeat, instrument, drive)
        taken = repeat._taken_by(wave.NAME)  # noqa: SLF001
        taken.record("duty", driven.duty)
        taken.record("read", reading.value)
        taken.record("error", reading.value - driven.duty)
        taken.record("half_width", driven.half_width)
        taken.record("kernel", driven.kernel_seconds)
        repeat.record("launched", driven.launched)
        repeat.record("lost", _lost(reading, driven.launched))
        repeat.record("periods", driven.periods)


@experiment(
    metrics={
        "busy": {"unit": "1", "instrument": "square-wave"},
        "read": {"unit": "1", "instrument": "square-wave"},
        "error": {"unit": "1", "instrument": "square-wave"},
        "first_to_last": {"unit": "1", "instrument": "square-wave"},
    },
    preload=["torch"],
)
def trailing_wait(
    repeat: Repeat,
    *,
    instrument: str = "kernel-intervals",
    busy: float = 0.3,
    seconds: float = 2.0,
    kernel: float = 5e-4,
) -> None:
    """Keep a device busy for a share of the time, then let it wait to the end, as a step does for its reward.

    ``busy`` is the share by the host's clock, ``read`` what the instrument made of it, ``error`` the second
    less the first. ``first_to_last`` is what the same kernels come to in a window from the first to the last
    of them, which no wait before or after can be seen in.
    """
    with calibrating(repeat, instrument, CALIBRATES["trailing_wait"]):
        device = device_for(instrument, kernel)

        def drive(reader: Reader) -> wave.Pulse:
            done = wave.drive_once(device, duty=busy, seconds=seconds)
            _expect(reader, done.launched, device)
            return done

        reading, pulse = read_during(repeat, instrument, drive)
        _lost(reading, pulse.launched)
        share = pulse.busy / pulse.seconds
        taken = repeat._taken_by(wave.NAME)  # noqa: SLF001
        taken.record("busy", share)
        taken.record("read", reading.value)
        taken.record("error", reading.value - share)
        taken.record("first_to_last", detail(reading, "first_to_last"))


def _expect(reader: Reader, launched: int, device: CpuDevice | CudaDevice) -> None:
    """Tell a reader that counts what it should have seen."""
    if isinstance(reader, KernelIntervals):
        reader.expect(launched, device.operator)


def _lost(reading: Reading, launched: int) -> int:
    """How many launches the instrument saw no kernel of, by its count or by ours; 0 where it counts none.

    Raises:
        UnreadableError: It is more than one in a thousand.
    """
    seen = reading.details
    lost = max(launched - seen.get("kernels", launched), seen.get("lost", 0), seen.get("calls_lost", 0))
    if lost * LOST_IN > launched:
        raise UnreadableError(f"of {launched} kernels that were launched it did not see {lost}")
    return int(lost)
