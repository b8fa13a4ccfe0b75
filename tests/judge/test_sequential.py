from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, optimize, stats

from pytest_prereg.judge import t_mixture_e_value, t_mixture_interval
from pytest_prereg.judge.intervals import moments

SLEEP = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
samples = st.lists(st.integers(-1000, 1000).map(lambda n: n / 8), min_size=3, max_size=40, unique=True)


def theorem_4_9(values, alpha, c_squared):
    """Wang and Ramdas's formula as printed, from the mean of squares and the square of the mean."""
    n, x = len(values), np.asarray(values)
    power = (alpha**2 * c_squared / (n + c_squared)) ** (1 / n)
    factor = (n + c_squared) * (1 - power) / (power * (n + c_squared) - c_squared)
    half = math.sqrt(factor * ((x**2).mean() - x.mean() ** 2))
    return x.mean() - half, x.mean() + half


@pytest.mark.parametrize("g", [1.0, 10.0, 250.0])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_the_interval_is_the_printed_formula(g, confidence):
    interval = t_mixture_interval(moments(SLEEP), confidence, g)
    expected = theorem_4_9(SLEEP, 1 - confidence, 1 / g)
    assert (interval.low, interval.high) == pytest.approx(expected, rel=1e-10)


@given(samples, st.sampled_from([0.8, 0.95, 0.99]))
def test_the_interval_holds_the_means_that_the_e_value_does_not_reject(values, confidence):
    interval = t_mixture_interval(moments(values), confidence)
    assert interval.low < interval.estimate < interval.high
    if math.isinf(interval.low):
        far = interval.estimate + 1e9
        assert t_mixture_e_value(values, g=10.0, mean=far) < 1 / (1 - confidence)
        return
    for limit in (interval.low, interval.high):
        assert t_mixture_e_value(values, g=10.0, mean=limit) == pytest.approx(1 / (1 - confidence), rel=1e-6)


def test_the_interval_inverts_a_mixture_that_is_integrated_numerically():
    """The Bayes factor of Gönen et al.: noncentral t averaged over effects N(0, g), over the central t."""

    def evidence(mean):
        t = (np.mean(SLEEP) - mean) / stats.sem(SLEEP)
        averaged, _ = integrate.quad(
            lambda z: stats.nct.pdf(t, 9, z * math.sqrt(10 * 10.0)) * stats.norm.pdf(z), -2, 2, limit=200
        )
        return averaged / stats.t.pdf(t, 9)

    interval = t_mixture_interval(moments(SLEEP), 0.95)
    edge = optimize.brentq(lambda mean: evidence(mean) - 20, interval.estimate, interval.estimate + 10)
    assert interval.high == pytest.approx(edge, rel=1e-4)


def test_two_values_bound_nothing_and_three_do():
    assert t_mixture_interval(moments([1.0, 2.0]), 0.95).high == math.inf
    assert t_mixture_interval(moments([1.0, 2.0]), 0.95).low == -math.inf
    assert math.isfinite(t_mixture_interval(moments([1.0, 2.0, 3.0]), 0.95).high)


def test_values_far_from_zero_lose_no_digits():
    near, far = moments([1.0, 2.0, 4.0, 7.0]), moments([2.0**40 + x for x in (1.0, 2.0, 4.0, 7.0)])
    widths = [interval.high - interval.low for interval in (t_mixture_interval(s, 0.95) for s in (near, far))]
    assert widths[0] == pytest.approx(widths[1], rel=1e-3)


def test_looking_after_every_value_misses_less_often_than_a_twentieth():
    draws = np.random.default_rng(49).normal(3.0, 2.0, (600, 60))
    missed = 0
    for study in draws.tolist():
        intervals = (t_mixture_interval(moments(study[:n]), 0.95) for n in range(2, 61))
        missed += any(not interval.low <= 3.0 <= interval.high for interval in intervals)
    assert 0 < missed / 600 < 0.05
