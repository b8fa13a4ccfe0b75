from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from pytest_prereg.judge import clopper_pearson, korn_graubard

STUDIES = 3000
counts = st.lists(
    st.integers(1, 30).flatmap(lambda tried: st.tuples(st.integers(0, tried), st.just(tried))),
    min_size=2,
    max_size=12,
)


def from_trials(successes, trials, confidence):
    """As survey packages do it: cluster-robust variance over single trials, effective size, beta quantiles."""
    models = pytest.importorskip("statsmodels.api")
    outcomes = np.concatenate(
        [np.repeat([1.0, 0.0], [s, t - s]) for s, t in zip(successes, trials, strict=True)]
    )
    fit = models.OLS(outcomes, np.ones_like(outcomes)).fit(
        cov_type="cluster", cov_kwds={"groups": np.repeat(np.arange(len(trials)), trials)}
    )
    p, variance = fit.params[0], fit.cov_params()[0, 0]
    t = [stats.t.ppf(0.5 + confidence / 2, df) for df in (len(outcomes) - 1, len(trials) - 1)]
    n = min(p * (1 - p) / variance * (t[0] / t[1]) ** 2, len(outcomes))
    tail = (1 - confidence) / 2
    return stats.beta.ppf(tail, n * p, n - n * p + 1), stats.beta.ppf(1 - tail, n * p + 1, n - n * p)


@given(counts, st.sampled_from([0.8, 0.95]))
def test_the_limits_are_those_from_a_cluster_robust_variance_of_single_trials(drawn, confidence):
    successes, trials = zip(*drawn, strict=True)
    assume(len({s / t for s, t in drawn}) > 1)
    interval = korn_graubard(successes, trials, confidence)
    expected = from_trials(successes, trials, confidence)
    assert (interval.low, interval.high) == pytest.approx(expected, rel=1e-6, abs=1e-9)


@given(counts)
def test_the_estimate_is_the_pooled_share_and_lies_inside(drawn):
    successes, trials = zip(*drawn, strict=True)
    interval = korn_graubard(successes, trials)
    assert interval.estimate == sum(successes) / sum(trials)
    assert 0 <= interval.low <= interval.estimate <= interval.high <= 1


@pytest.mark.parametrize(("successes", "of_repeats"), [(0, 0), (20, 7)])
def test_repeats_all_alike_count_once_each(successes, of_repeats):
    interval, once = korn_graubard([successes] * 7, [20] * 7), clopper_pearson(of_repeats, 7)
    assert (interval.low, interval.high) == (once.low, once.high)


def test_equal_shares_of_unequal_trials_are_all_alike_too():
    interval = korn_graubard([1, 3, 10], [3, 9, 30])
    assert interval.low == pytest.approx(stats.beta.ppf(0.025, 1, 3))
    assert interval.high == pytest.approx(stats.beta.ppf(0.975, 2, 2))


def test_trials_count_once_each_at_most():
    """Shares that differ less than chance would have them do not make more of the trials than they are."""
    interval, pooled = korn_graubard([10, 10, 10, 11] * 5, [20] * 20), clopper_pearson(205, 400)
    assert (interval.low, interval.high) == (pooled.low, pooled.high)


def test_successes_and_failures_are_mirrored():
    of_successes, of_failures = korn_graubard([3, 5, 9], [10, 10, 12]), korn_graubard([7, 5, 3], [10, 10, 12])
    assert (of_failures.low, of_failures.high) == pytest.approx((1 - of_successes.high, 1 - of_successes.low))


def test_a_tiny_effective_size_leaves_nearly_all_open():
    interval = korn_graubard([0, 1000], [1000, 1000], 0.999)
    assert interval.low == pytest.approx(0.0, abs=1e-9)
    assert interval.high == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(
    ("successes", "trials"),
    [
        ([3], [4]),
        ([3, 5], [4, 4]),
        ([1, 0], [2, 0]),
        ([1.5, 1], [2, 2]),
        ([1, -1], [2, 2]),
        ([1, 1], [2, 2, 2]),
        ([1, math.nan], [2, 2]),
    ],
)
def test_what_are_no_counts_of_repeats_is_refused(successes, trials):
    with pytest.raises(ValueError):  # noqa: PT011
        korn_graubard(successes, trials)


@pytest.mark.parametrize(
    ("correlation", "p", "n", "expected"),
    # A separate simulation of 20 trials a repeat; pooled Clopper-Pearson reaches .67 where this reaches .93.
    [(0.2, 0.9, 7, 0.926), (0.2, 0.5, 7, 0.965), (0.05, 0.9, 20, 0.959), (0.2, 0.9, 3, 0.995)],
)
def test_coverage_of_correlated_trials(correlation, p, n, expected):
    random = np.random.default_rng(1998)
    strength = 1 / correlation - 1
    shares = random.beta(p * strength, (1 - p) * strength, (STUDIES, n))
    held = 0
    for study in random.binomial(20, shares).tolist():
        interval = korn_graubard(study, [20] * n)
        held += interval.low <= p <= interval.high
    assert held / STUDIES == pytest.approx(expected, abs=0.013)
