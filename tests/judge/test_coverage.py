"""How often intervals hold the truth, over simulated studies with a fixed seed.

5 000 studies a cell: the standard error of a coverage of 0.95 is 0.003, so 0.01 is over three of them. What the
approximate methods reach is what the documentation states.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from pytest_prereg.judge import (
    clopper_pearson,
    log_t,
    log_welch,
    modified_cox,
    order_statistic_median,
    paired_t,
    student_t,
    welch,
)
from pytest_prereg.judge.intervals import hull

STUDIES = 5000
WITHIN = 0.01


def coverage(make, truth, *samples):
    held = 0
    for study in zip(*(sample.tolist() for sample in samples), strict=True):
        interval = make(*study)
        held += interval.low <= truth <= interval.high
    return held / STUDIES


@pytest.fixture
def random():
    return np.random.default_rng(1908)


@pytest.mark.parametrize("n", [3, 7, 20])
def test_student_t_holds_its_level_on_normal_values(random, n):
    assert coverage(student_t, 1.0, random.normal(1.0, 0.02, (STUDIES, n))) == pytest.approx(0.95, abs=WITHIN)


@pytest.mark.parametrize("n", [3, 7])
def test_log_t_holds_its_level_on_lognormal_values(random, n):
    values = random.lognormal(0.0, 1.0, (STUDIES, n))
    assert coverage(log_t, 1.0, values) == pytest.approx(0.95, abs=WITHIN)


def test_pairing_takes_out_what_blocks_share(random):
    shared = random.normal(0.0, 5.0, (STUDIES, 7))
    left, right = (shared + random.normal(mean, 0.1, (STUDIES, 7)) for mean in (1.0, 0.7))
    assert coverage(paired_t, 0.3, left, right) == pytest.approx(0.95, abs=WITHIN)


@pytest.mark.parametrize("n", [(3, 3), (5, 12)])
def test_welch_is_near_its_level_at_unequal_variances(random, n):
    left = random.normal(1.0, 1.0, (STUDIES, n[0]))
    right = random.normal(0.0, 3.0, (STUDIES, n[1]))
    assert coverage(welch, 1.0, left, right) == pytest.approx(0.95, abs=0.015)


def test_log_welch_is_near_its_level(random):
    left, right = (random.lognormal(mu, 0.3, (STUDIES, 7)) for mu in (0.5, 0.0))
    assert coverage(log_welch, math.exp(0.5), left, right) == pytest.approx(0.955, abs=0.015)


def test_the_hull_repairs_most_of_what_skew_costs_students_t(random):
    values = random.lognormal(0.0, 1.0, (STUDIES, 7))
    truth = math.exp(0.5)
    assert coverage(student_t, truth, values) < 0.85
    both = coverage(lambda *study: hull(student_t(study[0]), modified_cox(study[0])), truth, values)
    assert both == pytest.approx(0.94, abs=0.015)


@pytest.mark.parametrize("n", [6, 7, 10])
def test_the_median_reaches_the_level_that_it_states_whatever_the_distribution(random, n):
    values = random.lognormal(0.0, 1.0, (STUDIES, n))
    stated = order_statistic_median([0.0] * n).level
    assert coverage(order_statistic_median, 1.0, values) == pytest.approx(stated, abs=WITHIN)


@pytest.mark.parametrize("n", [3, 7, 20])
def test_clopper_pearson_never_misses_more_than_a_fortieth_on_either_side(n):
    intervals = [clopper_pearson(k, n) for k in range(n + 1)]
    for p in np.linspace(0.01, 0.99, 99):
        weights = [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
        above = sum(w for w, interval in zip(weights, intervals, strict=True) if interval.low > p)
        below = sum(w for w, interval in zip(weights, intervals, strict=True) if interval.high < p)
        assert max(above, below) <= 0.025 + 1e-12
