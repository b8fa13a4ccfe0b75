from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from pytest_prereg.judge import fieller, paired_fieller, unpaired_fieller

STUDIES = 3000
X = [10.2, 11.9, 9.4, 12.8, 10.7, 13.1, 9.9]
Y = [4.9, 5.6, 4.4, 6.3, 5.5, 6.1, 4.2]
pairs = st.lists(
    st.tuples(st.integers(-500, 500), st.integers(200, 900)), min_size=3, max_size=20, unique=True
)


def edges(statistic, ratio, critical):
    """Where the t statistic of "the ratio is ``rho``" crosses ± ``critical``, found by bisection."""
    step = 1e-3 + abs(ratio)
    while abs(statistic(ratio - step)) < critical or abs(statistic(ratio + step)) < critical:
        step *= 2
    return [
        optimize.brentq(
            lambda rho: abs(statistic(rho)) - critical, *sorted((ratio, ratio + way * step)), xtol=1e-14
        )
        for way in (-1, 1)
    ]


@pytest.mark.parametrize("sign", [(1, 1), (1, -1), (-1, 1), (-1, -1)])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_the_paired_interval_holds_the_ratios_that_a_paired_t_test_does_not_reject(sign, confidence):
    x, y = sign[0] * np.array(X), sign[1] * np.array(Y)
    interval = paired_fieller(x.tolist(), y.tolist(), confidence)
    critical = stats.t.ppf(0.5 + confidence / 2, 6)
    expected = edges(lambda rho: stats.ttest_1samp(x - rho * y, 0).statistic, x.mean() / y.mean(), critical)
    assert [interval.low, interval.high] == pytest.approx(expected, rel=1e-10)
    assert interval.estimate == pytest.approx(x.mean() / y.mean())
    assert interval.df == 6


@pytest.mark.parametrize("sign", [(1, 1), (1, -1), (-1, 1), (-1, -1)])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_the_unpaired_interval_holds_the_ratios_that_welchs_statistic_does_not_reject(sign, confidence):
    x, y = sign[0] * np.array(X), sign[1] * np.array(Y[:5])
    ratio = x.mean() / y.mean()
    df = stats.ttest_ind(x, ratio * y, equal_var=False).df
    critical = stats.t.ppf(0.5 + confidence / 2, df)
    expected = edges(lambda rho: stats.ttest_ind(x, rho * y, equal_var=False).statistic, ratio, critical)
    interval = unpaired_fieller(x.tolist(), y.tolist(), confidence)
    assert [interval.low, interval.high] == pytest.approx(expected, rel=1e-9)
    assert interval.df == pytest.approx(df)


def test_the_lists_and_the_moments_agree():
    errors = {"numerator_se": stats.sem(X), "denominator_se": stats.sem(Y)}
    of_moments = fieller(np.mean(X), np.mean(Y), **errors, df=6, covariance=np.cov(X, Y)[0, 1] / 7)
    assert of_moments.low == pytest.approx(paired_fieller(X, Y).low, rel=1e-10)
    assert of_moments.high == pytest.approx(paired_fieller(X, Y).high, rel=1e-10)


@given(pairs)
def test_estimates_lie_inside(drawn):
    x, y = ([float(value) for value in column] for column in zip(*drawn, strict=True))
    for interval in (paired_fieller(x, y), unpaired_fieller(x, y), paired_fieller(x, [-v for v in y])):
        assert interval.low <= interval.estimate <= interval.high


@given(pairs)
def test_a_negative_denominator_mirrors_the_interval(drawn):
    x, y = ([float(value) for value in column] for column in zip(*drawn, strict=True))
    for method in (paired_fieller, unpaired_fieller):
        plain, mirrored = method(x, y), method(x, [-value for value in y])
        assert (mirrored.low, mirrored.high) == (-plain.high, -plain.low)


@pytest.mark.parametrize("method", [paired_fieller, unpaired_fieller])
@pytest.mark.parametrize("denominators", [[1.0, -1.0, 2.0, -1.9], [1.0, -1.0, 2.0, -2.0], [0.0] * 4])
def test_a_denominator_that_may_be_zero_leaves_both_sides_unbounded(method, denominators):
    interval = method([5.0, 6.0, 7.0, 6.0], denominators)
    assert (interval.low, interval.high) == (-math.inf, math.inf)


def test_whether_the_denominator_may_be_zero_is_asked_at_the_level_of_the_interval():
    y = [1.0, 2.0, 6.0, 3.0]
    p = stats.ttest_1samp(y, 0).pvalue
    assert math.isfinite(paired_fieller(X[:4], y, 1 - p - 0.001).high)
    assert math.isinf(paired_fieller(X[:4], y, 1 - p + 0.001).high)


@pytest.mark.parametrize("method", [paired_fieller, unpaired_fieller])
@pytest.mark.parametrize("by", [4.0, -4.0])
def test_a_denominator_without_variance_scales_a_t_interval(method, by):
    interval = method(X, [by] * len(X))
    low, high = sorted(np.array(stats.t.interval(0.95, 6, np.mean(X), stats.sem(X))) / by)
    assert (interval.low, interval.high) == pytest.approx((low, high), rel=1e-9)


@pytest.mark.parametrize("factor", [3.0, -0.5, 0.1, 1e-9])
def test_proportional_values_have_an_interval_of_no_width(factor):
    interval = paired_fieller([factor * value for value in Y], Y)
    assert interval.low == pytest.approx(factor, rel=1e-12)
    assert interval.high == pytest.approx(factor, rel=1e-12)
    assert interval.low <= interval.estimate <= interval.high


def test_values_that_hardly_vary_keep_their_width():
    """b² - a c as in textbooks would lose it all: 1e-11 squared is below the last digit of 1."""
    x, y = [1 + 1e-11 * value for value in X], [1.0 + 1e-11 * value for value in Y[::-1]]
    low, high = stats.ttest_1samp(np.array(x) - np.array(y), 0).confidence_interval()
    interval = paired_fieller(x, y)
    assert interval.high - interval.low == pytest.approx(high - low, rel=1e-3)


@pytest.mark.parametrize(
    "call",
    [
        lambda: paired_fieller([1.0], [1.0]),
        lambda: paired_fieller([1.0, 2.0], [1.0, 2.0, 3.0]),
        lambda: unpaired_fieller([1.0, 2.0], [1.0]),
    ],
)
def test_what_has_no_interval_is_refused(call):
    with pytest.raises(ValueError):  # noqa: PT011
        call()


def misses(method, ratio, columns):
    below = above = 0
    for x, y in zip(*(column.tolist() for column in columns), strict=True):
        interval = method(x, y)
        below += interval.high < ratio
        above += interval.low > ratio
    return below / STUDIES, above / STUDIES


@pytest.mark.parametrize("n", [3, 7])
def test_the_paired_interval_holds_its_level_on_normal_pairs(n):
    draws = np.random.default_rng(1954).multivariate_normal(
        [6.0, 3.0], [[1.0, 0.5], [0.5, 0.8]], (STUDIES, n)
    )
    assert misses(paired_fieller, 2.0, (draws[..., 0], draws[..., 1])) == pytest.approx(
        (0.025, 0.025), abs=0.009
    )


@pytest.mark.parametrize("sizes", [(7, 7), (5, 12)])
def test_the_unpaired_interval_is_near_its_level(sizes):
    random = np.random.default_rng(1946)
    x, y = random.normal(6.0, 2.0, (STUDIES, sizes[0])), random.normal(3.0, 0.4, (STUDIES, sizes[1]))
    assert misses(unpaired_fieller, 2.0, (x, y)) == pytest.approx((0.025, 0.025), abs=0.01)
