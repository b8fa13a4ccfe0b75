"""Tails and their quantiles, which no library's release may move by a digit."""

from __future__ import annotations

import math
import subprocess
import sys
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from pytest_prereg.judge.quantiles import beta_quantile, chi_square_quantile, t_quantile
from pytest_prereg.judge.tails import beta_tail, gamma_tail, t_tail, where

# mpmath at 50 digits: bisection of its betainc and gammainc.
T = {
    (1, 0.5): 1.0,
    (1, 0.99): 63.656741162871524,
    (2.0625, 0.95): 4.180091148492285,
    (2.5, 1 - 1e-12): 72977.579978544203,
    (8.42, 0.95): 2.2861348454744716,
    (17.776, 0.99): 2.8826598665420695,
    (59, 1 - 0.05 / 7): 2.7871395595177048,
    (750.5, 0.9): 1.646886489358197,
    (9999, 0.99): 2.5763210958565974,
    (9999.5, 1 - 1e-12): 7.1397624558311291,
    (10001, 0.95): 1.9602012161646407,
}
BETA = {
    (1, 7, 0.025): 0.0036102968619005835,
    (7, 1, 0.975): 0.99638970313809941,
    (82, 182, 0.975): 0.36762192260135135,
    (0.3, 12.5, 0.975): 0.14469882881353945,
    (0.004, 9.5, 0.995): 0.021233937879705093,
    (3.7, 3.7, 0.5): 0.5,
    (1500, 501, 0.005): 0.72422793612565159,
    (40000.5, 1.5, 0.025): 0.99988315397295273,
}
CHI_SQUARE = {
    (1, 0.025): 0.00098206911717525602,
    (1, 0.005): 3.9270422220515904e-5,
    (2, 0.975): 7.3777589082278708,
    (6, 0.5): 5.3481206274471206,
    (19, 1 - 1e-9): 81.55935772651448,
    (399, 0.995): 475.51529105615323,
}

parameter = st.floats(0.1, 3000)
degrees = st.floats(1, 9000)
alpha = st.floats(1e-12, 0.5)


@pytest.mark.parametrize(
    ("quantile", "arguments", "expected"),
    [
        *((t_quantile, *known) for known in T.items()),
        *((beta_quantile, *known) for known in BETA.items()),
        *((chi_square_quantile, *known) for known in CHI_SQUARE.items()),
    ],
)
def test_quantiles_are_right_to_the_twelfth_digit(quantile, arguments, expected):
    assert quantile(*arguments) == float(f"{expected:.12g}")


def encloses(below, quantile, p):
    """Whether ``p`` is reached within what rounding to twelve digits, and the other library, may move."""
    low, high = below(quantile * (1 - 1e-11)), below(quantile * (1 + 1e-11))
    return min(low, high) * (1 - 1e-8) - 1e-12 <= p <= max(low, high) * (1 + 1e-8) + 1e-12


@given(degrees, alpha)
def test_the_t_tail_is_that_of_another_library(df, tail):
    confidence = 1 - tail
    t = t_quantile(df, confidence)
    assert encloses(lambda t: special.betainc(df / 2, 0.5, df / (df + t * t)), t, 1 - confidence)


@given(parameter, parameter, st.floats(1e-9, 1 - 1e-9))
def test_the_beta_tail_is_that_of_another_library(a, b, p):
    assert encloses(lambda x: special.betainc(a, b, min(x, 1.0)), beta_quantile(a, b, p), p)


@given(degrees, st.floats(1e-9, 1 - 1e-9))
def test_the_chi_square_tail_is_that_of_another_library(df, p):
    assert encloses(lambda x: special.gammainc(df / 2, x / 2), chi_square_quantile(df, p), p)


@pytest.mark.parametrize("start", [-30.0, -1.0, 0.0, 3.0, 30.0])
@pytest.mark.parametrize(
    "tail",
    [
        partial(t_tail, 2.5),
        partial(t_tail, 800.0),
        partial(beta_tail, 0.5, 40.0),
        partial(beta_tail, 700.0, 30.0),
        partial(gamma_tail, 9.5, above=False),
        partial(gamma_tail, 9.5, above=True),
    ],
)
def test_the_quantile_is_found_from_anywhere(tail, start):
    found = where(tail, 0.025, min(start, 6.0) if tail.func is gamma_tail else start)
    assert math.exp(tail(found).log) == pytest.approx(0.025, rel=1e-11)


@pytest.mark.parametrize("a", [1e-3, 1e-5])
def test_what_is_nearer_to_an_end_than_floats_tell_is_that_end(a):
    assert beta_quantile(a, 9.5, 0.025) == 0
    assert beta_quantile(9.5, a, 0.975) == 1


def test_no_library_has_a_part_in_them():
    code = (
        "import sys; from pytest_prereg.judge.quantiles import *\n"
        "t_quantile(7.5, 0.95), beta_quantile(3, 4, 0.025), chi_square_quantile(6, 0.025)\n"
        "print({'scipy', 'numpy'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
