"""What one accelerator does around its rewards: train after the whole batch, group by group, or a step late.

Each schedule runs on a pool in real time and says what passed. Times are in seconds, as they are to be run.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_prereg.measure.workloads.reward_pool import Batch, RewardPool

WORKLOAD_VERSION = "1"


@dataclass(frozen=True, kw_only=True)
class Load:
    """What the steps of a run consist of, in seconds.

    ``rewards`` has the durations of each step's programs, each killed ``deadline`` after its start;
    ``generation`` and ``training`` are what the accelerator takes for a step.
    """

    rewards: Sequence[Sequence[float]]
    deadline: float
    generation: float
    training: float


@dataclass(frozen=True, kw_only=True)
class Course:
    """What passed while a load was run, in seconds."""

    waits: list[float]
    """By step, for how long the accelerator stood still until it had trained the step."""
    busy: float
    cuts: list[int]
    """By step, how many rewards the deadline cut off."""
    in_flight: float
    """For how long at least one reward was awaited."""

    @property
    def idle(self) -> float:
        """For how long the accelerator stood still, all steps together."""
        return math.fsum(self.waits)


def run_batch_wide(pool: RewardPool, load: Load) -> Course:
    """Wait for all rewards of a step, step after step; what the accelerator does in between is stated.

    Nothing runs beside a wait here that a sleep could be long enough for or too short for: spending it would
    add minutes and no information. The pool replaces its dead in that time, as it would.
    """
    batches = []
    waits = []
    for durations in load.rewards:
        began = monotonic()
        batch = pool.submit(durations, deadline=load.deadline)
        pool.wait(batch)
        waits.append(monotonic() - began)
        batches.append(batch)
        pool.refill()
    return Course(
        waits=waits,
        busy=(load.generation + load.training) * len(waits),
        cuts=[batch.cut for batch in batches],
        in_flight=seconds_in_flight(batches),
    )


def run_grouped(pool: RewardPool, load: Load, *, group: int) -> Course:
    """Train each ``group`` of a step's completions once its own rewards are in, first in, first trained."""
    accelerator = Accelerator(pool)
    steps = []
    for durations in load.rewards:
        accelerator.work(load.generation)
        groups = [
            pool.submit(durations[first : first + group], deadline=load.deadline)
            for first in range(0, len(durations), group)
        ]
        awaited = list(groups)
        while awaited:
            for ready in pool.wait_any(awaited):
                accelerator.work(load.training / len(groups))
                awaited.remove(ready)
        accelerator.end_step()
        steps.append(groups)
    return Course(
        waits=accelerator.waits,
        busy=accelerator.busy,
        cuts=[sum(batch.cut for batch in groups) for groups in steps],
        in_flight=seconds_in_flight(batch for groups in steps for batch in groups),
    )


def run_stale(pool: RewardPool, load: Load, *, staleness: int) -> Course:
    """Generate up to ``staleness`` steps ahead of the step that waits to be trained.

    The accelerator trains the oldest step if its rewards are in; else it generates the next one if that is
    not too far ahead; else it waits for the oldest.
    """
    accelerator = Accelerator(pool)
    batches: list[Batch] = []
    yet_to_train: deque[Batch] = deque()
    while len(accelerator.waits) < len(load.rewards):
        if yet_to_train and yet_to_train[0].done:
            accelerator.work(load.training)
            accelerator.end_step()
            yet_to_train.popleft()
        elif len(batches) < len(load.rewards) and len(yet_to_train) <= staleness:
            accelerator.work(load.generation)
            batches.append(pool.submit(load.rewards[len(batches)], deadline=load.deadline))
            yet_to_train.append(batches[-1])
        else:
            pool.wait(yet_to_train[0])
    return Course(
        waits=accelerator.waits,
        busy=accelerator.busy,
        cuts=[batch.cut for batch in batches],
        in_flight=seconds_in_flight(batches),
    )


class Accelerator:
    """One server that generates and trains, here by sleeping; the pool goes on meanwhile."""

    def __init__(self, pool: RewardPool) -> None:
        self.busy = 0.0
        """Seconds spent working, as measured."""
        self.waits: list[float] = []
        """By step, the seconds since the step before that were not spent working."""
        self._pool = pool
        self._began = monotonic()

    def work(self, seconds: float) -> None:
        """Be busy for ``seconds``."""
        began = monotonic()
        self._pool.serve(began + seconds)
        self.busy += monotonic() - began

    def end_step(self) -> None:
        """Note that a step has been trained."""
        still = monotonic() - self._began - self.busy
        self.waits.append(still - math.fsum(self.waits))


def seconds_in_flight(batches: Iterable[Batch]) -> float:
    """Return for how many seconds at least one of the batches, all done, was awaited."""
    total, covered = 0.0, -math.inf
    for batch in sorted(batches, key=lambda batch: batch.submitted):
        total += max(0.0, batch.ended - max(batch.submitted, covered))
        covered = max(covered, batch.ended)
    return total
