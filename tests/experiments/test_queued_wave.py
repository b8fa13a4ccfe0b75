"""A wave whose kernels are queued: what the stream does with them, and what is recorded of it."""

from __future__ import annotations

import threading
import time

import pytest

from experiments.queued_wave import Stream, drive, queued_wave, seconds_in
from pytest_prereg import Repeat


def nap() -> None:
    time.sleep(0.004)


def test_a_stream_runs_in_order_what_was_queued():
    with Stream(nap) as stream:
        for _ in range(5):
            stream.launch()
        stream.synchronise()
        assert len(stream.ran) == 5
    assert all(one[1] <= other[0] for one, other in zip(stream.ran, stream.ran[1:], strict=False))
    assert seconds_in(stream.ran) >= 5 * 0.004


def test_what_is_still_queued_at_the_end_is_thrown_away():
    before = threading.active_count()
    with Stream(nap) as stream:
        for _ in range(500):
            stream.launch()
    assert len(stream.ran) < 100
    assert threading.active_count() == before


def test_a_full_queue_makes_whoever_launches_wait():
    with Stream(nap, depth=2) as stream:
        began = time.perf_counter()
        for _ in range(10):
            stream.launch()
        assert time.perf_counter() - began >= 6 * 0.004


@pytest.mark.parametrize("synchronise", [True, False])
def test_launching_lasts_for_the_busy_part_of_each_period(synchronise):
    with Stream(nap) as stream:
        launching = drive(stream, 0.02, 0.05, 4, synchronise=synchronise)
    assert launching >= 4 * 0.02
    if synchronise:
        assert seconds_in(stream.ran) <= launching


@pytest.mark.torch
def test_a_repeat_records_all_that_it_declares():
    pytest.importorskip("torch")
    repeat = Repeat(metrics=queued_wave.metrics)
    queued_wave(repeat, synchronise=False, kernel=2e-3, period=0.05, seconds=0.3)
    readings = repeat.readings()
    assert readings.problems == readings.missing == []
    assert readings.instruments == {
        "host": "stopwatch",
        "device": "stopwatch",
        "read": "operator-intervals",
    }
