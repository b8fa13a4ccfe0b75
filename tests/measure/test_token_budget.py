"""The token budget under filtering: published figures, scipy's negative binomial, and simulations."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pytest_prereg.measure.workloads.token_budget import (
    account,
    chance_of_more,
    expected_batches,
    expected_groups,
    filter_once,
    groups_quantile,
    groups_sd,
    retention_at,
    spread_retention,
    success_rates,
    tokens,
    varying_tokens,
)

GROUP = 8 * 2048
few = settings(max_examples=60)
rates = st.floats(0.01, 1.0)
kept_counts = st.integers(1, 200)


def test_a_batch_of_64_prompts_generates_a_million_tokens():
    assert tokens(64, 8, 2048) == 1_048_576


def test_of_a_batch_filtered_to_a_quarter_three_quarters_are_discarded():
    once = filter_once(64, 0.25, group_tokens=GROUP)
    assert (once.generated, once.used, once.filtered) == (1_048_576, 262_144, 786_432)


def test_a_quarter_retained_takes_256_groups_on_average():
    assert expected_groups(64, 0.25) == 256
    assert groups_sd(64, 0.25) == pytest.approx(27.7, abs=0.05)
    assert (groups_quantile(0.05, 64, 0.25), groups_quantile(0.95, 64, 0.25)) == (212, 303)


def test_the_average_budget_is_not_enough_in_nearly_every_second_step():
    assert chance_of_more(256, 64, 0.25) == pytest.approx(0.476, abs=5e-4)


def test_a_quarter_retained_in_groups_of_eight_is_a_success_rate_of_3_5_or_96_5_percent():
    assert success_rates(0.25, 8) == pytest.approx((0.0353, 0.9647), abs=5e-5)


@given(kept_counts, rates, st.integers(0, 400))
@few
def test_the_odds_of_needing_more_are_scipys(kept: int, rate: float, more: int):
    expected = stats.nbinom.sf(more, kept, rate)
    assert chance_of_more(kept + more, kept, rate) == pytest.approx(expected, rel=1e-8, abs=1e-300)


@given(kept_counts, rates, st.floats(0.001, 0.999))
@few
def test_a_quantile_is_the_least_budget_that_is_enough(kept: int, rate: float, share: float):
    budget = groups_quantile(share, kept, rate)
    assert 1 - chance_of_more(budget, kept, rate) >= share - 1e-15
    assert budget == kept or 1 - chance_of_more(budget - 1, kept, rate) < share + 1e-15


@pytest.mark.parametrize(("share", "budget"), [(1e-20, 89), (1 - 1e-16, 566)])
def test_a_quantile_far_out_is_right_as_well(share: float, budget: int):
    """By whole numbers: of 4**n equally likely outcomes, how many keep fewer than 64."""

    def enough(n: int) -> Fraction:
        return 1 - Fraction(sum(math.comb(n, j) * 3 ** (n - j) for j in range(64)), 4**n)

    assert groups_quantile(share, 64, 0.25) == budget
    assert enough(budget) >= Fraction(share) > enough(budget - 1)


@given(kept_counts, rates)
@few
def test_mean_and_standard_deviation_are_scipys(kept: int, rate: float):
    mean, variance = stats.nbinom.stats(kept, rate)
    assert expected_groups(kept, rate) == pytest.approx(kept + mean)
    assert groups_sd(kept, rate) == pytest.approx(math.sqrt(variance))


@given(kept_counts, rates, st.integers(1, 300))
@few
def test_whole_batches_cost_at_most_one_batch_more(kept: int, rate: float, batch: int):
    sampled = batch * expected_batches(kept, rate, batch)
    assert expected_groups(kept, rate) <= sampled * (1 + 1e-9)
    assert sampled < expected_groups(kept, rate) + batch
    assert expected_batches(kept, rate, 1) == pytest.approx(expected_groups(kept, rate), rel=1e-9)


@given(kept_counts, rates, st.integers(1, 300))
@few
def test_an_account_adds_up(kept: int, rate: float, batch: int):
    made = account(kept, rate, batch=batch, group_tokens=GROUP)
    assert made.used == kept * GROUP
    assert made.used + made.filtered + made.surplus == pytest.approx(made.generated)
    assert min(made.used, made.filtered, made.surplus) >= 0


def test_batches_of_64_are_sampled_four_and_a_half_times():
    """Simulated group by group; 4000 steps have a standard error of 0.008 batches."""
    draws = np.random.default_rng(20260801).random((4000, 12, 64)) < 0.25
    kept = draws.sum(axis=2).cumsum(axis=1)
    assert (kept[:, -1] >= 64).all()
    batches = (kept < 64).sum(axis=1) + 1
    assert batches.mean() == pytest.approx(expected_batches(64, 0.25, 64), abs=0.04)
    surplus = kept[np.arange(4000), batches - 1] - 64
    assert surplus.mean() == pytest.approx(account(64, 0.25, batch=64).surplus, abs=0.6)


@pytest.mark.parametrize(("rate", "batch"), [(1e-3, 7), (1e-12, 10**8), (0.25, 3)])
def test_one_group_is_awaited_for_a_geometric_number_of_batches(rate: float, batch: int):
    exact = -1 / math.expm1(batch * math.log1p(-rate))
    assert expected_batches(1, rate, batch) == pytest.approx(exact, rel=1e-13)


def test_nothing_is_discarded_where_everything_is_kept():
    made = account(64, 1.0, batch=64)
    assert (made.generated, made.filtered, made.surplus) == (64, 0, 0)


def test_lengths_add_to_the_spread_of_the_budget_and_not_to_its_mean():
    """Simulated with log-normal lengths that responses to one prompt share in part."""
    generator = np.random.default_rng(20260802)
    groups = 16 + generator.negative_binomial(16, 0.25, 4000)
    prompt, own, scale = 0.3, 0.4, 1000.0
    totals = [
        (
            scale
            * np.exp(prompt * generator.standard_normal((n, 1)) + own * generator.standard_normal((n, 4)))
        ).sum()
        for n in groups
    ]
    both = prompt**2 + own**2
    mean = scale * math.exp(both / 2)
    budget = varying_tokens(
        16,
        0.25,
        group_size=4,
        mean_length=mean,
        length_sd=mean * math.sqrt(math.expm1(both)),
        correlation=math.expm1(prompt**2) / math.expm1(both),
    )
    assert np.mean(totals) == pytest.approx(budget.mean, rel=4 * budget.sd / budget.mean / math.sqrt(4000))
    assert np.std(totals) == pytest.approx(budget.sd, rel=0.06)
    equal = varying_tokens(16, 0.25, group_size=4, mean_length=mean, length_sd=0)
    assert equal.mean == budget.mean == tokens(expected_groups(16, 0.25), 4, mean)
    assert equal.sd == pytest.approx(groups_sd(16, 0.25) * 4 * mean)
    assert equal.sd < budget.sd


@given(st.floats(0, 1), st.integers(2, 64))
@few
def test_a_signal_needs_a_success_and_a_failure(success: float, group: int):
    assert retention_at(success, group) == pytest.approx(
        1 - success**group - (1 - success) ** group, abs=1e-12
    )
    assert retention_at(0.0, group) == retention_at(1.0, group) == 0


@given(st.floats(0, 1), st.integers(2, 64))
@few
def test_the_success_rates_of_a_retention_rate_lead_back_to_it(share: float, group: int):
    wanted = share * retention_at(0.5, group)
    low, high = success_rates(wanted, group)
    assert low + high == 1
    assert low <= 0.5
    assert retention_at(low, group) == pytest.approx(wanted, rel=1e-9, abs=1e-15)
    assert retention_at(high, group) == pytest.approx(wanted, rel=1e-9, abs=1e-12)


def test_a_tiny_retention_rate_keeps_its_digits():
    """Eight prompts in 10**12 responses: 1 - (1 - s)**8 would lose four digits."""
    low, _ = success_rates(8e-12, 8)
    assert low == pytest.approx(1e-12, rel=1e-9)


@given(st.floats(0.02, 0.98), st.floats(0.05, 0.95), st.integers(2, 32))
@few
def test_spread_is_beta_binomial_and_lowers_the_retention(mean: float, part: float, group: int):
    sd = part * math.sqrt(mean * (1 - mean))
    weight = mean * (1 - mean) / sd**2 - 1
    ends = stats.betabinom.pmf([0, group], group, mean * weight, (1 - mean) * weight)
    found = spread_retention(mean, sd, group)
    assert found == pytest.approx(1 - ends.sum(), abs=1e-9)
    assert found <= retention_at(mean, group) + 1e-12


@pytest.mark.parametrize(
    ("mean", "sd", "group"), [(1e-12, 1e-14, 8), (1e-12, 9.9e-7, 8), (0.5, 0.4999, 8), (1 - 1e-12, 1e-9, 4)]
)
def test_a_spread_retention_keeps_its_digits(mean: float, sd: float, group: int):
    """In fractions, where the two ends may be taken from one."""
    part, other = Fraction(mean), 1 - Fraction(mean)
    weight = part * other / Fraction(sd) ** 2 - 1
    ends = [math.prod((p * weight + k) / (weight + k) for k in range(group)) for p in (part, other)]
    assert spread_retention(mean, sd, group) == pytest.approx(float(1 - sum(ends)), rel=1e-10)


def test_the_mean_success_rate_misleads():
    """Half of the responses succeed, yet little is kept where most prompts are hopeless or trivial."""
    assert retention_at(0.5, 8) == pytest.approx(0.992, abs=5e-4)
    assert spread_retention(0.5, 0.45, 8) < 0.3
    assert spread_retention(0.5, 0, 8) == retention_at(0.5, 8)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: expected_groups(0, 0.5), "kept = 0"),
        (lambda: expected_groups(64, 0.0), "retention = 0.0"),
        (lambda: groups_sd(64, 1.5), "retention = 1.5"),
        (lambda: chance_of_more(1, 64, math.nan), "retention = nan"),
        (lambda: groups_quantile(1.0, 64, 0.5), "share = 1.0"),
        (lambda: expected_batches(64, 0.5, 0), "batch = 0"),
        (lambda: filter_once(64, -0.1), "retention = -0.1"),
        (lambda: varying_tokens(1, 1, group_size=2, mean_length=1, length_sd=-1), "length_sd = -1"),
        (
            lambda: varying_tokens(1, 1, group_size=2, mean_length=1, length_sd=1, correlation=2),
            "correlation = 2",
        ),
        (lambda: retention_at(1.1, 8), "success = 1.1"),
        (lambda: retention_at(0.5, 1), "group_size = 1: give a whole number from 2"),
        (lambda: success_rates(0.6, 2), "from 0 to 0.5, the most that groups of 2 have"),
        (lambda: spread_retention(0.5, 0.5, 8), "less than sqrt"),
        (lambda: spread_retention(1.0, 0.0, 8), "a mean inside"),
        (lambda: spread_retention(0.5, math.nan, 8), "sd = nan"),
        (lambda: expected_groups(math.nan, 0.5), "kept = nan"),
        (lambda: expected_groups(2.5, 0.5), "kept = 2.5"),
        (lambda: expected_groups(64, 1e-320), "retention = 1e-320: give a share above 0"),
        (lambda: chance_of_more(256.5, 64, 0.25), "budget = 256.5"),
        (lambda: groups_quantile(0.5, 64, 1e-30), "retention = 1e-30"),
        (lambda: groups_quantile(math.nan, 64, 0.25), "share = nan"),
        (lambda: expected_batches(64, 0.25, math.nan), "batch = nan"),
        (lambda: expected_batches(64, 0.25, 2.5), "batch = 2.5"),
        (lambda: expected_batches(64, 1e-7, 2), r"some 3\.2e\+08 batches: take kept / retention / batch"),
        (lambda: retention_at(0.5, math.nan), "group_size = nan"),
        (lambda: success_rates(math.nan, 8), "retention = nan"),
        (lambda: tokens(math.nan, 1, 2), "groups = nan"),
        (lambda: tokens(64, -1, 2), "group_size = -1"),
        (lambda: filter_once(-5, 0.25), "groups = -5"),
        (lambda: account(4, 0.5, group_tokens=-1), "group_tokens = -1"),
        (lambda: varying_tokens(1, 1, group_size=-1, mean_length=1, length_sd=1), "group_size = -1"),
        (lambda: varying_tokens(1, 1, group_size=2, mean_length=1, length_sd=math.nan), "length_sd = nan"),
    ],
)
def test_what_makes_no_budget_is_refused(call, said: str):
    with pytest.raises(ValueError, match=said):
        call()
