"""The warm pool, its barrier, and the reward_barrier fixture, with real processes."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from pytest_prereg import Repeat
from pytest_prereg.measure.workloads import barrier
from pytest_prereg.measure.workloads.barrier import reward_barrier
from pytest_prereg.measure.workloads.warm_pool import FOREVER, WarmPool


def children() -> set[int]:
    return {int(child) for child in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}


def measured(seed: int = 1, **params) -> dict:
    repeat = Repeat(metrics=reward_barrier.metrics, seed=seed)
    reward_barrier(repeat, completions=8, **params)
    readings = repeat.readings()
    assert readings.problems == []
    return readings.values


def test_a_barrier_lasts_as_long_as_its_slowest_program():
    with WarmPool(4) as pool:
        passed = pool.barrier([0.01, 0.01, 0.3, 0.01], deadline=10)
    assert passed.cut == 0
    assert 0.3 <= passed.seconds < 1.5


def test_equal_programs_run_at_the_same_time():
    with WarmPool(16) as pool:
        assert pool.barrier([0.2] * 16, deadline=10).seconds < 16 * 0.2 / 2


def test_a_barrier_cuts_off_what_is_late_and_only_that():
    others = children()
    with WarmPool(4) as pool:
        before = children() - others
        passed = pool.barrier([0.0, FOREVER, 0.0, 60.0], deadline=0.5)
        assert passed.cut == 2
        assert 0.5 <= passed.seconds < 3
        assert len(children() & before) == 2


def test_a_refilled_pool_serves_the_next_step():
    with WarmPool(3) as pool:
        pool.barrier([FOREVER] * 3, deadline=0.1)
        pool.refill()
        assert pool.barrier([0.0] * 3, deadline=10).cut == 0


def test_a_pool_leaves_no_process_behind():
    before = children()
    with WarmPool(5) as pool:
        assert len(children() - before) == 5
        pool.barrier([0.0, FOREVER, 0.0, 0.0, 0.0], deadline=0.1)
    assert children() == before


def test_a_worker_that_dies_is_an_error_not_a_fast_answer():
    before = children()
    with WarmPool(2) as pool:
        os.kill(min(children() - before), signal.SIGTERM)
        with pytest.raises(ChildProcessError, match="died before it had answered"):
            pool.barrier([5.0, 5.0], deadline=10)


def test_workers_end_with_their_parent():
    """A parent that is killed can't clean up; its workers see their sockets close, hung ones too."""
    read, write = os.pipe()
    parent = os.fork()
    if parent == 0:
        try:
            os.close(read)
            pool = WarmPool(3).__enter__()
            os.write(write, b".")
            pool.barrier([FOREVER, FOREVER, 0.0], deadline=60)
        finally:
            os._exit(1)
    os.close(write)
    assert os.read(read, 1) == b"."
    time.sleep(0.1)
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    assert os.read(read, 1) == b""  # end of pipe: every worker that inherited it is gone
    os.close(read)


def test_without_timeouts_the_share_is_the_rewards_own():
    values = measured(steps=2, reward=2.0, scale=0.05)
    assert values["steps"] == 2
    assert values["hit_steps"] == values["timeouts"] == 0
    assert all(0.1 <= wait < 1.0 for wait in values["wait"])


def test_at_rate_one_every_step_waits_for_the_deadline():
    values = measured(steps=2, timeout_rate=1.0, deadline=6.0)
    assert values["hit_steps"] == 2
    assert values["timeouts"] == 16
    assert all(0.3 <= wait < 2.0 for wait in values["wait"])


def test_a_step_is_what_is_busy_and_what_is_idle():
    values = measured(steps=3, busy=10.0, scale=0.05)
    assert values["busy"] == pytest.approx(1.5)
    assert values["step"] == values["idle"] + values["busy"]
    # Two clocks, one around the other.
    assert values["idle"] == pytest.approx(sum(values["wait"]), rel=0.05)
    assert values["idle"] <= sum(values["wait"])


def draws(rate: float, *, seed: int = 3, steps: int = 200) -> list[list[bool]]:
    return list(barrier._slow_completions(seed, rate, 128, steps))


def test_the_draws_are_the_seeds_alone():
    assert draws(0.3) == draws(0.3)
    assert draws(0.3) != draws(0.3, seed=4)


def test_what_times_out_at_a_low_rate_does_so_at_a_higher_one():
    low, high = draws(0.01), draws(0.1)
    assert all(b for one, ten in zip(low, high, strict=True) for a, b in zip(one, ten, strict=True) if a)
    assert sum(map(sum, low)) < sum(map(sum, high))


def test_one_timeout_in_a_hundred_hits_seven_steps_in_ten():
    """1 - 0.99 ** 128 = 0.724; 2000 steps have a standard error of 0.01."""
    share = sum(map(any, draws(0.01, steps=2000))) / 2000
    assert share == pytest.approx(1 - 0.99**128, abs=0.04)
