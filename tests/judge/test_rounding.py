from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_prereg.judge.findings import rounded

POWERS = range(-10, 18)


def by_text(value):
    return float(f"{value:.15g}")


def same(value):
    """Whether both ways agree to the sign of zero."""
    return repr(rounded(value)) == repr(by_text(value))


@given(st.floats(allow_nan=False))
def test_any_number_is_what_its_fifteen_digits_say(value):
    assert same(value)


@given(st.floats(min_value=1e-8, max_value=1e16), st.booleans())
def test_so_is_one_of_common_size(value, negative):
    assert same(-value if negative else value)


@pytest.mark.parametrize("exponent", POWERS)
@pytest.mark.parametrize("towards", [0.0, math.inf])
def test_the_neighbours_of_a_power_of_ten_have_its_digits_or_one_more(exponent, towards):
    value = float(f"1e{exponent}")
    for _ in range(300):
        assert same(value)
        assert same(-value)
        value = math.nextafter(value, towards)


@pytest.mark.parametrize("exponent", POWERS)
def test_halves_at_the_sixteenth_digit_are_read_as_decimals_are(exponent):
    rng = random.Random(exponent)
    for _ in range(200):
        value = float(f"{rng.randrange(10**14, 10**15)}5e{exponent - 15}")
        assert same(value)
        assert same(math.nextafter(value, 0.0))
        assert same(math.nextafter(value, math.inf))


@pytest.mark.parametrize("value", [0.0, -0.0, math.inf, -math.inf, 5e-324, 1e-7, 1e15, 1e22, 1e23, 1.7e308])
def test_what_has_no_power_that_floats_hold_goes_by_text(value):
    assert same(value)


def test_nan_stays_nan():
    assert math.isnan(rounded(math.nan))


def test_it_rounds_at_all():
    assert rounded(1.00000000000000067) == 1.0
    assert rounded(0.1 + 0.2) == 0.3
