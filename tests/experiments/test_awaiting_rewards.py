"""What the machine does while rewards are awaited."""

from __future__ import annotations

import threading
import time

import pytest

from experiments.awaiting_rewards import awaiting_rewards, spend
from pytest_prereg import Repeat
from pytest_prereg.measure.workloads.reward_pool import FOREVER, RewardPool


@pytest.mark.parametrize("works", [False, True])
def test_a_repeat_records_all_that_it_declares(works):
    repeat = Repeat(metrics=awaiting_rewards.metrics, seed=3)
    awaiting_rewards(repeat, works=works, completions=8, steps=2, scale=0.01, busy=5.0)
    readings = repeat.readings()
    assert readings.problems == readings.missing == []
    assert len(readings.values["wait"]) == 2
    assert sum(readings.values["wait"]) <= readings.values["whole"]
    assert 0 <= readings.values["own"] <= 1
    assert readings.instruments["others"] == "host-load"


def test_work_lasts_as_long_as_it_is_asked_to_and_leaves_no_thread():
    before = threading.active_count()
    with RewardPool(2) as pool:
        pool.wait(pool.submit([FOREVER, 0.0], deadline=0.01))
        began, used = time.monotonic(), time.process_time()
        spend(pool, 0.2)
        assert time.monotonic() - began >= 0.2
        assert time.process_time() - used > 0.05
    assert threading.active_count() == before
