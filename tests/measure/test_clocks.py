"""Clocks over a window: what they read of it, and that they need what they read."""

from __future__ import annotations

import time

import pytest

from pytest_prereg import Repeat
from pytest_prereg.measure.instruments import wall_clock
from pytest_prereg.measure.instruments.clocks import CudaEventsReader, WallClockReader
from pytest_prereg.measure.instruments.reading import UnreadableError


def test_the_wall_clock_reads_from_start_to_stop():
    clock = WallClockReader()
    before = time.perf_counter()
    clock.start()
    inside = time.perf_counter()
    time.sleep(0.02)
    slept = time.perf_counter() - inside
    clock.stop()
    assert slept <= clock.reading().value <= time.perf_counter() - before


def test_a_window_of_the_wall_clock_is_in_the_unit_of_its_metric():
    repeat = Repeat(metrics={"t": "ms"})
    with repeat.instrument("wall-clock").window("t"):
        time.sleep(0.02)
    readings = repeat.readings()
    assert 20 <= readings.values["t"] < 2000
    assert readings.instruments == {"t": "wall-clock"}


def test_events_are_unreadable_where_cuda_is_not_used():
    if wall_clock.cuda_in_use() is not None:
        pytest.skip("an earlier test has used CUDA in this process")
    with pytest.raises(UnreadableError, match="no CUDA device is used in this process"):
        CudaEventsReader().start()


def test_a_repeat_that_needs_events_is_invalid_where_cuda_is_not_used():
    if wall_clock.cuda_in_use() is not None:
        pytest.skip("an earlier test has used CUDA in this process")
    repeat = Repeat(metrics={"t": "s"})
    with repeat.instrument("cuda-events").window("t"):
        pass
    readings = repeat.readings()
    assert readings.values == {}
    assert readings.problems == [
        'metric "t": cuda-events can\'t be read: no CUDA device is used in this process'
    ]


@pytest.fixture
def cuda():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    torch.cuda.init()
    return torch.cuda


SLEEP_CYCLES = 200_000_000
"""Some tenth of a second at 1 to 2 GHz."""


def read_events(body):
    repeat = Repeat(metrics={})
    with repeat.instrument("cuda-events").window("t") as window:
        body()
    assert window.reading is not None
    return window.reading


@pytest.mark.torch
@pytest.mark.gpu
def test_events_read_what_the_device_took_and_hardly_less_than_the_wall_clock(cuda):
    read_events(lambda: cuda._sleep(1000))  # loads the kernel
    reading = read_events(lambda: cuda._sleep(SLEEP_CYCLES))
    assert reading.instrument == "cuda-events"
    assert reading.value > 0.02
    assert 0.9 * reading.details["wall"] < reading.value < 1.001 * reading.details["wall"]


@pytest.mark.torch
@pytest.mark.gpu
def test_events_cover_work_on_another_stream_of_the_device(cuda):
    side = cuda.Stream()

    def work():
        with cuda.stream(side):
            cuda._sleep(SLEEP_CYCLES)

    alone = read_events(lambda: cuda._sleep(SLEEP_CYCLES)).value
    assert read_events(work).value > 0.5 * alone


@pytest.mark.torch
@pytest.mark.gpu
def test_it_is_told_if_the_body_leaves_another_stream_current(cuda):
    found = cuda.current_stream()
    try:
        reading = read_events(lambda: cuda.set_stream(cuda.Stream()))
    finally:
        cuda.set_stream(found)
    assert reading.details["stream_changed"] is True
    assert read_events(lambda: None).details["stream_changed"] is False


@pytest.mark.torch
@pytest.mark.gpu
def test_a_body_that_raises_has_no_events_and_keeps_its_own_error(cuda):
    repeat = Repeat(metrics={"t": "s"})
    with pytest.raises(LookupError), repeat.instrument("cuda-events").window("t"):
        raise LookupError
    assert repeat.readings().values == {}
