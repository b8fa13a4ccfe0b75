"""Numbers are printed at what their interval supports, and never so short that they contradict the verdict."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_prereg.judge.numbers import number_text, plain, short


@pytest.mark.parametrize(
    ("estimate", "interval", "unit", "text"),
    [
        (0.213, (0.208, 0.218), "1", "0.2130 [0.2080, 0.2180]"),
        (-0.441, (-0.647599, -0.234401), "s", "-0.44 [-0.65, -0.23] s"),
        (54.9, (54.7, 55.1), "%", "54.90 [54.70, 55.10] %"),
        (12345.6, (12045, 12645), "token/s", "12350 [12040, 12640] token/s"),
        (3.2e9, (3.1e9, 3.3e9), None, "3.20e9 [3.10e9, 3.30e9]"),
        (2.5e-7, (2.0e-7, 3.0e-7), "s", "2.50e-7 [2.00e-7, 3.00e-7] s"),
        (-0.001, (-0.5, 0.5), "1", "0.00 [-0.50, 0.50]"),
    ],
)
def test_two_digits_of_the_half_width_set_the_precision(estimate, interval, unit, text):
    assert number_text(estimate, interval, unit) == text


@pytest.mark.parametrize(
    ("estimate", "interval", "text"),
    [
        (None, (None, 41.0), "[.., 41] s"),
        (None, (-math.inf, 41.0), "[.., 41] s"),
        (12.0, (10.0, math.inf), "12.0 [10.0, ..] s"),
        (7.0, (None, None), "7 [.., ..] s"),
        (7.25, None, "7.25 s"),
        (None, None, "no value"),
    ],
)
def test_what_is_missing_or_infinite_is_left_open(estimate, interval, text):
    assert number_text(estimate, interval, "s") == text


def test_an_exact_number_shows_no_more_than_it_has():
    assert number_text(4096.0, (4096.0, 4096.0), "token") == "4096 [4096, 4096] token"
    assert number_text(1 / 3, (1 / 3, 1 / 3)) == "0.333333 [0.333333, 0.333333]"
    assert number_text(0.0, (0.0, 0.0)) == "0 [0, 0]"


def test_digits_are_added_where_rounding_would_put_an_end_on_the_threshold():
    assert number_text(0.2, (0.15, 0.2499), edges=()) == "0.200 [0.150, 0.250]"
    assert number_text(0.2, (0.15, 0.2499), edges=[0.25]) == "0.2000 [0.1500, 0.2499]"


@given(
    st.floats(-1e6, 1e6),
    st.floats(1e-6, 1e6),
    st.lists(st.floats(-1e6, 1e6), max_size=3),
)
def test_printed_ends_lie_on_the_side_of_each_edge_that_the_true_ones_do(low, length, edges):
    high = low + length
    printed = [float(text) for text in re.findall(r"[-\d.e]+", number_text(None, (low, high), edges=edges))]
    assert len(printed) == 2
    for true, shown in zip((low, high), printed, strict=True):
        near = [edge for edge in edges if abs(edge - true) < 1e-9 * max(1, abs(true))]
        assert [edge < true for edge in edges if edge not in near] == [
            edge < shown for edge in edges if edge not in near
        ]


@given(st.floats(-1e9, 1e9), st.integers(-3, 6))
def test_a_number_is_never_minus_zero(value, place):
    assert not re.fullmatch(r"-0\.?0*", plain(value, place))


def test_a_number_that_somebody_wrote_stays_as_it_was():
    assert [short(value) for value in (0.25, -0.0, 1e-9, 95.0)] == ["0.25", "0", "1e-09", "95"]
