"""The models of the reward barrier: against event simulations, closed forms, published numbers and bounds."""

from __future__ import annotations

import heapq
import math
from fractions import Fraction
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import chdtrc

from pytest_prereg.measure.workloads.barrier_models import (
    batch_cost,
    batch_waits,
    draw_durations,
    draw_maxima,
    efficiency,
    expected_grouped_step,
    expected_wait,
    grouped_steps,
    hit_probability,
    idle_shares,
    knee,
    mean_over_waits,
    median_hit_probability,
    pool_makespans,
    simulate,
    stale_makespan,
    wait_cdf,
    wait_quantile,
)
from pytest_prereg.measure.workloads.models.costs import _none_exceeded
from pytest_prereg.measure.workloads.models.draws import _streams

LAW = {"reward": 2.0, "deadline": 30.0}
GENERATION, TRAINING = 12.47, 12.20
BUSY = GENERATION + TRAINING
TIMES = {"generation": GENERATION, "training": TRAINING}

eighths = st.integers(0, 400).map(lambda n: n / 8)
"""Seconds whose sums are exact, so that two ways to add them agree to the last bit."""


def generator(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def rows(columns: st.SearchStrategy[int]) -> st.SearchStrategy:
    return columns.flatmap(
        lambda n: st.lists(st.lists(eighths, min_size=n, max_size=n), min_size=1, max_size=4)
    )


def assert_fits(observed: np.ndarray, expected: np.ndarray) -> None:
    """Pearson's chi-square test of counts against a law without parameters to fit, at one in ten thousand."""
    statistic = ((observed - expected) ** 2 / expected).sum()
    assert expected.min() > 5
    assert chdtrc(len(expected) - 1, statistic) > 1e-4


def assert_mean(values: np.ndarray, expected: float) -> None:
    """Within four standard errors."""
    assert values.mean() == pytest.approx(expected, abs=4 * values.std() / math.sqrt(len(values)))


# One event at a time, in plain Python.


def grouped_by_events(durations: list[float], *, group: int, generation: float, training: float) -> float:
    groups = [durations[first : first + group] for first in range(0, len(durations), group)]
    events = [(generation + max(each), index) for index, each in enumerate(groups)]
    heapq.heapify(events)
    free = generation
    while events:
        ready, _ = heapq.heappop(events)
        free = max(free, ready) + training / len(groups)
    return free


def stale_by_events(waits: list[float], *, staleness: int, generation: float, training: float) -> float:
    """A clock, an accelerator that is busy or not, and a heap of what happens next."""
    events: list[tuple[float, str, int]] = []
    unseen, rewarded, trained, busy, now = list(range(len(waits))), set(), 0, False, 0.0
    while trained < len(waits):
        if not busy and trained in rewarded:
            busy = True
            heapq.heappush(events, (now + training, "trained", trained))
        elif not busy and unseen and unseen[0] - trained <= staleness:
            busy = True
            heapq.heappush(events, (now + generation, "generated", unseen.pop(0)))
        else:
            now = events[0][0]
        while events and events[0][0] == now:
            _, what, step = heapq.heappop(events)
            busy = busy and what == "rewarded"
            trained += what == "trained"
            if what == "generated":
                heapq.heappush(events, (now + waits[step], "rewarded", step))
            if what == "rewarded":
                rewarded.add(step)
    return now


def pool_by_events(durations: list[float], *, workers: int, creation: float = 0.0, gap: float = 0.0) -> float:
    free, last, end = [0.0] * workers, -math.inf, 0.0
    for duration in durations:
        created = max(heapq.heappop(free), last + gap)
        last = created
        heapq.heappush(free, created + creation + duration)
        end = max(end, created + creation + duration)
    return end


@given(rows(st.integers(1, 24)))
def test_a_batch_waits_for_its_slowest(durations):
    assert batch_waits(np.array(durations)).tolist() == [max(row) for row in durations]


@settings(max_examples=60)
@given(
    st.tuples(st.sampled_from([1, 2, 3, 4, 6, 8]), st.integers(1, 6)).flatmap(
        lambda shape: st.tuples(st.just(shape[0]), rows(st.just(shape[0] * shape[1])))
    ),
    eighths,
    eighths,
)
def test_groups_train_as_an_event_simulation_has_them(drawn, generation, training):
    group, durations = drawn
    expected = [
        grouped_by_events(row, group=group, generation=generation, training=training) for row in durations
    ]
    found = grouped_steps(np.array(durations), group=group, generation=generation, training=training)
    assert found.tolist() == pytest.approx(expected, rel=1e-12)


@settings(max_examples=60)
@given(rows(st.integers(1, 12)), st.integers(0, 6), eighths, eighths)
def test_stale_steps_run_as_an_event_simulation_has_them(waits, staleness, generation, training):
    times = {"staleness": staleness, "generation": generation, "training": training}
    expected = [stale_by_events(row, **times) for row in waits]
    assert stale_makespan(np.array(waits), **times).tolist() == expected


@settings(max_examples=60)
@given(rows(st.integers(1, 24)), st.integers(1, 26), eighths, st.sampled_from([None, 0.5, 2.0, 8.0]))
def test_pools_run_as_an_event_simulation_has_them(durations, workers, creation, rate):
    cold = [
        pool_by_events(row, workers=workers, creation=creation, gap=1 / rate if rate else 0.0)
        for row in durations
    ]
    given = {"workers": workers, "creation": creation, "rate": rate}
    assert pool_makespans(np.array(durations), **given, warm=False).tolist() == cold
    warm = [pool_by_events(row, workers=workers) for row in durations]
    assert pool_makespans(np.array(durations), **given).tolist() == warm


def test_models_of_many_steps_equal_those_of_each():
    """More rows than a block holds."""
    durations = draw_durations(generator(), 1300, 128, timeout_rate=0.01, spread=0.5, **LAW)
    for model in (
        partial(grouped_steps, group=8, **TIMES),
        partial(pool_makespans, workers=32, creation=0.4, rate=5, warm=False),
    ):
        each = np.concatenate([model(row[None]) for row in durations[::130]])
        assert model(durations)[::130].tolist() == each.tolist()


# Orderings that always hold, and those that don't.


@given(rows(st.just(24)), eighths, eighths)
def test_finer_groups_are_never_slower_and_one_group_is_the_batch(durations, generation, training):
    array = np.array(durations)
    times = {"generation": generation, "training": training}
    steps = [grouped_steps(array, group=group, **times) for group in (24, 12, 4, 2, 1)]
    assert steps[0] == pytest.approx(generation + array.max(axis=1) + training)
    for coarse, fine in pairwise(steps):
        assert (fine <= coarse + 1e-9).all()
    least = np.maximum(array.min(axis=1) + training, array.max(axis=1) + training / 24)
    assert (steps[-1] >= generation + least - 1e-9).all()


@given(rows(st.integers(1, 12)), st.integers(0, 12), eighths, eighths)
def test_a_stale_run_is_never_slower_than_the_synchronous_loop(waits, staleness, generation, training):
    """It idles for the oldest open step alone, and for none longer than that step's rewards take."""
    array = np.array(waits)
    times = {"generation": generation, "training": training}
    synchronous = stale_makespan(array, staleness=0, **times)
    steps = array.shape[1]
    assert synchronous.tolist() == (steps * (generation + training) + array.sum(axis=1)).tolist()
    found = stale_makespan(array, staleness=staleness, **times)
    assert (found <= synchronous).all()
    assert (found >= steps * (generation + training)).all()
    assert (found >= generation + array.max(axis=1) + training).all()


def test_more_staleness_can_be_slower_than_less():
    """A generation begun early holds up a training that becomes possible meanwhile, as nothing is preempted."""
    waits, times = np.array([[8.0, 1, 2, 5]]), {"generation": 2, "training": 6}
    found = [stale_makespan(waits, staleness=k, **times).item() for k in range(4)]
    assert found == [48, 38, 41, 34]


def test_a_run_can_end_with_a_wait_that_nothing_is_left_to_hide():
    """Stages of 1 s: two steps in four seconds, and an eleventh that finds no other beside it."""
    times = {"generation": 1, "training": 1}
    assert stale_makespan(np.ones((1, 10)), staleness=1, **times).tolist() == [20]
    assert stale_makespan(np.ones((1, 11)), staleness=1, **times).tolist() == [23]
    assert stale_makespan(np.ones((1, 10)), staleness=0, **times).tolist() == [30]


@given(rows(st.integers(1, 24)), st.integers(1, 24), eighths, st.sampled_from([None, 0.5, 8.0]))
def test_more_workers_or_shorter_jobs_are_never_slower_in_the_same_order(durations, workers, creation, rate):
    array = np.array(durations)
    for warm in (True, False):
        pool = partial(pool_makespans, creation=creation, rate=rate, warm=warm)
        found = pool(array, workers=workers)
        assert (pool(array, workers=workers + 1) <= found).all()
        shorter = array.copy()
        shorter[:, ::2] /= 2
        assert (pool(shorter, workers=workers) <= found).all()
    assert (pool_makespans(array, workers=workers) <= found).all()


@given(rows(st.integers(1, 24)), st.integers(1, 26))
def test_a_warm_pool_keeps_grahams_bounds(durations, workers):
    array = np.array(durations)
    found = pool_makespans(array, workers=workers)
    work, longest = array.sum(axis=1), array.max(axis=1)
    assert (found >= np.maximum(longest, work / workers) - 1e-9).all()
    assert (found <= work / workers + (1 - 1 / workers) * longest + 1e-9).all()


def test_the_order_of_the_jobs_matters_and_graham_is_reached():
    """The longest last: the other worker idles for all of it."""
    assert pool_makespans(np.array([[1.0, 1, 2], [2, 1, 1]]), workers=2).tolist() == [3, 2]


def test_equal_jobs_take_whole_rounds():
    jobs = np.full((1, 128), 2.0)
    found = {c: pool_makespans(jobs, workers=c).item() for c in (8, 64, 100, 128, 256)}
    assert found == {8: 32, 64: 4, 100: 4, 128: 2, 256: 2}
    assert efficiency(256, 100, found[100]) == 0.64


def test_a_creation_rate_bounds_a_cold_pool():
    """128 creations at 5 a second: the last begins after 25.4 s."""
    cold = pool_makespans(np.full((1, 128), 2.0), workers=128, creation=0.363, rate=5, warm=False)
    assert cold.item() == pytest.approx(127 / 5 + 0.363 + 2)


# Draws.


@pytest.mark.parametrize("rate", [0.01, 0.3, 0.7])
def test_the_number_of_timeouts_of_a_batch_is_binomial(rate):
    count, steps = 8, 100_000
    hits = (draw_durations(generator(), steps, count, timeout_rate=rate, **LAW) == 30).sum(axis=1)
    law = np.array([math.comb(count, k) * rate**k * (1 - rate) ** (count - k) for k in range(count + 1)])
    kept = law * steps > 5
    observed, expected = np.bincount(hits, minlength=count + 1), law * steps
    assert_fits(
        np.append(observed[kept], observed[~kept].sum() + 10),
        np.append(expected[kept], expected[~kept].sum() + 10),
    )


def test_timeouts_come_without_memory():
    """The gaps between them, over steps, are geometric: four decisions of one word are independent."""
    rate = 0.2
    hits = np.flatnonzero(draw_durations(generator(), 20_000, 13, timeout_rate=rate, **LAW) == 30)
    gaps = np.minimum(np.diff(hits), 30)
    law = rate * (1 - rate) ** np.arange(30)
    law[-1] = (1 - rate) ** 29
    assert_fits(np.bincount(gaps, minlength=31)[1:], law * len(gaps))


def test_rates_that_sixteen_bits_do_not_resolve_are_met():
    """3 in 2**18: sixteen random bits alone would make that 0 or 4 in 2**18."""
    drawn = 2**23
    waits = simulate(
        lambda block: (block == 30).sum(axis=1), generator(), drawn // 64, 64, timeout_rate=3 / 2**18, **LAW
    )
    expected = drawn * 3 / 2**18
    assert waits.sum() == pytest.approx(expected, abs=4 * math.sqrt(expected))


def test_no_rate_is_no_timeout_and_rate_one_is_nothing_else():
    assert (draw_durations(generator(), 300, 7, timeout_rate=0, **LAW) == 2).all()
    assert (draw_durations(generator(), 300, 7, timeout_rate=1, spread=1, **LAW) == 30).all()
    assert draw_durations(generator(), 0, 7, timeout_rate=0.5, **LAW).shape == (0, 7)


@given(st.integers(0, 99), st.floats(0, 1), st.floats(0, 1))
@settings(max_examples=30)
def test_what_times_out_at_a_low_rate_does_so_at_a_higher_one(seed, one, other):
    low, high = (
        draw_durations(generator(seed), 200, 9, timeout_rate=rate, spread=0.2, **LAW)
        for rate in sorted([one, other])
    )
    assert ((low == high) | (high == 30)).all()


def test_a_draw_is_the_generators_state_alone_and_moves_it_on():
    first, second = generator(4), generator(4)
    law = {"timeout_rate": 0.1, "spread": 0.5, **LAW}
    long = draw_durations(first, 3000, 50, **law)
    assert (draw_durations(second, 70, 50, **law) == long[:70]).all()
    after = draw_durations(first, 70, 50, **law)
    assert (after != long[:70]).any()
    assert (draw_durations(second, 70, 50, **law) == after).all()


def test_timeouts_and_factors_are_drawn_from_streams_of_their_own():
    assert len({each.integers(2**63).item() for each in _streams(generator())}) == 3


def test_simulating_equals_drawing_first():
    law = {"timeout_rate": 0.02, "spread": 0.3, **LAW}
    model = partial(grouped_steps, group=4, **TIMES)
    found = simulate(model, generator(), 2500, 100, **law)
    assert found.tolist() == model(draw_durations(generator(), 2500, 100, **law)).tolist()


def occupied(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Counts in ``(-inf, edges[0]]``, …, ``(edges[-1], inf)``."""
    return np.bincount(np.searchsorted(edges, values), minlength=len(edges) + 1)


@pytest.mark.parametrize(("rate", "spread"), [(0.0, 0.5), (0.05, 0.5), (0.3, 2.0)])
def test_durations_follow_their_law(rate, spread):
    drawn = draw_durations(generator(), 3000, 20, timeout_rate=rate, spread=spread, **LAW).ravel()
    shares = np.linspace(0.05, 0.6, 12)
    edges = wait_quantile(shares, rate, 1, spread=spread, **LAW)
    assert_fits(occupied(drawn, edges), np.diff([0, *shares, 1]) * drawn.size)


@pytest.mark.parametrize(("rate", "spread"), [(0.005, 0.0), (0.0, 0.5), (0.005, 0.5), (0.0, 0.8)])
def test_maxima_follow_the_law_of_the_batch_either_way(rate, spread):
    law = {"timeout_rate": rate, "spread": spread, **LAW}
    shares = np.array([0.1, 0.2, 0.35, 0.45])
    if not spread:
        shares = np.array([1 - hit_probability(rate, 128)])
    edges = wait_quantile(shares, rate, 128, spread=spread, **LAW)
    for drawn in (
        draw_maxima(generator(), 20_000, 128, **law),
        simulate(batch_waits, generator(), 4_000, 128, **law),
    ):
        assert_fits(occupied(drawn, edges), np.diff([0, *shares, 1]) * drawn.size)


def test_a_maximum_of_group_maxima_is_that_of_the_batch():
    maxima = draw_maxima(generator(), (20_000, 16), 8, timeout_rate=0.003, spread=0.4, **LAW)
    assert_mean(maxima.max(axis=1), expected_wait(0.003, 128, spread=0.4, **LAW))


# Exact laws.


def test_seven_steps_in_ten_are_hit_at_one_timeout_in_a_hundred():
    assert hit_probability(0.01, 128) == pytest.approx(0.72374833, abs=5e-9)
    assert hit_probability(0, 128) == 0
    assert hit_probability(1, 128) == 1


@given(st.floats(0, 1), st.integers(1, 60))
@settings(max_examples=50)
def test_hit_probabilities_are_right_to_the_last_digits(rate, completions):
    exact = 1 - (1 - Fraction(rate)) ** completions
    assert hit_probability(rate, completions) == pytest.approx(float(exact), rel=1e-14, abs=5e-324)


def test_the_knee_is_where_half_of_the_steps_are_hit():
    assert knee(128) == pytest.approx(0.0054006, abs=5e-8)
    assert hit_probability(knee(128, 0.9), 128) == pytest.approx(0.9, rel=1e-14)


@pytest.mark.parametrize(
    ("rate", "median", "sums", "ratios"),
    [
        (0, 7.499, 7.499, 7.499),  # 2 / 26.67
        (0.01, 54.875, 47.4, 41.8),  # 30 / 54.67
        (0.02, 54.875, 53.1, 51.3),
        (0.05, 54.875, 54.8, 54.8),
        (0.10, 54.875, 54.9, 54.9),
    ],
)
def test_three_shares_of_idle_time_differ(rate, median, sums, ratios):
    """*Price the Reward Function* has 55.0 at 2, 5 and 10 %: the median step's, and 54.9 to the digit."""
    shares = idle_shares(rate, 128, busy=BUSY, **LAW)
    assert 100 * shares.median_step == pytest.approx(median, abs=5e-4)
    assert 100 * shares.ratio_of_sums == pytest.approx(sums, abs=0.05)
    assert 100 * shares.mean_of_ratios == pytest.approx(ratios, abs=0.05)


def test_without_spread_the_shares_are_those_of_two_values():
    q = 1 - 0.99**128
    wait = q * 30 + (1 - q) * 2
    shares = idle_shares(0.01, 128, busy=BUSY, **LAW)
    assert shares.ratio_of_sums == pytest.approx(wait / (wait + BUSY), rel=1e-13)
    assert shares.mean_of_ratios == pytest.approx(q * 30 / 54.67 + (1 - q) * 2 / 26.67, rel=1e-13)


@pytest.mark.parametrize(("rate", "probability"), [(0.005, 0.442), (0.01, 0.903), (0.02, 0.999)])
def test_the_median_of_seven_is_a_hit_step(rate, probability):
    q = hit_probability(rate, 128)
    exact = sum(math.comb(7, k) * q**k * (1 - q) ** (7 - k) for k in range(4, 8))
    assert median_hit_probability(rate, 128, 7) == pytest.approx(exact, rel=1e-13)
    assert exact == pytest.approx(probability, abs=5e-4)


def test_of_an_even_number_more_than_half_have_to_be_hit():
    assert median_hit_probability(0.5, 1, 2) == pytest.approx(0.25)


@given(st.floats(0.001, 0.999), st.sampled_from([0.0, 1e-9, 0.004, 0.5]), st.integers(1, 300))
@settings(max_examples=60)
def test_quantiles_invert_the_law(share, rate, completions):
    at = wait_quantile(share, rate, completions, spread=0.6, **LAW)
    if at < 30:
        assert wait_cdf(at, rate, completions, spread=0.6, **LAW) == pytest.approx(share, rel=1e-9)
    else:
        assert wait_cdf(30 * (1 - 1e-12), rate, completions, spread=0.6, **LAW) <= share + 1e-9


def test_without_spread_a_wait_is_one_of_two():
    at = np.array([0, 1.99, 2, 29.9, 30, 31])
    never = 0.99**128
    assert wait_cdf(at, 0.01, 128, **LAW).tolist() == pytest.approx([0, 0, never, never, 1, 1])
    assert wait_quantile(np.array([0.27, 0.28]), 0.01, 128, **LAW).tolist() == [2, 30]


def test_one_completion_waits_for_its_own_mean():
    """A log-normal value has mean exp(s**2 / 2); the deadline is far out of reach."""
    mean = expected_wait(0, 1, reward=2, deadline=1e6, spread=0.5)
    assert mean == pytest.approx(2 * math.exp(0.125), rel=1e-12)


@pytest.mark.parametrize(("rate", "spread"), [(0.01, 0.0), (0.003, 0.5), (0.0, 1.0)])
def test_means_are_those_of_a_simulation(rate, spread):
    waits = simulate(batch_waits, generator(), 5_000, 128, timeout_rate=rate, spread=spread, **LAW)
    assert_mean(waits, expected_wait(rate, 128, spread=spread, **LAW))
    assert_mean(waits**2, mean_over_waits(np.square, rate, 128, spread=spread, **LAW))
    shares = idle_shares(rate, 128, busy=BUSY, spread=spread, **LAW)
    assert_mean(waits / (waits + BUSY), shares.mean_of_ratios)


def test_smaller_barriers_are_hit_less_often_and_cost_more():
    """The recommendation that was backwards: from 128 to 32 completions, nearly fourfold for each."""
    cost = {
        (rate, n): batch_cost(rate, n, busy_per_completion=BUSY / 128, **LAW)
        for rate in (0.01, 0.05, 0.1)
        for n in (8, 16, 32, 64, 128)
    }
    for rate in (0.01, 0.05, 0.1):
        sizes = [cost[rate, n] for n in (8, 16, 32, 64, 128)]
        for small, large in pairwise(sizes):
            assert small.hit_probability < large.hit_probability
            assert small.wait < large.wait
            assert small.wait_per_completion > large.wait_per_completion
            assert small.seconds_per_completion > large.seconds_per_completion
    small, large = cost[0.1, 32], cost[0.1, 128]
    assert small.wait_per_completion / large.wait_per_completion == pytest.approx(3.872, abs=5e-4)
    assert small.hit_step_per_completion / large.hit_step_per_completion == pytest.approx(2.646, abs=5e-4)
    eight = cost[0.05, 8].seconds_per_completion / cost[0.05, 128].seconds_per_completion
    assert eight == pytest.approx(3.797, abs=5e-4)


def test_groups_cost_what_every_number_of_hit_groups_costs_by_its_odds():
    q, mean = 1 - 0.99**8, 0.0
    for hit in range(17):
        durations = np.full((1, 128), 2.0)
        durations[0, : 8 * hit : 8] = 30
        odds = math.comb(16, hit) * q**hit * (1 - q) ** (16 - hit)
        mean += odds * grouped_steps(durations, group=8, **TIMES).item()
    assert expected_grouped_step(0.01, 128, group=8, **TIMES, **LAW) == pytest.approx(mean, rel=1e-13)


def test_without_spread_there_may_be_more_groups_than_factorials_are_floats():
    """Groups of one: the training of the timed-out ones alone is left once the deadline has passed."""
    mean = expected_grouped_step(0.3, 5000, group=1, **TIMES, **LAW)
    assert mean == pytest.approx(GENERATION + 30 + 0.3 * TRAINING, rel=1e-12)


@pytest.mark.parametrize("spread", [0.0, 0.5])
def test_one_group_costs_what_the_batch_does(spread):
    found = expected_grouped_step(0.01, 128, group=128, spread=spread, **TIMES, **LAW)
    expected = BUSY + expected_wait(0.01, 128, spread=spread, **LAW)
    assert found == pytest.approx(expected, rel=1e-11)


def test_a_vanishing_spread_changes_no_cost_of_groups():
    without, nearly = (
        expected_grouped_step(0.01, 128, group=8, spread=spread, **TIMES, **LAW) for spread in (0, 1e-6)
    )
    assert nearly == pytest.approx(without, rel=1e-6)


@pytest.mark.parametrize(("rate", "spread", "group"), [(0.01, 0.5, 8), (0.0, 1.5, 4), (0.02, 0.2, 32)])
def test_groups_cost_on_average_what_simulated_ones_do(rate, spread, group):
    maxima = draw_maxima(generator(), (20_000, 128 // group), group, timeout_rate=rate, spread=spread, **LAW)
    steps = grouped_steps(maxima, group=1, **TIMES)
    assert_mean(steps, expected_grouped_step(rate, 128, group=group, spread=spread, **TIMES, **LAW))


def test_order_statistics_below_bounds_have_the_probability_of_an_area():
    """Of two values in order: 2ab - a**2, the part of the square that both bounds leave."""
    bounds = np.array([[0.3, 0.7], [1.0, 1.0], [0.0, 0.9]])
    assert _none_exceeded(bounds).tolist() == pytest.approx([0.33, 1, 0])


def test_order_statistics_below_equal_bounds_are_below_one():
    assert _none_exceeded(np.full((1, 16), 0.9)).item() == pytest.approx(0.9**16)


# Parameters that make no model.


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: hit_probability(1.5, 128), r"timeout_rate = 1\.5 is no probability"),
        (lambda: hit_probability(math.nan, 128), "timeout_rate = nan"),
        (lambda: hit_probability(0.1, 0), "completions = 0: give a whole number"),
        (lambda: hit_probability(0.1, 2.5), r"completions = 2\.5"),
        (lambda: knee(128, -0.1), r"share = -0\.1"),
        (lambda: wait_quantile(1.1, 0.1, 128, **LAW), r"share = 1\.1"),
        (lambda: expected_wait(0.1, 8, reward=40, deadline=30), "a usual reward of 40 s"),
        (lambda: expected_wait(0.1, 8, spread=-1, **LAW), "spread = -1"),
        (lambda: idle_shares(0.1, 8, busy=math.inf, **LAW), "busy = inf s"),
        (lambda: batch_waits(np.zeros(3)), r"durations of shape \(3,\)"),
        (lambda: batch_waits(np.zeros((3, 0))), r"durations of shape \(3, 0\)"),
        (lambda: batch_waits(np.array([[1, math.nan]])), "durations from nan to nan s"),
        (lambda: batch_waits(np.array([[1.0, -2.0]])), r"durations from -2\.0 to 1\.0 s"),
        (lambda: grouped_steps(np.ones((1, 9)), group=4, **TIMES), "groups of 4 do not divide 9"),
        (lambda: stale_makespan(np.ones((1, 9)), staleness=-1, **TIMES), "staleness = -1"),
        (lambda: pool_makespans(np.ones((1, 9)), workers=0), "workers = 0"),
        (lambda: pool_makespans(np.ones((1, 9)), workers=1, rate=0, warm=False), "0 creations a second"),
        (lambda: efficiency(1, 1, 0), r"a makespan of 0\.0 s"),
        (lambda: efficiency(1, 1, math.nan), "a makespan of nan s"),
        (lambda: efficiency(math.nan, 3, 1), "work of nan s"),
        (lambda: efficiency(-3, 3, 1), r"work of -3\.0 s"),
        (lambda: efficiency(30, 3, 1), r"work of 30\.0 s: 3 workers do between none and 3\.0 s"),
        (lambda: expected_grouped_step(0, 171, group=1, spread=0.5, **TIMES, **LAW), "171 groups"),
        (lambda: hit_probability("x", 8), "timeout_rate = 'x'"),
        (lambda: hit_probability(0.1, 8.0), r"completions = 8\.0: give a whole number"),
        (lambda: hit_probability(0.1, math.nan), "completions = nan: give a whole number"),
        (lambda: hit_probability(0.1, 10**400), "completions = 1000"),
        (lambda: hit_probability(0.1, completions=True), "completions = True"),
        (lambda: knee(math.inf), "completions = inf"),
        (lambda: median_hit_probability(0.1, 8, math.nan), "repeats = nan"),
        (lambda: idle_shares(0.1, 8, busy=1e308, **LAW), r"busy = 1e\+308 s"),
        (lambda: wait_cdf(math.nan, 0.1, 128, **LAW), "seconds = nan"),
        (lambda: wait_quantile(math.nan, 0.1, 128, **LAW), "share = nan"),
        (lambda: batch_waits(np.array([[1, 1e308]])), r"durations from 1\.0 to 1e\+308 s"),
        (lambda: grouped_steps(np.ones((1, 4)), group=2.0, **TIMES), r"group = 2\.0"),
        (lambda: stale_makespan(np.ones((1, 4)), staleness=math.inf, **TIMES), "staleness = inf"),
        (lambda: pool_makespans(np.ones((1, 3)), workers=2.0), r"workers = 2\.0"),
        (lambda: pool_makespans(np.ones((1, 3)), workers=3, rate=1e-320, warm=False), "rate = 1e-320"),
        (lambda: pool_makespans(np.ones((1, 3)), workers=3, rate=math.nan), "rate = nan"),
        (lambda: draw_durations(generator(), -1, 8, timeout_rate=0, **LAW), "steps = -1"),
        (lambda: simulate(batch_waits, generator(), 2.0, 8, timeout_rate=0, **LAW), r"steps = 2\.0"),
        (lambda: draw_maxima(generator(), (1, math.nan), 8, timeout_rate=0, **LAW), "shape = nan"),
        (lambda: draw_durations(generator(), 1, 8, timeout_rate=2, **LAW), "timeout_rate = 2"),
        (lambda: draw_maxima(generator(), 1, 0, timeout_rate=0, **LAW), "completions = 0"),
    ],
)
def test_what_makes_no_model_is_refused_with_its_value(call, said):
    with pytest.raises(ValueError, match=said):
        call()
