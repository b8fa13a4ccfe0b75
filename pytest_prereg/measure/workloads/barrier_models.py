"""Models of the reward barrier, to predict what the real runs of ``reward_barrier`` will show.

A GRPO step generates completions on the accelerator, waits for the reward of each, and trains. Exact where
there is a closed form, vectorised numpy otherwise; every one is checked against an event simulation.
"""

from __future__ import annotations

from pytest_prereg.measure.workloads.models.costs import (
    BatchCost,
    IdleShares,
    batch_cost,
    expected_grouped_step,
    idle_shares,
    median_hit_probability,
)
from pytest_prereg.measure.workloads.models.draws import draw_durations, draw_maxima, simulate
from pytest_prereg.measure.workloads.models.laws import (
    expected_wait,
    hit_probability,
    knee,
    mean_over_waits,
    wait_cdf,
    wait_quantile,
)
from pytest_prereg.measure.workloads.models.schedules import (
    batch_waits,
    efficiency,
    grouped_steps,
    pool_makespans,
    stale_makespan,
)

WORKLOAD_VERSION = "1"

__all__ = [
    "BatchCost",
    "IdleShares",
    "batch_cost",
    "batch_waits",
    "draw_durations",
    "draw_maxima",
    "efficiency",
    "expected_grouped_step",
    "expected_wait",
    "grouped_steps",
    "hit_probability",
    "idle_shares",
    "knee",
    "mean_over_waits",
    "median_hit_probability",
    "pool_makespans",
    "simulate",
    "stale_makespan",
    "wait_cdf",
    "wait_quantile",
]
