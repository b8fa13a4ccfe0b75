"""The reward_barrier fixture, with real processes: what it measures, what the model says, what it refuses."""

from __future__ import annotations

import math
from typing import ClassVar

import pytest

from pytest_prereg import Repeat
from pytest_prereg.measure.workloads import barrier
from pytest_prereg.measure.workloads.barrier import reward_barrier
from pytest_prereg.measure.workloads.barrier_models import wait_cdf
from pytest_prereg.measure.workloads.barrier_schedules import Load, run_stale, seconds_in_flight
from pytest_prereg.measure.workloads.reward_pool import Batch, RewardPool

SCALE = 0.005
LATE = 0.5
"""Seconds that a busy machine may add to a run of these tests."""


def measured(seed: int = 1, *, completions: int = 8, scale: float = SCALE, **params) -> dict:
    repeat = Repeat(metrics=reward_barrier.metrics, seed=seed)
    reward_barrier(repeat, completions=completions, scale=scale, **params)
    readings = repeat.readings()
    assert readings.problems == []
    assert readings.missing == []
    return readings.values


def test_without_timeouts_the_share_is_the_rewards_own():
    values = measured(steps=2, reward=20.0)
    assert values["steps"] == 2
    assert values["hit_steps"] == values["timeouts"] == 0
    assert all(0.1 <= wait < 0.1 + LATE for wait in values["wait"])


def test_at_rate_one_every_step_waits_for_the_deadline():
    values = measured(steps=2, timeout_rate=1.0, deadline=20.0)
    assert values["hit_steps"] == 2
    assert values["timeouts"] == 16
    assert all(0.1 <= wait < 0.1 + LATE for wait in values["wait"])


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"barrier": "group", "group": 4},
        {"staleness": 1},
        {"workers": 3},
        {"pool": "cold", "workers": 5, "rate": 40.0},
    ],
    ids=lambda params: " ".join(params) or "batch",
)
def test_a_step_is_what_is_busy_and_what_is_idle(params):
    values = measured(steps=3, timeout_rate=0.1, generation=4.0, training=2.0, deadline=8.0, **params)
    assert values["step"] == values["busy"] + values["idle"]
    assert values["idle"] == pytest.approx(sum(values["wait"]))
    assert len(values["wait"]) == values["steps"] == 3
    assert all(wait >= -1e-9 for wait in values["wait"])
    assert values["busy"] >= 3 * 6.0 * SCALE - 1e-9


@pytest.mark.parametrize(
    ("params", "spent"),
    [({}, set()), ({"barrier": "group", "group": 4}, {"busy"}), ({"staleness": 1}, {"busy"})],
)
def test_what_the_clock_read_is_named_as_taken_by_it_and_what_is_stated_is_not(params, spent):
    repeat = Repeat(metrics=reward_barrier.metrics, seed=1)
    reward_barrier(repeat, completions=8, steps=1, scale=SCALE, **params)
    taken = repeat.readings().instruments
    assert set(taken) == {"wait", "idle", "step", *spent}
    assert set(taken.values()) == {"wall-clock"}


@pytest.mark.parametrize(
    ("params", "modelled"),
    [
        # Two steps of generation (4 s), rewards (2 s) and training (2 s).
        ({}, 16.0),
        ({"timeout_rate": 1.0}, 32.0),
        # Without a difference between groups there is nothing to gain.
        ({"barrier": "group", "group": 4}, 16.0),
        # Generated at 4 and 8 s; the first waits for 10 s, and trains until the second is in at 18 s.
        ({"staleness": 1, "reward": 10.0}, 20.0),
        # Eight rewards on three workers take three rounds, on two four.
        ({"workers": 3}, 24.0),
        ({"workers": 2}, 28.0),
        ({"pool": "cold", "creation": 1.0}, 18.0),
        # The last of eight creations begins after 7 / 4 s.
        ({"pool": "cold", "creation": 1.0, "rate": 4.0}, 21.5),
        ({"pool": "cold", "creation": 1.0, "barrier": "group"}, 18.0),
        ({"pool": "cold", "creation": 1.0, "staleness": 1, "reward": 9.0}, 20.0),
    ],
    ids=lambda value: " ".join(value) or "batch" if isinstance(value, dict) else None,
)
def test_a_run_takes_what_the_model_says_and_what_the_machine_adds(params, modelled):
    values = measured(steps=2, generation=4.0, training=2.0, deadline=10.0, **params)
    assert values["modelled"] == pytest.approx(modelled * SCALE)
    assert values["modelled_idle"] == pytest.approx((modelled - 12.0) * SCALE)
    assert 0 <= values["step"] - modelled * SCALE < LATE


def test_groups_that_are_in_train_while_others_are_awaited():
    """One of two groups is hit: the other's 10 s of training fit into the wait for it."""
    seed = next(seed for seed in range(1000) if sum(next(slow(0.1, seed=seed, completions=8))) == 1)
    params = {"seed": seed, "steps": 1, "timeout_rate": 0.1, "generation": 5.0, "training": 20.0}
    whole, halves = measured(**params), measured(**params, barrier="group", group=4)
    assert whole["timeouts"] == halves["timeouts"] == 1
    assert whole["modelled_idle"] == pytest.approx(30.0 * SCALE)
    assert halves["modelled_idle"] == pytest.approx(20.0 * SCALE)
    assert 0 <= halves["step"] - halves["modelled"] < LATE


def test_the_groups_of_a_step_share_its_training():
    values = measured(steps=1, generation=0.0, training=40.0, barrier="group", group=1)
    assert 0 <= values["busy"] - 40.0 * SCALE < LATE


class Watched(RewardPool):
    """Notes what is asked of it."""

    asked: ClassVar[list[str]] = []

    def submit(self, *args, **kwargs) -> Batch:
        self.asked.append("submit")
        return super().submit(*args, **kwargs)

    def wait(self, batch: Batch) -> None:
        self.asked.append("wait")
        super().wait(batch)


@pytest.mark.parametrize("staleness", [1, 2, 5])
def test_steps_are_generated_ahead_before_the_oldest_is_waited_for(staleness):
    load = Load(rewards=[[0.2]] * 4, deadline=10.0, generation=0.01, training=0.0)
    with Watched(4) as pool:
        pool.asked.clear()
        run_stale(pool, load, staleness=staleness)
    ahead = min(staleness + 1, 4)
    assert pool.asked[: ahead + 1] == ["submit"] * ahead + ["wait"]
    assert pool.asked.count("submit") == 4


def test_staleness_hides_the_wait_behind_the_next_generation():
    values = measured(steps=4, reward=1.5, generation=4.0, training=2.0, staleness=1)
    assert values["modelled_idle"] == pytest.approx(0.0)
    assert 0 <= values["step"] - values["modelled"] < LATE


def test_work_is_set_against_the_workers_and_the_time_in_which_rewards_were_awaited():
    """Four workers do six rewards in two rounds, two of them idle in the second."""
    values = measured(steps=2, completions=6, reward=20.0, workers=4)
    assert 0.75 * 0.2 / (0.2 + LATE) < values["eta"] <= 0.75


def test_a_timeout_counts_as_work_until_its_deadline():
    """One worker's time is all work, but for what the machine adds."""
    values = measured(steps=1, completions=2, timeout_rate=1.0, deadline=20.0, workers=1)
    assert 0.2 / (0.2 + LATE) < values["eta"] <= 1


def awaited(submitted: float, ended: float) -> Batch:
    return Batch(submitted=submitted, ends=[ended], unfinished=0)


def test_time_with_several_batches_in_flight_counts_once():
    batches = [awaited(0, 4), awaited(6, 7), awaited(1, 3), awaited(3.5, 5)]
    assert seconds_in_flight(batches) == 6


def test_the_timeouts_are_those_drawn():
    values = measured(seed=5, steps=3, timeout_rate=0.3, deadline=10.0)
    drawn = list(slow(0.3, seed=5, steps=3, completions=8))
    assert values["timeouts"] == sum(map(sum, drawn)) > 0
    assert values["hit_steps"] == sum(map(any, drawn))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"timeout_rate": 1.5}, "timeout_rate = 1.5: give a share, from 0 to 1"),
        ({"timeout_rate": "1 %"}, "timeout_rate = '1 %': give a share"),
        ({"completions": 0}, "completions = 0: give a whole number of at least 1"),
        ({"steps": 2.5}, "steps = 2.5: give a whole number of at least 1"),
        ({"staleness": -1}, "staleness = -1: give a whole number of at least 0"),
        ({"workers": -1}, "workers = -1: give a whole number of at least 0"),
        ({"scale": 0.0}, "scale = 0.0: give a finite number above 0"),
        ({"deadline": 0}, "deadline = 0: give a finite number above 0"),
        ({"reward": float("inf")}, "reward = inf: give a finite number of at least 0"),
        ({"generation": -1.0}, "generation = -1.0: give a finite number of at least 0"),
        ({"training": float("nan")}, "training = nan: give a finite number of at least 0"),
        ({"spread": -0.5}, "spread = -0.5: give a finite number of at least 0"),
        ({"rate": "fast"}, "rate = 'fast': give a finite number of at least 0"),
        ({"barrier": "groups"}, 'barrier = "groups": give "batch" or "group"'),
        ({"pool": "hot"}, 'pool = "hot": give "warm" or "cold"'),
        ({"barrier": "group", "group": 3}, "group = 3 does not divide completions = 8: give a divisor"),
        (
            {"barrier": "group", "staleness": 1},
            'staleness = 1 with barrier = "group": a run has one of them; give staleness = 0',
        ),
        ({"rate": 5.0}, 'rate = 5.0 with pool = "warm".*give rate = 0, or pool = "cold"'),
        (
            {"barrier": "group", "workers": 4},
            "workers = 4, and 8 rewards can be in flight: give workers = 0",
        ),
        ({"staleness": 1, "workers": 8}, "workers = 8, and 16 rewards can be in flight"),
        (
            {"staleness": 1, "pool": "cold", "rate": 5.0},
            'rate = 5.0: give rate = 0, or barrier = "batch" and staleness = 0',
        ),
    ],
)
def test_what_cannot_be_run_is_refused_with_what_to_write(params, message):
    with pytest.raises(ValueError, match=message):
        measured(**params)


def slow(rate: float, *, seed: int = 3, steps: int = 1, completions: int = 128):
    return barrier._slow_completions(seed, rate, completions, steps)


def draws(rate: float, *, seed: int = 3, steps: int = 200) -> list[list[bool]]:
    return list(barrier._slow_completions(seed, rate, 128, steps))


def test_the_draws_are_the_seeds_alone():
    assert draws(0.3) == draws(0.3)
    assert draws(0.3) != draws(0.3, seed=4)


def test_what_times_out_at_a_low_rate_does_so_at_a_higher_one():
    low, high = draws(0.01), draws(0.1)
    assert all(b for one, ten in zip(low, high, strict=True) for a, b in zip(one, ten, strict=True) if a)
    assert sum(map(sum, low)) < sum(map(sum, high))


def factors(spread: float, *, steps: int = 200) -> list[list[float]]:
    return list(barrier._factors(3, spread, 128, steps))


def test_a_spread_moves_no_timeout_and_without_one_every_reward_is_the_usual_one():
    assert factors(0.0) == [[1.0] * 128] * 200
    params = {"seed": 5, "steps": 3, "timeout_rate": 0.3, "reward": 1.0, "deadline": 100.0, "scale": 0.0005}
    assert measured(**params)["timeouts"] == measured(**params, spread=0.5)["timeouts"] > 0


def test_the_factors_of_two_spreads_are_powers_of_one_another():
    assert [each**2 for each in factors(0.5)[0]] == pytest.approx(factors(1.0)[0])


@pytest.mark.parametrize("spread", [0.5, 1.0])
def test_the_slowest_of_a_step_follows_the_law_that_the_models_have(spread):
    """The greatest gap to the law is below 1.95 / sqrt(n) in all but one of a thousand draws (Kolmogorov)."""
    law = {"reward": 2.0, "deadline": 1e9, "spread": spread}
    slowest = sorted(2.0 * max(step) for step in factors(spread))
    expected = wait_cdf(slowest, 0.0, 128, **law)
    gaps = [abs(below - (rank + 0.5) / 200) for rank, below in enumerate(expected)]
    assert max(gaps) < 1.95 / math.sqrt(200)


@pytest.mark.parametrize("spread", [1e9, 1e308])
def test_what_a_spread_puts_beyond_the_deadline_times_out_there(spread):
    """Spreads so wide that nothing ends near the deadline, where the machine would have a say."""
    values = measured(steps=3, reward=2.0, deadline=8.0, spread=spread, generation=4.0, training=2.0)
    beyond = [[2.0 * factor > 8.0 for factor in step] for step in barrier._factors(1, spread, 8, 3)]
    assert values["timeouts"] == sum(map(sum, beyond))
    assert values["hit_steps"] == sum(map(any, beyond))
    assert values["modelled_idle"] <= 3 * 8.0 * SCALE + 1e-9
    assert 0 <= values["step"] - values["modelled"] < LATE


def test_one_timeout_in_a_hundred_hits_seven_steps_in_ten():
    """1 - 0.99 ** 128 = 0.724; 2000 steps have a standard error of 0.01."""
    share = sum(map(any, draws(0.01, steps=2000))) / 2000
    assert share == pytest.approx(1 - 0.99**128, abs=0.04)
