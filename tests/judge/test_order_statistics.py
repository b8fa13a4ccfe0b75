from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from pytest_prereg.judge import (
    order_statistic_median,
    order_statistic_quantile,
    ranks,
    smallest_n_for_quantile,
)

shares = st.sampled_from([0.01, 0.05, 0.1, 0.25, 0.3, 0.5, 0.7, 0.9, 0.95, 0.99])
confidences = st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99])


@given(st.integers(1, 120), shares, confidences)
def test_each_side_is_the_tightest_that_its_own_tail_allows(n, q, confidence):
    interval = order_statistic_quantile([float(rank) for rank in range(n, 0, -1)], q, confidence)
    tail = (1 - confidence) / 2
    below = stats.binom.cdf(np.arange(n), n, q)  # P(fewer than rank values lie below), by rank - 1
    # A chance that is the tail to the last digit (n = 1, q = 0.05, 90 %) is decided by how floats round.
    assume(all(abs(chance - tail) > 1e-9 and abs(1 - chance - tail) > 1e-9 for chance in below))
    lower = [rank for rank in range(1, n + 1) if below[rank - 1] <= tail]
    upper = [rank for rank in range(1, n + 1) if 1 - below[rank - 1] <= tail]
    assert interval.low == max(lower, default=-math.inf)
    assert interval.high == min(upper, default=math.inf)
    assert interval.low <= interval.estimate <= interval.high


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60), shares)
def test_the_estimate_is_numpys_inverted_distribution_function(values, q):
    expected = np.quantile(values, q, method="inverted_cdf")
    # numpy counts with the float q; one value of slack in rank where n q is whole.
    ordered = sorted(values)
    rank = len(values) * q
    allowed = {expected, ordered[max(round(rank) - 1, 0)]} if math.isclose(rank, round(rank)) else {expected}
    assert order_statistic_quantile(values, q).estimate in allowed


def test_nine_tenths_of_ten_values_is_the_ninth():
    assert order_statistic_quantile([float(rank) for rank in range(1, 11)], 0.9).estimate == 9.0


def test_the_level_is_the_one_achieved():
    interval = order_statistic_quantile([float(rank) for rank in range(1, 81)], 0.9)
    miss = stats.binom.cdf(interval.low - 1, 80, 0.9) + stats.binom.sf(interval.high - 1, 80, 0.9)
    assert interval.level == pytest.approx(1 - miss)
    assert interval.level >= 0.95


def test_a_side_that_so_few_values_cannot_bound_is_infinite():
    interval = order_statistic_quantile([float(rank) for rank in range(1, 21)], 0.9)
    assert math.isfinite(interval.low)
    assert interval.high == math.inf
    assert interval.level == pytest.approx(1 - stats.binom.cdf(interval.low - 1, 20, 0.9))


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60), confidences)
def test_the_limits_of_the_half_quantile_are_those_of_the_median(values, confidence):
    half, median = (
        order_statistic_quantile(values, 0.5, confidence),
        order_statistic_median(values, confidence),
    )
    assert (half.low, half.high, half.level) == (median.low, median.high, median.level)


def test_the_smallest_sizes_are_the_published_ones():
    assert [smallest_n_for_quantile(q, 0.95) for q in (0.9, 0.95, 0.99)] == [(2, 36), (2, 72), (1, 368)]


@given(shares, confidences)
def test_the_smallest_sizes_are_those_from_which_ranks_exist(q, confidence):
    lower, upper = smallest_n_for_quantile(q, confidence)
    assert ranks(lower, q, confidence)[0] is not None
    assert ranks(upper, q, confidence)[1] is not None
    assert lower == 1 or ranks(lower - 1, q, confidence)[0] is None
    assert upper == 1 or ranks(upper - 1, q, confidence)[1] is None


@pytest.mark.parametrize("q", [0.0, 1.0, -0.1, math.nan])
def test_what_is_no_quantile_is_refused(q):
    with pytest.raises(ValueError, match="quantile"):
        order_statistic_quantile([1.0, 2.0], q)
    with pytest.raises(ValueError, match="quantile"):
        smallest_n_for_quantile(q, 0.95)


def test_no_values_have_no_quantile():
    with pytest.raises(ValueError, match="0 values"):
        order_statistic_quantile([], 0.9)


def test_a_value_that_was_cut_off_keeps_its_rank():
    values = [float(rank) for rank in range(1, 40)] + [math.inf]
    interval = order_statistic_quantile(values, 0.5)
    assert math.isfinite(interval.high)
