"""What counts as a reading."""

from __future__ import annotations

import array
import time
from decimal import Decimal

import numpy as np
import pytest

from pytest_prereg.measure.readings import ReadingError, reading
from pytest_prereg.registry.durations import seconds_in


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, 3.0),
        (2.5, 2.5),
        (True, 1.0),
        (Decimal("0.5"), 0.5),
        (np.float64(1.5), 1.5),
        (np.array(1.5), 1.5),
        (np.int32(4), 4.0),
        (np.True_, 1.0),
        ([1, 2.5], [1.0, 2.5]),
        (np.arange(3), [0.0, 1.0, 2.0]),
        ((x for x in (1, 2)), [1.0, 2.0]),
        ([np.float32(0.5)], [0.5]),
    ],
)
def test_numbers_of_every_kind_are_readings(value, expected):
    assert reading("k", value, "1") == expected


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), np.nan, [1.0, float("nan")]])
def test_what_is_not_finite_is_refused_by_name(value):
    with pytest.raises(ReadingError, match=r'metric "loss": (nan|-?inf) is not a finite number'):
        reading("loss", value, "1")


@pytest.mark.parametrize("value", ["3", b"3", None, 1j, {"a": 1}, np.zeros((2, 2)), 10**400, object()])
def test_what_is_no_number_is_refused_by_name(value):
    with pytest.raises(ReadingError, match='metric "loss"'):
        reading("loss", value, "1")


@pytest.mark.parametrize(
    "value",
    [
        np.float32(0.1),
        np.array([0.1], dtype=np.float16),
        [0.1, np.float32(0.1)],
        array.array("f", [0.1]),
    ],
)
def test_a_time_in_less_than_double_precision_is_refused(value):
    with pytest.raises(ReadingError, match=r'metric "t": .* too coarse for a time'):
        reading("t", value, "ms")


@pytest.mark.parametrize(
    ("value", "unit"),
    [(time.time(), "s"), (time.time_ns(), "ns"), (time.time() * 1000, "ms"), ([0.1, time.time()], "second")],
)
def test_a_point_in_time_is_no_duration(value, unit):
    with pytest.raises(ReadingError, match=r'metric "t": .* is a point in time'):
        reading("t", value, unit)


@pytest.mark.parametrize(("value", "unit"), [(1.7e9, "token"), (1.7e9, "ns"), (86_400 * 365, "s")])
def test_large_numbers_that_are_no_points_in_time_are_readings(value, unit):
    assert reading("k", value, unit) == value


@pytest.mark.parametrize(
    ("unit", "seconds"),
    [("s", 1), ("ms", 1e-3), ("ns", 1e-9), ("min", 60), ("hours", 3600), ("microseconds", 1e-6), ("secs", 1)],
)
def test_units_of_time_are_known_in_singular_and_plural(unit, seconds):
    assert seconds_in(unit) == seconds


@pytest.mark.parametrize("unit", ["1", "token", "tokens/s", "m", "step"])
def test_other_units_are_not_taken_for_time(unit):
    assert seconds_in(unit) is None


@pytest.mark.torch
def test_torch_numbers_are_readings_and_coarse_ones_are_no_times():
    torch = pytest.importorskip("torch")
    assert reading("k", torch.tensor(2.0, dtype=torch.float64, requires_grad=True), "1") == 2.0
    assert reading("k", torch.tensor([1.0, 2.0], dtype=torch.bfloat16), "1") == [1.0, 2.0]
    for tensor in (torch.tensor(0.5), torch.tensor([0.5], dtype=torch.bfloat16)):
        with pytest.raises(ReadingError, match="too coarse for a time"):
            reading("t", tensor, "s")
