"""What the models of the barrier say of the very draws that a real run was given."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pytest_prereg.measure.workloads.barrier_models import (
    batch_waits,
    efficiency,
    grouped_steps,
    pool_makespans,
    stale_makespan,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_prereg.measure.workloads.barrier_settings import Setting
    from pytest_prereg.measure.workloads.models.blocks import Array

__all__ = ["efficiency", "expected_step"]

WORKLOAD_VERSION = "1"


def expected_step(setting: Setting, rewards: Sequence[Sequence[float]]) -> float:
    """Return the seconds that all steps take with these durations [steps][completions].

    What the deadline cuts off counts as the deadline; what the machine adds counts as nothing.
    """
    durations = np.minimum(np.asarray(rewards, dtype=np.float64), setting.deadline)
    if not setting.grouped and not setting.staleness:
        return float(_batch_wide(setting, durations).sum())
    if setting.cold:  # without a limit, and with a worker for each, a creation is as good as a longer reward
        durations += setting.creation
    if setting.grouped:
        steps = grouped_steps(
            durations, group=setting.group, generation=setting.generation, training=setting.training
        )
        return float(steps.sum())
    makespan = stale_makespan(
        batch_waits(durations)[None, :],
        staleness=setting.staleness,
        generation=setting.generation,
        training=setting.training,
    )
    return float(makespan[0])


def _batch_wide(setting: Setting, durations: Array) -> Array:
    waits = pool_makespans(
        durations,
        workers=setting.at_once,
        creation=setting.creation,
        rate=setting.rate or None,
        warm=not setting.cold,
    )
    return waits + (setting.generation + setting.training)
