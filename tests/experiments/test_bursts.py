"""What is counted of bursts of process starts."""

from __future__ import annotations

import random

import pytest

from experiments.bursts import bursts, caught, standard_error, start_one, understated
from pytest_prereg import Repeat


def drawn(count: int, size: int, spread: float, seed: int = 1) -> list[list[float]]:
    """Bursts of normal values, whose means lie apart by another normal value of that spread."""
    draw = random.Random(seed)
    centres = [draw.gauss(10, spread) for _ in range(count)]
    return [[draw.gauss(centre, 1) for _ in range(size)] for centre in centres]


def test_of_independent_values_an_interval_holds_as_many_other_means_as_theory_says():
    of = drawn(100, 64, spread=0)
    assert caught(of) / (100 * 99) == pytest.approx(0.834, abs=0.02)
    assert understated(of) == pytest.approx(1, abs=0.15)


def test_bursts_that_lie_apart_miss_each_other():
    assert caught(drawn(8, 64, spread=5)) <= 8
    assert understated(drawn(100, 64, spread=1)) == pytest.approx(8, rel=0.2)


def test_pairs_are_ordered():
    """The interval of the wide one holds the mean of the narrow one, and not the other way round."""
    wide, narrow = [0.0, 10.0, 20.0], [13.0, 13.1, 13.2]
    assert caught([wide, narrow]) == 1
    assert standard_error(wide) > standard_error(narrow)


def test_a_process_is_started_and_awaited():
    assert start_one() > 0


def test_a_repeat_records_all_that_it_declares():
    repeat = Repeat(metrics=bursts.metrics)
    bursts(repeat, bursts=3, starts=4)
    readings = repeat.readings()
    assert readings.problems == readings.missing == []
    assert readings.values["pairs"] == 6
    assert 0 <= readings.values["caught"] <= 6
    assert readings.instruments == {"understated": "stopwatch"}
