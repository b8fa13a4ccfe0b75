"""The built-in ``reward_barrier``: how long a GRPO step waits for the slowest of its rewards, run for real.

A pool of warm forked workers takes one completion each. Most take the usual time; a few never end, and the
step waits for them until the deadline kills them. Only the waiting is measured. The time for which a
trainer would be busy between two waits is *stated*: nothing runs in it that could change a wait, so
sleeping through it would add minutes and no information.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

from pytest_prereg.measure.experiment import experiment
from pytest_prereg.measure.workloads.warm_pool import FOREVER, WarmPool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.measure.repeat import Repeat

WORKLOAD_VERSION = "1"


@experiment(
    metrics={
        "wait": "s",
        "idle": "s",
        "busy": "s",
        "step": "s",
        "steps": {"unit": "step", "exact": True},
        "hit_steps": {"unit": "step", "exact": True},
        "timeouts": {"unit": "1", "exact": True},
    },
)
def reward_barrier(
    repeat: Repeat,
    *,
    timeout_rate: float = 0.0,
    completions: int = 128,
    steps: int = 5,
    scale: float = 0.05,
    busy: float = 24.67,
    reward: float = 2.0,
    deadline: float = 30.0,
) -> None:
    """Wait ``steps`` times at the barrier of a whole batch; times are given unscaled and run at ``scale``.

    ``wait`` has one sample per step, from handing out the batch until the last answer is in or cut off.
    ``idle`` is their sum, ``busy`` what is stated for all steps, ``step`` both together, so that ``idle /
    step`` is the share of the repeat in which the accelerator idles. ``hit_steps`` counts the steps with at
    least one timeout. The arms of a block share their draws: what times out at a low rate does so at a
    higher one.
    """
    waits: list[float] = []
    cuts: list[int] = []
    with WarmPool(completions) as pool:
        for slow in _slow_completions(repeat.seed, timeout_rate, completions, steps):
            durations = [FOREVER if never_ends else reward * scale for never_ends in slow]
            with repeat.timer("wait"):
                passed = pool.barrier(durations, deadline=deadline * scale)
            waits.append(passed.seconds)
            cuts.append(passed.cut)
            pool.refill()  # between steps: a pool replaces its dead while the trainer is busy

    idle = math.fsum(waits)
    repeat.record("idle", idle)
    repeat.record("busy", busy * scale * steps)
    repeat.record("step", idle + busy * scale * steps)
    repeat.record("steps", steps)
    repeat.record("hit_steps", sum(cut > 0 for cut in cuts))
    repeat.record("timeouts", sum(cuts))


def _slow_completions(seed: int, rate: float, completions: int, steps: int) -> Iterator[list[bool]]:
    """Yield, per step, which of its completions never end: each with probability ``rate`` on its own."""
    generator = random.Random(seed)  # noqa: S311  # a reproducible draw, not a secret
    for _ in range(steps):
        yield [generator.random() < rate for _ in range(completions)]
