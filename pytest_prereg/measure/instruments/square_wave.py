"""The square wave: a load of a known duty cycle that measures itself, to hold other instruments against.

Unit: 1, the share of the time in which the device was busy. A period is busy for a while and then asleep;
busy means to launch one kernel, wait for its end, and again. Each is timed from its launch to the end of the
wait, so the host's clock sees when the device is busy, and what the wave says of itself rests on no profiler
and no driver. That is true only if the host
really waits, which is why it is checked: a wave whose device has work when it should have none is refused. A
stimulus that merely queues its kernels keeps the device busy through the pauses, and reads near 100 % at any
duty; the first probe of *Price the Reward Function* did, and was nearly published.

Known bias: high. What the host does between a launch and the end of the wait counts as busy, some
microseconds a kernel; what it does between two kernels doesn't. A busy machine lengthens kernels, and is
measured as such; a wave that is far from the one that was asked for is refused.
"""

from __future__ import annotations

import math
import time
from itertools import pairwise
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

import msgspec

from pytest_prereg.judge.ratios import paired_fieller

if TYPE_CHECKING:
    from collections.abc import Sequence

WORKLOAD_VERSION = "1"
NAME = "square-wave"
STRETCHES = 5
"""Of consecutive periods, of which an interval is made: what lasts for some periods stays within one."""
FARTHEST = 0.05
"""From the duty that was asked for: a wave that is never off would be no wave, and read right by anything."""
DRAINED_SECONDS = 0.002
"""An idle device is waited for in microseconds; of one that has work left this is a kernel or two."""


class StimulusError(Exception):
    """The stimulus is not what it says it is, for the reason that the message gives."""


class Device(Protocol):
    """What a wave drives: one queue of equal kernels."""

    @property
    def kernel_seconds(self) -> float:
        """The least time that a kernel has taken, by the device's own clock; asked only when it is idle."""

    def launch(self) -> object:
        """Enqueue one kernel, and exactly one; it need not have ended, or begun, on return."""

    def synchronise(self) -> object:
        """Wait for the end of all that was launched."""

    def took(self, seconds: float) -> None:
        """Hear how long the host saw one launch and the wait for it take; for a device without a clock."""

    def is_idle(self) -> bool:
        """Whether all that was launched has ended, without waiting for it."""


class Pulse(msgspec.Struct, frozen=True, gc=False):
    """One period, by the monotonic clock of the host, in seconds."""

    began: float
    paused: float
    """When the last kernel of the busy part had ended."""
    ended: float
    launched: int
    busy: float
    """Seconds from a launch to the end of the wait for it, of all its kernels together."""
    drained: float
    """How long the device had to be waited for at the end of the pause."""

    @property
    def seconds(self) -> float:
        """Of the whole period, as it turned out."""
        return self.ended - self.began


class Wave(msgspec.Struct, frozen=True, kw_only=True):
    """What a wave measured of itself."""

    duty: float
    """The share of the time, over whole periods, in which the device was busy."""
    interval: tuple[float, float]
    """For the duty at 95 %, from how stretches of the wave differ; ``drive`` says how.

    It says where the duty of another wave of this kind on this machine would be. It is not how far a reading
    may be off: that read this very wave, whose duty is known far better.
    """
    periods: int
    launched: int
    kernel_seconds: float
    """The least time that a kernel took."""
    on: tuple[tuple[float, float], ...]
    """Beginning and end of each busy part, in seconds of ``time.perf_counter``."""

    @property
    def half_width(self) -> float:
        """Half the length of the interval."""
        return (self.interval[1] - self.interval[0]) / 2


def drive(device: Device, *, duty: float, period: float, seconds: float) -> Wave:
    """Drive a device through whole periods, and return what that was by the host's clock.

    The duty is a ratio of sums: seconds busy over seconds of the periods, as both turned out. Its interval is
    Fieller's for such a ratio (Fieller 1954), with five stretches of consecutive periods as the independent
    units, as in batch means (Law and Kelton, Simulation Modeling and Analysis, ch. 9). At 50 periods it
    holds in 95 % of simulated waves whose periods are independent, in 92 % where neighbours correlate by 0.6
    (one period a unit: 71 %), in 81 % at 0.9, and in 36 % where one period in a hundred stalls: a wave that
    met no stall doesn't know of them.

    Args:
        device: Idle, and nobody else's meanwhile.
        duty: The share of each period to be busy for, above 0 and below 1; at least one kernel is launched.
        period: Seconds.
        seconds: Of the whole wave, rounded to periods; at least five of them.

    Raises:
        ValueError: A duty that is no share, or too few periods.
        StimulusError: The device is not idle when all that was launched should have ended, or the duty is
            more than 5 points off.
    """
    count = _periods(duty, period, seconds)
    pulses = [_pulse(device, busy=duty * period, seconds=period) for _ in range(count)]
    _refuse_late_work(pulses, device.kernel_seconds)
    _refuse_another_duty(pulses, duty, period)
    return _measured(pulses, device.kernel_seconds)


def drive_once(device: Device, *, duty: float, seconds: float) -> Pulse:
    """Drive a device through a single period: busy first, then a pause to the end.

    Raises:
        ValueError: A duty that is no share, or no seconds.
        StimulusError: As :func:`drive`.
    """
    _check_duty(duty, seconds)
    pulse = _pulse(device, busy=duty * seconds, seconds=seconds)
    _refuse_late_work([pulse], device.kernel_seconds)
    _refuse_another_duty([pulse], duty, seconds)
    return pulse


def _measured(pulses: Sequence[Pulse], kernel: float) -> Wave:
    stretches = _stretches(pulses)
    found = paired_fieller(
        [math.fsum(one.busy for one in stretch) for stretch in stretches],
        [math.fsum(one.seconds for one in stretch) for stretch in stretches],
    )
    return Wave(
        duty=found.estimate,
        interval=(found.low, found.high),
        periods=len(pulses),
        launched=sum(one.launched for one in pulses),
        kernel_seconds=kernel,
        on=tuple((one.began, one.paused) for one in pulses),
    )


def _stretches(pulses: Sequence[Pulse]) -> list[Sequence[Pulse]]:
    """Cut a wave into five parts, as long as each other to one period."""
    cuts = [len(pulses) * number // STRETCHES for number in range(STRETCHES + 1)]
    return [pulses[low:high] for low, high in pairwise(cuts)]


def _periods(duty: float, period: float, seconds: float) -> int:
    _check_duty(duty, period)
    if not _is_number(seconds):
        raise ValueError(f"seconds: {seconds} is no number of them")
    count = math.floor(seconds / period + 0.5) if math.isfinite(seconds) else 0
    if count < STRETCHES:
        least = STRETCHES * period
        raise ValueError(
            f"seconds: {seconds:g} hold {count} periods of {period:g} s, and an interval is made of at least "
            f"{STRETCHES}; give it {least:g} or more"
        )
    return count


def _check_duty(duty: float, period: float) -> None:
    if not _is_number(duty) or not 0 < duty < 1:
        raise ValueError(f"duty: {duty} is not above 0 and below 1; a wave is busy for a part of the time")
    if not _is_number(period) or not 0 < period < math.inf:
        raise ValueError(f"period: {period} is no number of seconds above 0")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _pulse(device: Device, *, busy: float, seconds: float) -> Pulse:
    """Run one period, refused at once if the device is not idle for all of its pause."""
    began = perf_counter()
    launched, took, paused = _busy(device, began + busy)
    _refuse_unsynchronised(device, launched, took)
    time.sleep(max(0.0, began + seconds - perf_counter()))
    if not device.is_idle():
        raise StimulusError(_NOT_IDLE.format("at the end of a pause"))
    waiting = perf_counter()
    device.synchronise()
    ended = perf_counter()
    return Pulse(began, paused, ended, launched, took, ended - waiting)


def _busy(device: Device, until: float) -> tuple[int, float, float]:
    """Launch one kernel after another until the clock shows ``until``.

    Returns:
        How many, the seconds that they took together, and when the last had ended.
    """
    launch, synchronise = device.launch, device.synchronise
    launched, took, shortest, ended = 0, 0.0, math.inf, -math.inf
    while ended < until:
        began = perf_counter()
        launch()
        synchronise()
        ended = perf_counter()
        took += ended - began
        shortest = min(shortest, ended - began)
        launched += 1
    device.took(shortest)
    return launched, took, ended


def _refuse_unsynchronised(device: Device, launched: int, busy: float) -> None:
    """Raise if the kernels of a busy part can't all have ended in it."""
    if not device.is_idle():
        raise StimulusError(_NOT_IDLE.format("right after it was waited for"))
    kernel = device.kernel_seconds
    if launched * kernel > busy:
        raise StimulusError(
            f"{launched} kernels of at least {kernel * 1e3:.3g} ms take {launched * kernel:.3g} s, and were "
            f"said to have ended in {busy:.3g} s: launching did not wait for them; {_ADVICE}"
        )


def _refuse_late_work(pulses: Sequence[Pulse], kernel: float) -> None:
    """Raise if the device was still at work at the end of its pauses, of most of them.

    A single wait says nothing: the host itself may have been put aside in it.
    """
    waited = median(one.drained for one in pulses)
    if waited > max(kernel, DRAINED_SECONDS):
        raise StimulusError(
            f"at the end of a pause the device had to be waited for, {waited * 1e3:.3g} ms: it had work "
            f"left; {_ADVICE}"
        )


def _refuse_another_duty(pulses: Sequence[Pulse], duty: float, period: float) -> None:
    """Raise if the wave is another than the one that was asked for."""
    busy = math.fsum(one.busy for one in pulses)
    found, kernel = (
        busy / math.fsum(one.seconds for one in pulses),
        busy / sum(one.launched for one in pulses),
    )
    if abs(found - duty) <= FARTHEST:
        return
    on = math.fsum(one.paused - one.began for one in pulses) / math.fsum(one.seconds for one in pulses)
    why = "the machine is too busy; make period longer, or leave the machine alone"
    if found < duty - FARTHEST <= on:
        why = f"a kernel of {kernel:.3g} s is shorter than what the host does between two; make kernel longer"
    if kernel > min(duty, 1 - duty) * period:
        why = f"a kernel of {kernel:.3g} s is too long for a period of {period:g} s; make period longer"
    raise StimulusError(f"the wave was on for {found:.3g} of the time, and {duty:g} was asked for: {why}")


_ADVICE = "a load that is not synchronised has another duty than the host sees, so it calibrates nothing"
_NOT_IDLE = "the device has work left {}: what was launched was not waited for; " + _ADVICE
