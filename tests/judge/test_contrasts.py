from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from pytest_prereg.judge import (
    confidence_of_pairs,
    confidence_of_steps,
    largest_difference,
    smallest_step,
)
from pytest_prereg.judge.intervals import Interval

STUDIES = 4000
N = 7
PAIRS = [(1, 0), (2, 0), (2, 1)]
STEPS = [(1, 0), (2, 1)]


def interval(low, estimate, high):
    return Interval(estimate=estimate, low=low, high=high, level=0.95)


def test_the_largest_difference_is_absolute_and_its_limits_come_from_any_pair():
    uncorrected = [interval(-9.0, -6.0, -3.0), interval(1.0, 3.0, 5.0), interval(-2.0, 0.5, 3.0)]
    corrected = [interval(-10.0, -6.0, -2.0), interval(2.5, 3.0, 3.5), interval(-4.0, 0.5, 5.0)]
    found = largest_difference(uncorrected, corrected)
    assert (found.low, found.estimate, found.high, found.level) == (2.5, 6.0, 9.0, 0.95)


def test_a_largest_difference_that_may_be_none_has_the_lower_limit_zero():
    around_zero = [interval(-2.0, 0.5, 3.0)]
    assert largest_difference(around_zero, around_zero).low == 0


def test_the_smallest_step_has_the_smallest_limits():
    uncorrected = [interval(1.0, 2.0, 3.0), interval(-2.0, 1.0, 4.0)]
    corrected = [interval(0.5, 2.0, 3.5), interval(-3.0, 1.0, 5.0)]
    found = smallest_step(uncorrected, corrected)
    assert (found.low, found.estimate, found.high) == (-2.0, 1.0, 3.5)


def test_the_corrections_for_three_groups():
    assert confidence_of_pairs(0.95, 3) == pytest.approx(1 - 0.05 / 6)
    assert confidence_of_steps(0.95, 2) == pytest.approx(0.975)


@pytest.mark.parametrize("combine", [largest_difference, smallest_step])
def test_lists_that_are_not_of_the_same_differences_are_refused(combine):
    one = interval(0.0, 1.0, 2.0)
    for lists in (([], []), ([one], [one, one])):
        with pytest.raises(ValueError, match="same"):
            combine(*lists)


def simulated(means, differences, corrected):
    """Paired t intervals of the differences of groups, in every study: uncorrected, corrected."""
    values = np.random.default_rng(1982).normal(means, 1.0, (STUDIES, N, len(means)))
    made = []
    for confidence in (0.95, corrected):
        columns = []
        for later, earlier in differences:
            shift = values[..., later] - values[..., earlier]
            centre, half = shift.mean(1), stats.t.ppf(0.5 + confidence / 2, N - 1) * stats.sem(shift, axis=1)
            columns.append((centre - half, centre, centre + half))
        rows = np.moveaxis(np.array(columns), -1, 0)
        made.append([[interval(*map(float, limits)) for limits in study] for study in rows])
    return zip(*made, strict=True)


def errors(combine, truth, studies):
    found = [combine(*study) for study in studies]
    assert all(each.low <= each.estimate <= each.high for each in found)
    too_high = np.mean([each.low > truth for each in found])
    too_low = np.mean([each.high < truth for each in found])
    return too_high, too_low


@pytest.mark.parametrize("means", [(0.0, 0.0, 0.0), (0.0, 0.3, 0.6), (0.0, 0.0, 3.0), (0.0, 6.0, 3.0)])
def test_each_side_of_the_largest_difference_errs_at_most_a_fortieth(means):
    truth = max(abs(means[i] - means[j]) for i, j in combinations(range(3), 2))
    too_high, too_low = errors(
        largest_difference, truth, simulated(means, PAIRS, confidence_of_pairs(0.95, len(PAIRS)))
    )
    assert too_high <= 0.025 + 0.006
    assert too_low <= 0.025 + 0.006


def test_bonferronis_divisor_alone_would_err_more_often_on_equal_groups():
    too_high, _ = errors(
        largest_difference, 0.0, simulated((0.0, 0.0, 0.0), PAIRS, confidence_of_steps(0.95, len(PAIRS)))
    )
    assert too_high > 0.031


@pytest.mark.parametrize("means", [(0.0, 0.0, 0.0), (0.0, 0.5, 1.0), (0.0, 0.0, 3.0), (0.0, -1.0, 2.0)])
def test_each_side_of_the_smallest_step_errs_at_most_a_fortieth(means):
    truth = min(means[i] - means[j] for i, j in STEPS)
    too_high, too_low = errors(
        smallest_step, truth, simulated(means, STEPS, confidence_of_steps(0.95, len(STEPS)))
    )
    assert too_high <= 0.025 + 0.006
    assert too_low <= 0.025 + 0.006


def test_without_its_correction_the_smallest_step_would_err_too_often():
    _, too_low = errors(smallest_step, 0.0, simulated((0.0, 0.0, 0.0), STEPS, 0.95))
    assert too_low > 0.031
