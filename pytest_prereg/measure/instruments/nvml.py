"""What the driver says of the GPU that the body uses: utilisation and energy.

Three instruments, each of one GPU. ``Utilisation`` (unit 1) polls the utilisation rate, the number that
``nvidia-smi`` shows; ``BufferedSamples`` (unit 1) takes the samples from which the driver makes it. Either is
the share of the driver's sample period, 1/6 s to 1 s, in which one or more kernels ran. ``Energy`` (unit J)
is the difference of the energy counter. How they are known to err:
:data:`pytest_prereg.registry.instruments.INSTRUMENTS`.

What NVML refuses is handed on in its words and is never 0. From NVIDIA's NVML API reference,
https://docs.nvidia.com/deploy/nvml-api/.
"""

from __future__ import annotations

import time
from itertools import pairwise
from statistics import median
from time import monotonic
from typing import Any

from pytest_prereg.measure.instruments import nvml_library
from pytest_prereg.measure.instruments.nvml_library import ask
from pytest_prereg.measure.instruments.polling import Poller
from pytest_prereg.measure.instruments.reading import Reading, UnreadableError

LONGEST_SAMPLE = 1.0
SHORTEST_SAMPLE = 1 / 6
"""Seconds over which the driver takes a utilisation rate (``nvmlUtilization_t``)."""

OLDEST_NEWS = 2 * LONGEST_SAMPLE
"""Seconds by which a rate may lag: the last whole sample ended up to one ago, and began one earlier."""
SHORTEST_POLLED = 3.0
"""Seconds of the shortest window in which utilisation is polled."""
MOST_UNSEEN = 0.1
"""The share of the window that polls may have missed, being further apart than the shortest sample."""

FEWEST_SAMPLES = 10
MOST_SPACING = 1.75
"""Sample periods from one buffered sample to the next, at most: where one is missing there are two."""
MOST_CLOCK_STEP = 0.1
"""Seconds by which the machine's clock may run away from the monotonic one over a window."""

SHORTEST_METERED = 1.0
"""Seconds of the shortest window of the energy counter, which moves in steps of up to 0.1 s."""

_VALUE_FIELDS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
"""Where ``nvmlValue_t`` holds a value, by ``nvmlValueType_t``."""


class _Polled:
    """One window of NVML: initialised for it alone, and read in it by a thread that ends with it."""

    pause: float
    """Seconds between two reads."""

    def start(self) -> None:
        """Find the GPU and read it once, so that what isn't supported is told before the body runs.

        Raises:
            UnreadableError: There is no telling which GPU, or NVML refuses.
        """
        ask("nvmlInit")
        try:
            self._device = nvml_library.device_of_body()
            self._poller = Poller(self._read, seconds=self.pause)
            self._poller.start()
        except BaseException:
            nvml_library.shut_down()
            raise
        self._left_for: str | None = None
        self._began = monotonic()
        self._began_us = time.time_ns() // 1000

    def stop(self) -> None:
        """Read for the last time, end the thread, and give NVML back.

        Raises:
            UnreadableError: The driver hangs. NVML is not given back then: that would wait for it.
        """
        self._ended = monotonic()
        self._ended_us = time.time_ns() // 1000
        self._poller.stop()
        try:
            self._finish()
            self._left_for = nvml_library.uuid_of_torch()
        finally:
            nvml_library.shut_down()

    def _read(self) -> Any:
        """Read once; called by one thread at a time."""
        raise NotImplementedError

    def _finish(self) -> None:
        """Fetch what comes after the window has ended."""

    def _seconds(self, least: float) -> float:
        """Return how long the window took, once it is sure that it can be read."""
        if self._left_for not in {None, self._device.uuid}:
            raise UnreadableError(
                f'the body went from GPU "{self._device.uuid}" to "{self._left_for}" within the window'
            )
        seconds = self._ended - self._began
        if seconds < least:
            raise UnreadableError(f"the window took {seconds:.3g} s, and has to take {least:g} s")
        return seconds


class Utilisation(_Polled):
    """Share of the window in which the GPU ran kernels, as the driver's utilisation rate tells it.

    Reads of the first two seconds don't count: they may tell of what ran before the window. Each other one
    stands for the time since the one before it. Unreadable in a window shorter than 3 s, and where the body
    kept the thread that polls from running.
    """

    pause = 0.05

    def reading(self) -> Reading:
        """Return the mean over time; in the details by how much the reads differ (``swing``).

        Raises:
            UnreadableError: A read failed, or the reads don't tell of the window.
        """
        reads = self._poller.reads()
        self._seconds(SHORTEST_POLLED)
        since = self._began + OLDEST_NEWS
        counted = [
            (after.at - max(before.at, since), after.what)
            for before, after in pairwise(reads)
            if after.at > since
        ]
        gaps = [gap for gap, _ in counted]
        _check_seen(gaps)
        shares = [share for _, share in counted]
        return Reading(
            value=_mean(counted),
            instrument="nvml-utilisation",
            details={
                "gpu": self._device.uuid,
                "reads": len(shares),
                "swing": max(shares) - min(shares),
                "distinct": len(set(shares)),
                "period_s": sum(gaps) / len(gaps),
                "longest_gap_s": max(gaps),
            },
        )

    def _read(self) -> float:
        return _share(ask("nvmlDeviceGetUtilizationRates", self._device.handle).gpu)


class BufferedSamples(_Polled):
    """Share of the window in which the GPU ran kernels, by the driver's own samples of it.

    Only samples count whose whole period lies in the window, as their time stamps have it (microseconds
    since 1970). Unreadable where there are fewer than 10, where one is missing, and where the machine's clock
    was set meanwhile. An idle GPU may take no samples at all: that is unreadable as well, and not 0.
    """

    pause = 0.5
    """The buffer of some drivers holds two seconds."""

    def __init__(self) -> None:
        self._samples: dict[int, float] = {}
        self._newest = 0

    def reading(self) -> Reading:
        """Return the mean over time; in the details by how much the samples differ (``swing``).

        Raises:
            UnreadableError: A read failed, or samples are missing.
        """
        self._poller.reads()
        self._check_clock(self._seconds(0.0))
        stamps = self._stamps()
        spacing = self._spacing(stamps)
        counted = [((after - before) * 1e-6, self._samples[after]) for before, after in pairwise(stamps)]
        shares = [share for _, share in counted]
        return Reading(
            value=_mean(counted),
            instrument="nvml-samples",
            details={
                "gpu": self._device.uuid,
                "samples": len(shares),
                "swing": max(shares) - min(shares),
                "distinct": len(set(shares)),
                "period_s": spacing,
                "longest_gap_s": max(gap for gap, _ in counted),
            },
        )

    def _read(self) -> int:
        """Add what is new in the driver's buffer; return how many samples there are."""
        nvml = nvml_library.library()
        try:
            kind, samples = ask(
                "nvmlDeviceGetSamples", self._device.handle, nvml.NVML_GPU_UTILIZATION_SAMPLES, self._newest
            )
        except nvml_library.RefusalError as error:
            if error.code != nvml.NVML_ERROR_NOT_FOUND:
                raise
            samples = []  # none since the newest; whether one is missing shows in the end
        for sample in samples:
            self._samples[sample.timeStamp] = _share(_value(sample, kind))
            self._newest = max(self._newest, sample.timeStamp)
        return len(self._samples)

    def _finish(self) -> None:
        """Wait for a sample from after the window, which shows that those from within have all arrived."""
        until = self._ended + LONGEST_SAMPLE
        while self._newest < self._ended_us and monotonic() < until:
            time.sleep(SHORTEST_SAMPLE / 4)
            self._read()

    def _check_clock(self, seconds: float) -> None:
        step = (self._ended_us - self._began_us) * 1e-6 - seconds
        if abs(step) > MOST_CLOCK_STEP:
            raise UnreadableError(f"the machine's clock was set by {step:.3g} s within the window")

    def _stamps(self) -> list[int]:
        """Return the time stamps of the samples in the window, in order."""
        inside = sorted(stamp for stamp in self._samples if self._began_us <= stamp <= self._ended_us)
        if len(inside) < FEWEST_SAMPLES:
            newest = f", the newest {(self._ended_us - self._newest) * 1e-6:.3g} s before its end"
            raise UnreadableError(
                f"of {len(self._samples)} samples that the driver gave {len(inside)} are from the window"
                f"{newest if self._samples else ''}; it takes {FEWEST_SAMPLES}"
            )
        return inside

    def _spacing(self, stamps: list[int]) -> float:
        """Return the seconds from one sample to the next, once it is sure that none is missing."""
        spacing = median(after - before for before, after in pairwise(stamps))
        longest = max(after - before for before, after in pairwise([self._began_us, *stamps, self._ended_us]))
        if longest > MOST_SPACING * spacing:
            raise UnreadableError(
                f"there is no sample for {longest * 1e-6:.3g} s of the window, though one comes every "
                f"{spacing * 1e-6:.3g} s"
            )
        return spacing * 1e-6


class Energy(_Polled):
    """Joules that the GPU took over the window, by the driver's counter.

    Unreadable in a window shorter than 1 s, and where the counter goes backwards or stands still.
    """

    pause = 0.1

    def __init__(self) -> None:
        self._no_power: str | None = None

    def reading(self) -> Reading:
        """Return the joules; in the details the mean power, and by how much polled power differs.

        Raises:
            UnreadableError: A read failed, or the counter doesn't tell of the window.
        """
        reads = self._poller.reads()
        self._seconds(SHORTEST_METERED)
        for before, after in pairwise(reads):
            _check_counter(before.what[0], after.what[0])
        joules = (reads[-1].what[0] - reads[0].what[0]) * 1e-3
        if joules == 0:
            raise UnreadableError("the energy counter stood still over the window")
        return Reading(
            value=joules,
            instrument="nvml-energy",
            details={
                "gpu": self._device.uuid,
                "mean_power_w": joules / (reads[-1].at - reads[0].at),
                "reads": len(reads),
                **self._polled_power([watts for _, (_, watts) in reads]),
            },
        )

    def _read(self) -> tuple[int, float | None]:
        """Return millijoules of the counter, and watts at the moment."""
        return ask("nvmlDeviceGetTotalEnergyConsumption", self._device.handle), self._power()

    def _power(self) -> float | None:
        """Return watts, ``None`` where NVML doesn't tell them: they are no part of the reading."""
        if self._no_power is not None:
            return None
        try:
            return float(ask("nvmlDeviceGetPowerUsage", self._device.handle)) * 1e-3
        except UnreadableError as error:
            self._no_power = str(error)
            return None

    def _polled_power(self, polled: list[float | None]) -> dict[str, Any]:
        if self._no_power is not None:
            return {"polled_power": self._no_power}
        watts = [each for each in polled if each is not None]
        return {"polled_power_w": sum(watts) / len(watts), "power_swing_w": max(watts) - min(watts)}


def _value(sample: Any, kind: int) -> float:
    if kind >= len(_VALUE_FIELDS):
        raise UnreadableError(f"NVML gives samples of a type that it doesn't document, {kind}")
    return float(getattr(sample.sampleValue, _VALUE_FIELDS[kind]))


def _share(percent: float) -> float:
    if not 0 <= percent <= 100:  # noqa: PLR2004
        raise UnreadableError(f"NVML reads {percent:g} % utilisation")
    return percent / 100


def _check_seen(gaps: list[float]) -> None:
    """Refuse polls that were so far apart that the driver's samples in between were not seen."""
    total = sum(gaps)
    unseen = sum(max(0.0, gap - SHORTEST_SAMPLE) for gap in gaps)
    if unseen > MOST_UNSEEN * total:
        raise UnreadableError(
            f"{unseen:.3g} s of {total:.3g} s passed unseen, since nothing was polled for up to "
            f"{max(gaps):.3g} s: the body must let other threads run"
        )


def _check_counter(before: int, after: int) -> None:
    if after < before:
        raise UnreadableError(f"the energy counter went back, from {before} to {after} mJ")


def _mean(shares: list[tuple[float, float]]) -> float:
    """Return the mean of shares, each with the seconds that it stands for."""
    return sum(seconds * share for seconds, share in shares) / sum(seconds for seconds, _ in shares)
