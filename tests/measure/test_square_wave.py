"""The square wave: it measures its own duty, and refuses a device that is not waited for."""

from __future__ import annotations

import math
import threading
import time

import pytest
from thread_devices import ThreadDevice, Unsynchronised

from pytest_prereg.measure.instruments import square_wave, wave_devices
from pytest_prereg.measure.instruments.square_wave import Pulse, StimulusError, drive, drive_once

TWO_SIDED_95_AT_4_DF = 2.776445  # Fisher and Yates, Statistical Tables, table III


class Lying(Unsynchronised):
    """It says moreover that it is idle."""

    def is_idle(self) -> bool:
        return True


class Underrating(Lying):
    """And it doesn't know how long its kernels are; but who waits for it a second time has to wait."""

    kernel_seconds = 0.0

    def __init__(self) -> None:
        self.launched_since = False
        super().__init__()

    def launch(self) -> None:
        self.launched_since = True
        super().launch()

    def synchronise(self) -> None:
        if not self.launched_since:
            ThreadDevice.synchronise(self)
        self.launched_since = False


class Late(ThreadDevice):
    """Idle when it was waited for, and at work again in the pause, beyond its end."""

    def synchronise(self) -> None:
        super().synchronise()
        threading.Timer(0.005, self.launch_many).start()

    def launch_many(self) -> None:
        for _ in range(1000):
            super().launch()


@pytest.fixture
def make():
    made = []

    def device(kind=ThreadDevice):
        made.append(kind())
        return made[-1]

    yield device
    for each in made:
        each.close()


def test_a_device_that_is_waited_for_never_works_in_a_pause(make):
    device = make()
    wave = drive(device, duty=0.3, period=0.1, seconds=0.6)
    assert wave.periods == len(wave.on) == 6
    assert wave.launched == len(device.ran)
    assert all(any(on <= began and ended <= off for on, off in wave.on) for began, ended in device.ran)


def test_the_duty_is_what_was_measured_not_what_was_asked_for(make):
    """Kernels that outlast the busy part, as on a machine that puts the process aside, make it longer."""

    class Slow(ThreadDevice):
        def launch(self) -> None:
            time.sleep(0.05)
            super().launch()

    wave = drive(make(Slow), duty=0.1, period=0.4, seconds=2.0)
    assert wave.launched == 5
    assert wave.duty > 0.12
    assert wave.interval[0] <= wave.duty <= wave.interval[1]


def test_the_kernel_is_the_shortest_by_the_devices_own_clock(make):
    device = make()
    assert drive(device, duty=0.3, period=0.1, seconds=0.5).kernel_seconds == device.kernel_seconds < 0.02


def test_the_interval_is_fiellers_over_five_stretches():
    """At its limits r the mean of busy - r x period is t standard errors from 0 (Fieller 1954)."""
    lengths = [(0.3, 1.0), (0.32, 1.01), (0.29, 1.0), (0.4, 1.2), (0.31, 0.99)]
    halves = [(busy / 2 + way, period / 2 - way) for busy, period in lengths for way in (0.1, -0.1)]
    pulses = [Pulse(0.0, period / 2, period, 7, busy, 0.0) for busy, period in halves]
    wave = square_wave._measured(pulses, 1e-3)
    assert wave.duty == pytest.approx(sum(busy for busy, _ in lengths) / sum(period for _, period in lengths))
    assert (wave.periods, wave.launched) == (10, 70)
    for limit in wave.interval:
        values = [busy - limit * period for busy, period in lengths]
        mean = math.fsum(values) / 5
        error = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / 4 / 5)
        assert abs(mean) / error == pytest.approx(TWO_SIDED_95_AT_4_DF, rel=1e-5)
    assert wave.half_width == pytest.approx((wave.interval[1] - wave.interval[0]) / 2)


@pytest.mark.parametrize("periods", range(5, 25))
def test_every_period_is_in_one_stretch(periods: int):
    pulses = [Pulse(float(at), at + 0.5, at + 1.0, 7, 0.5, 0.0) for at in range(periods)]
    stretches = square_wave._stretches(pulses)
    assert [pulse for stretch in stretches for pulse in stretch] == pulses
    lengths = [len(stretch) for stretch in stretches]
    assert (len(lengths), max(lengths) - min(lengths) <= 1) == (5, True)


def test_a_wave_that_is_never_off_is_refused(make):
    """Whatever always reads 1 would be right about it."""

    class Endless(ThreadDevice):
        def launch(self) -> None:
            time.sleep(0.05)
            super().launch()

    told = (
        r"the wave was on for .* of the time, and 0.5 was asked for: a kernel of .* is too long for a period"
    )
    with pytest.raises(StimulusError, match=told):
        drive(make(Endless), duty=0.5, period=0.02, seconds=0.1)
    with pytest.raises(StimulusError, match=told):
        drive_once(make(Endless), duty=0.5, seconds=0.02)


def test_a_wave_of_kernels_that_the_host_can_not_keep_up_with_says_so():
    pulses = [Pulse(0.0, 0.5, 1.0, 100_000, 0.2, 0.0)] * 5
    with pytest.raises(
        StimulusError, match="a kernel of 2e-06 s is shorter than what the host does between two"
    ):
        square_wave._refuse_another_duty(pulses, 0.5, 1.0)


@pytest.mark.parametrize(("busy", "refused"), [(0.44, True), (0.46, False), (0.54, False), (0.56, True)])
def test_a_wave_is_the_one_that_was_asked_for_to_five_points(busy: float, refused: bool):  # noqa: FBT001
    pulses = [Pulse(0.0, busy, 1.0, 100, busy, 0.0)] * 5
    if not refused:
        return square_wave._refuse_another_duty(pulses, 0.5, 1.0)
    with pytest.raises(StimulusError, match="the machine is too busy; make period longer"):
        square_wave._refuse_another_duty(pulses, 0.5, 1.0)
    return None


def test_an_unsynchronised_load_is_refused(make):
    """Such a load reads near 100 % at any duty, and was nearly published (Price the Reward Function)."""
    with pytest.raises(StimulusError, match="the device has work left right after it was waited for"):
        drive(make(Unsynchronised), duty=0.3, period=0.1, seconds=1)


def test_an_unsynchronised_load_is_refused_though_its_device_says_that_it_is_idle(make):
    with pytest.raises(StimulusError, match=r"kernels of at least .* ms take .* launching did not wait"):
        drive(make(Lying), duty=0.3, period=0.1, seconds=1)


def test_a_load_that_has_to_be_waited_for_after_its_pauses_is_refused(make):
    with pytest.raises(StimulusError, match="at the end of a pause the device had to be waited for"):
        drive(make(Underrating), duty=0.9, period=0.05, seconds=0.25)


def test_work_that_begins_in_a_pause_is_refused(make):
    with pytest.raises(StimulusError, match="the device has work left at the end of a pause"):
        drive_once(make(Late), duty=0.001, seconds=0.1)


def test_a_wait_that_was_long_once_is_a_busy_machine():
    waits = [0.0, 0.05, 0.0, 0.0, 0.0]
    square_wave._refuse_late_work([Pulse(0, 0.3, 1, 7, 0.3, wait) for wait in waits], 1e-3)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"duty": 0.0}, "duty: 0.0 is not above 0 and below 1"),
        ({"duty": 1.2}, "duty: 1.2 is not above 0 and below 1"),
        ({"duty": math.nan}, "duty: nan is not above"),
        ({"duty": "0.5"}, "duty: 0.5 is not above 0 and below 1"),
        ({"period": True}, "period: True is no number of seconds"),
        ({"seconds": "5"}, "seconds: 5 is no number of them"),
        ({"period": 0.0}, "period: 0.0 is no number of seconds above 0"),
        ({"seconds": 0.4}, "seconds: 0.4 hold 4 periods of 0.1 s.*at least 5; give it 0.5 or more"),
        ({"seconds": math.inf}, "seconds: inf hold 0 periods"),
    ],
)
def test_a_wave_that_can_not_be_driven_is_refused_before_it_starts(asked: dict, told: str, make):
    device = make()
    with pytest.raises(ValueError, match=told):
        drive(device, **{"duty": 0.3, "period": 0.1, "seconds": 1.0, **asked})
    assert device.ran == []


def test_the_work_of_a_kernel_is_found_by_trying():
    """A launch takes 10 us, and every million multiplications 50 us more."""
    tried = []

    def seconds(work: float) -> float:
        tried.append(work)
        return 1e-5 + work * 5e-11

    work = wave_devices._work_for(1e-3, seconds, 1e10)
    assert seconds(work) == pytest.approx(1e-3, rel=0.05)
    assert len(tried) <= 7


def test_a_kernel_shorter_than_its_launch_is_as_short_as_can_be():
    assert wave_devices._work_for(1e-6, lambda work: 1e-5 + work * 5e-11, 1e10) < 1e4


def test_a_kernel_is_no_longer_than_fits():
    assert wave_devices._work_for(1.0, lambda work: work * 5e-11, 1e9) == 1e9


@pytest.mark.torch
@pytest.mark.quiet
def test_a_longer_kernel_has_a_higher_degree():
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    short, long = wave_devices.CpuDevice(2e-5), wave_devices.CpuDevice(1e-3)
    torch.set_num_threads(threads)
    assert short._degrees[0] < long._degrees[0]


@pytest.mark.parametrize("kernel", [0.0, -1.0, math.inf, math.nan, "0.001", True])
def test_a_kernel_has_to_take_some_time(kernel: float):
    with pytest.raises(ValueError, match="is no number of seconds above 0"):
        wave_devices.device_for("operator-intervals", kernel)


@pytest.mark.gpu
class TestOnCuda:
    """A stream that really is asynchronous."""

    @pytest.fixture
    def device(self):
        if not pytest.importorskip("torch").cuda.is_available():
            pytest.skip("needs a CUDA device")
        return wave_devices.CudaDevice(1e-3)

    def test_a_launch_does_not_wait(self, device):
        for _ in range(200):
            device.launch()
        assert not device.is_idle()
        device.synchronise()
        assert device.is_idle()

    def test_a_wave_measures_itself(self, device):
        wave = drive(device, duty=0.3, period=0.05, seconds=0.5)
        assert wave.duty == pytest.approx(0.3, abs=0.1)
        assert 0 < wave.launched * wave.kernel_seconds < sum(off - on for on, off in wave.on)

    def test_an_unsynchronised_stream_is_refused(self, device, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(device, "synchronise", lambda: None)
        with pytest.raises(StimulusError, match="the device has work left"):
            drive(device, duty=0.3, period=0.1, seconds=1)
