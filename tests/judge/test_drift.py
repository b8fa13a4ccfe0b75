from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pytest_prereg.judge import mann_kendall
from pytest_prereg.judge.drift import drifting

RISING = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
# One pair out of order: p = 0.0167 of six values, above 0.01.
NEARLY = [1.0, 2.0, 3.0, 4.0, 6.0, 5.0]
# Two falls among eight: p = 0.00173; three: 0.0055, which 0.01 catches and half of it does not.
THREE_FALLS = [4.0, 1.0, 2.0, 3.0, 5.0, 6.0, 7.0, 8.0]


def score(values):
    return sum((later > earlier) - (later < earlier) for earlier, later in itertools.combinations(values, 2))


@given(st.lists(st.integers(0, 3), min_size=2, max_size=7))
def test_p_is_the_share_of_all_orders_at_least_as_far_from_zero(values):
    orders = [abs(score(order)) >= abs(score(values)) for order in itertools.permutations(values)]
    trend = mann_kendall(values)
    assert trend.score == score(values)
    assert trend.p == pytest.approx(sum(orders) / len(orders))


@pytest.mark.parametrize("n", [6, 7, 20, 60])
def test_without_ties_p_is_that_of_kendalls_exact_test(n):
    values = [math.sin(12.9898 * k) * 43758.5453 % 1 for k in range(n)]
    expected = stats.kendalltau(range(n), values, method="exact").pvalue
    assert mann_kendall(values).p == pytest.approx(expected, rel=1e-9)


def test_above_sixty_values_p_is_the_tie_corrected_normal_one():
    values = [float(k % 7 + k // 40) for k in range(90)]
    ties = [values.count(value) for value in set(values)]
    variance = (90 * 89 * 185 - sum(t * (t - 1) * (2 * t + 5) for t in ties)) / 18
    expected = 2 * stats.norm.sf((abs(score(values)) - 1) / math.sqrt(variance))
    assert mann_kendall(values).p == pytest.approx(expected, rel=1e-9)


def test_the_exact_and_the_normal_p_meet_at_sixty():
    values = [float(k % 11) + k / 30 for k in range(60)]
    exact, normal = mann_kendall(values), mann_kendall([*values, 6.0])
    assert exact.p == pytest.approx(normal.p, rel=0.15)


def test_constant_values_have_no_trend():
    assert mann_kendall([1.0] * 80) == mann_kendall([1.0] * 8) == (0, 1.0)


def test_infinite_values_have_ranks():
    assert mann_kendall([1.0, 2.0, math.inf, math.inf]).score == 5


def test_the_test_is_two_sided():
    assert mann_kendall(RISING).p == mann_kendall(RISING[::-1]).p == pytest.approx(2 / 720)


def test_fewer_than_six_values_are_not_tested():
    assert drifting([RISING[:5]]) is None
    assert drifting([RISING]) is not None


def test_one_pair_out_of_order_in_six_is_no_drift():
    assert drifting([NEARLY]) is None


def test_the_level_is_shared_among_the_sequences_that_are_tested():
    still = [1.0, 2.0, 1.5, 1.2, 1.9, 1.4]
    assert 0.005 < mann_kendall(THREE_FALLS).p < 0.01
    assert drifting([THREE_FALLS]) is not None
    assert drifting([THREE_FALLS, still]) is None
    assert drifting([THREE_FALLS, still[:3]]) is not None


def test_a_trend_says_which_way_it_goes():
    assert mann_kendall(RISING).describe() == "values rise over the run (Mann-Kendall p = 0.0028)"
    assert "fall" in mann_kendall(RISING[::-1]).describe()
