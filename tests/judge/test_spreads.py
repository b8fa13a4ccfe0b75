from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pytest_prereg.judge import chi_square_sd
from pytest_prereg.judge.quantiles import chi_square_quantile

STUDIES = 4000
values = st.lists(st.integers(-1000, 1000).map(lambda n: n / 8), min_size=2, max_size=40, unique=True)


@given(values, st.sampled_from([0.2, 0.8, 0.95, 0.99]))
def test_the_limits_are_where_scipys_chi_square_puts_half_the_error_each(sample, confidence):
    interval = chi_square_sd(sample, confidence)
    sum_of_squares, df = np.var(sample) * len(sample), len(sample) - 1
    assert interval.estimate == pytest.approx(np.std(sample, ddof=1))
    assert interval.low <= interval.estimate <= interval.high
    if confidence > 0.37:
        assert stats.chi2.sf(sum_of_squares / interval.low**2, df) == pytest.approx((1 - confidence) / 2)
        assert stats.chi2.cdf(sum_of_squares / interval.high**2, df) == pytest.approx((1 - confidence) / 2)


def test_the_factors_of_seven_values_are_the_tabulated_ones():
    """NIST/SEMATECH e-Handbook 1.3.6.7.4, 6 degrees of freedom: chi-square 1.237 and 14.449."""
    interval = chi_square_sd([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
    factors = interval.low / interval.estimate, interval.high / interval.estimate
    assert factors == pytest.approx((math.sqrt(6 / 14.449), math.sqrt(6 / 1.237)), rel=3e-4)


@pytest.mark.parametrize(
    ("df", "p", "expected"),
    # For two degrees of freedom in closed form; else scipy's.
    [
        (2, 0.025, -2 * math.log1p(-0.025)),
        (2, 0.975, -2 * math.log1p(-0.975)),
        (6, 0.025, stats.chi2.ppf(0.025, 6)),
        (399, 0.995, stats.chi2.ppf(0.995, 399)),
    ],
)
def test_chi_square_quantiles_are_settled_at_twelve_digits(df, p, expected):
    quantile = chi_square_quantile(df, p)
    assert quantile == pytest.approx(expected, rel=3e-12)
    assert float(f"{quantile:.12g}") == quantile


def test_values_all_alike_have_an_interval_of_no_width():
    interval = chi_square_sd([2.0, 2.0, 2.0])
    assert (interval.low, interval.estimate, interval.high) == (0.0, 0.0, 0.0)


def test_a_single_value_has_no_spread():
    with pytest.raises(ValueError, match="needs 2"):
        chi_square_sd([1.0])


@pytest.mark.parametrize("n", [3, 7])
def test_it_holds_its_level_on_normal_values(n):
    draws = np.random.default_rng(1900).normal(5.0, 2.0, (STUDIES, n)).tolist()
    intervals = [chi_square_sd(study) for study in draws]
    assert np.mean([interval.high < 2 for interval in intervals]) == pytest.approx(0.025, abs=0.008)
    assert np.mean([interval.low > 2 for interval in intervals]) == pytest.approx(0.025, abs=0.008)
