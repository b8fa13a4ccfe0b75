from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pytest_prereg.judge import (
    clopper_pearson,
    fieller,
    log_t,
    log_welch,
    modified_cox,
    order_statistic_median,
    paired_log_t,
    paired_t,
    student_t,
    welch,
    welch_t,
)
from pytest_prereg.judge.quantiles import beta_quantile, t_quantile

values = st.lists(st.integers(100, 10**6).map(lambda n: n / 1000), min_size=3, max_size=30, unique=True)
confidences = st.sampled_from([0.8, 0.95, 0.99])
X = [88.324, 87.824, 87.874, 87.912, 87.853, 87.826]
Y = [88.351, 88.398, 88.281, 88.559, 88.32, 88.35]


def agree(interval, low, high):
    off = 1e-8 * max(1.0, high - low)  # scipy 1.11's t quantiles are, by up to 5e-9
    assert (interval.low, interval.high) == pytest.approx((low, high), rel=1e-9, abs=off)


@given(values, confidences)
def test_student_t_is_scipys(sample, confidence):
    expected = stats.t.interval(confidence, len(sample) - 1, np.mean(sample), stats.sem(sample))
    agree(student_t(sample, confidence), *expected)


def test_paired_t_is_scipys():
    expected = stats.ttest_rel(X, Y).confidence_interval(0.9)
    agree(paired_t(X, Y, 0.9), *expected)


@given(values, values, confidences)
def test_welch_is_scipys(left, right, confidence):
    test = stats.ttest_ind(left, right, equal_var=False)
    interval = welch(left, right, confidence)
    agree(interval, *test.confidence_interval(confidence))
    assert interval.df == pytest.approx(test.df, rel=1e-6)


def test_welch_is_statsmodels():
    weightstats = pytest.importorskip("statsmodels.stats.weightstats")
    means = weightstats.CompareMeans(weightstats.DescrStatsW(X), weightstats.DescrStatsW(Y))
    agree(welch(X, Y), *means.tconfint_diff(usevar="unequal"))


def test_log_intervals_are_t_intervals_of_logarithms():
    low, high = stats.t.interval(0.95, 5, np.mean(np.log(X)), stats.sem(np.log(X)))
    agree(log_t(X), math.exp(low), math.exp(high))
    ratios = stats.ttest_rel(np.log(X), np.log(Y)).confidence_interval()
    agree(paired_log_t(X, Y), *np.exp(ratios))
    ratios = stats.ttest_ind(np.log(X), np.log(Y), equal_var=False).confidence_interval()
    agree(log_welch(X, Y), *np.exp(ratios))
    assert log_t(X).estimate == pytest.approx(stats.gmean(X))


@given(st.integers(1, 300), st.data(), confidences)
def test_clopper_pearson_is_scipys(n, data, confidence):
    successes = data.draw(st.integers(0, n))
    expected = stats.binomtest(successes, n).proportion_ci(confidence)
    agree(clopper_pearson(successes, n, confidence), *expected)


def test_modified_cox_is_olssons_formula():
    logs = np.log([1.0, 2.0, 3.0, 5.0, 8.0, 13.0])
    centre, variance = logs.mean() + logs.var(ddof=1) / 2, logs.var(ddof=1)
    half = stats.t.ppf(0.975, 5) * math.sqrt(variance / 6 + variance**2 / 10)
    agree(modified_cox(np.exp(logs)), math.exp(centre - half), math.exp(centre + half))


def test_modified_cox_of_negative_values_is_mirrored():
    positive, negative = modified_cox([1.0, 2.0, 4.0]), modified_cox([-1.0, -2.0, -4.0])
    assert (negative.low, negative.high) == (-positive.high, -positive.low)


def test_the_median_lies_between_order_statistics_whose_level_is_the_one_achieved():
    interval = order_statistic_median([5.0, 1.0, 9.0, 3.0, 7.0, 2.0, 8.0, 4.0, 6.0])
    assert (interval.estimate, interval.low, interval.high) == (5.0, 2.0, 8.0)
    assert interval.level == pytest.approx(stats.binom.cdf(7, 9, 0.5) - stats.binom.cdf(1, 9, 0.5))


def test_five_values_do_not_bound_a_median():
    interval = order_statistic_median([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (interval.low, interval.high) == (-math.inf, math.inf)


def test_a_denominator_near_zero_leaves_fieller_unbounded():
    interval = fieller(1.0, 0.1, numerator_se=0.1, denominator_se=0.1, df=10)
    assert (interval.low, interval.high) == (-math.inf, math.inf)


def test_fieller_without_error_in_the_denominator_is_a_scaled_t_interval():
    interval = fieller(14.0, 7.0, numerator_se=3.0, denominator_se=0.0, df=10)
    agree(interval, *(np.array(stats.t.interval(0.95, 10, 14, 3)) / 7))


@pytest.mark.parametrize(
    "call",
    [
        lambda: student_t([1.0]),
        lambda: log_t([1.0, 0.0, 2.0]),
        lambda: order_statistic_median([]),
        lambda: clopper_pearson(3, 2),
        lambda: clopper_pearson(0, 0),
        lambda: welch_t([1.0, 1.0], [2.0, 2.0]),
        lambda: paired_t([1.0, 2.0], [1.0, 2.0, 3.0]),
    ],
)
def test_what_has_no_interval_is_refused(call):
    with pytest.raises(ValueError):  # noqa: PT011
        call()


@pytest.mark.parametrize(
    ("df", "confidence", "expected"),
    # mpmath at 40 digits: the root of 1 - I(df / (df + t^2); df/2, 1/2).
    [
        (2, 0.95, 4.30265272974946),
        (6, 0.95, 2.44691185114497),
        (8.42, 0.95, 2.28613484547),
        (1, 0.99, 63.6567411628717),
        (99_999, 0.99, 2.57587847040005),
        (100_001, 0.99, 2.57587846941671),
        (1e9, 0.95, 1.95996398691233),
        (math.inf, 0.95, 1.95996398454005),
    ],
)
def test_t_quantiles_are_right_to_twelve_digits(df, confidence, expected):
    assert t_quantile(df, confidence) == pytest.approx(expected, rel=3e-12)


def test_quantiles_are_kept_at_the_digits_that_every_scipy_agrees_on():
    for value in (t_quantile(8.42, 0.95), beta_quantile(82, 182, 0.975)):
        assert float(f"{value:.12g}") == value


@given(values, st.floats(0.001, 1000))
def test_intervals_scale_with_their_values(sample, factor):
    scaled = student_t([factor * value for value in sample])
    agree(scaled, student_t(sample).low * factor, student_t(sample).high * factor)


@given(values)
def test_intervals_do_not_depend_on_the_order_of_values(sample):
    assert student_t(sample) == student_t(sample[::-1])


@pytest.mark.parametrize("value", [2.777, 0.1, 1e-5, -3e7 / 7, 0.0])
def test_equal_values_have_no_variance_whatever_their_mean_rounds_to(value):
    interval = student_t([value] * 3)
    assert (interval.low, interval.estimate, interval.high) == (value, value, value)
