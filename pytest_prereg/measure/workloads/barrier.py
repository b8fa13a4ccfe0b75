"""The built-in ``reward_barrier``: how long a GRPO step waits for its rewards, run for real at a time scale.

A pool of really forked workers runs one program per completion. Most take the usual time; a few never end,
and are waited for until their deadline kills them. What the models say of the same draws is recorded beside
what was measured; they know nothing of what this machine adds.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

from pytest_prereg.measure.experiment import experiment
from pytest_prereg.measure.instruments.wall_clock import NAME as WALL_CLOCK
from pytest_prereg.measure.workloads.barrier_schedules import Load, run_batch_wide, run_grouped, run_stale
from pytest_prereg.measure.workloads.barrier_settings import Setting
from pytest_prereg.measure.workloads.reward_pool import FOREVER, RewardPool

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_prereg.measure.repeat import Repeat
    from pytest_prereg.measure.workloads.barrier_schedules import Course

WORKLOAD_VERSION = "2"

_MOST_LOG = 700.0
"""Of a factor; its exponential is still a float."""


@experiment(
    metrics={
        "wait": "s",
        "idle": "s",
        "busy": "s",
        "step": "s",
        "modelled": "s",
        "modelled_idle": "s",
        "eta": "1",
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
    generation: float = 12.47,
    training: float = 12.20,
    reward: float = 2.0,
    deadline: float = 30.0,
    spread: float = 0.0,
    barrier: str = "batch",
    group: int = 8,
    staleness: int = 0,
    pool: str = "warm",
    workers: int = 0,
    creation: float = 0.363,
    rate: float = 0.0,
) -> None:
    """Generate, wait for the rewards, train, ``steps`` times; times are given unscaled and run at ``scale``.

    A reward takes ``reward`` seconds, times a log-normal factor of median 1 whose logarithm has ``spread`` as
    its standard deviation; what would take longer than ``deadline`` times out as well.

    With ``barrier = "batch"`` a step trains when all its rewards are in, with ``"group"`` each ``group`` of
    completions does when its own are. With a ``staleness`` above 0 up to that many steps are generated
    ahead. At most ``workers`` programs run at a time, or all that can be in flight if 0. In a ``"cold"`` pool
    each needs a process of its own, which takes ``creation`` seconds, and of which at most ``rate`` a second
    are begun, or any number if 0.

    ``wait`` has one sample per step: for how long the accelerator stood still before the step was trained.
    ``idle`` is their sum, ``busy`` what the accelerator worked in all steps, ``step`` both together, so that
    ``idle / step`` is the share of the repeat in which it idles. Where a whole batch is awaited and nothing
    generated ahead, nothing runs beside the wait, so ``busy`` is stated and not spent; otherwise the
    accelerator's work is slept through, and measured. ``modelled`` is what the model gives for ``step``, and
    ``modelled_idle`` for ``idle``. ``eta`` is the rewards' work / (workers x time in which any was awaited).
    ``hit_steps`` counts the steps with at least one timeout. The arms of a block share their draws: what
    times out at a low rate does so at a higher one, and what is slow at a small spread is slower at a
    larger one.

    Raises:
        ValueError: A parameter, or two of them together, can't be run; the message says what to write.
    """
    setting = Setting(
        timeout_rate=timeout_rate,
        completions=completions,
        steps=steps,
        scale=scale,
        generation=generation,
        training=training,
        reward=reward,
        deadline=deadline,
        spread=spread,
        barrier=barrier,
        group=group,
        staleness=staleness,
        pool=pool,
        workers=workers,
        creation=creation,
        rate=rate,
    ).scaled()
    rewards = list(_durations(repeat.seed, setting))
    course = _run(setting, rewards)
    _record_measured(repeat, setting, course)
    _record_modelled(repeat, setting, rewards, course)


def _run(setting: Setting, rewards: Sequence[Sequence[float]]) -> Course:
    load = Load(
        rewards=rewards,
        deadline=setting.deadline,
        generation=setting.generation,
        training=setting.training,
    )
    with RewardPool(
        setting.at_once, warm=not setting.cold, creation=setting.creation, rate=setting.rate or None
    ) as pool:
        if setting.grouped:
            return run_grouped(pool, load, group=setting.group)
        if setting.staleness:
            return run_stale(pool, load, staleness=setting.staleness)
        return run_batch_wide(pool, load)


def _record_measured(repeat: Repeat, setting: Setting, course: Course) -> None:
    clock = repeat._taken_by(WALL_CLOCK)  # noqa: SLF001
    clock.record("wait", course.waits)
    clock.record("idle", course.idle)
    # Stated, no clock read it; of the step it is what cannot vary, and the rest is the clock's.
    (clock if setting.grouped or setting.staleness else repeat).record("busy", course.busy)
    clock.record("step", course.idle + course.busy)
    repeat.record("steps", len(course.waits))
    repeat.record("hit_steps", sum(cut > 0 for cut in course.cuts))
    repeat.record("timeouts", sum(course.cuts))


def _record_modelled(
    repeat: Repeat, setting: Setting, rewards: Sequence[Sequence[float]], course: Course
) -> None:
    # Only now: numpy would make every fork of the pool dearer.
    from pytest_prereg.measure.workloads.barrier_expectation import (  # noqa: PLC0415
        efficiency,
        expected_step,
    )

    step = expected_step(setting, rewards)
    work = math.fsum(min(duration, setting.deadline) for durations in rewards for duration in durations)
    repeat.record("modelled", step)
    repeat.record("modelled_idle", step - (setting.generation + setting.training) * setting.steps)
    repeat.record("eta", efficiency(work, setting.at_once, course.in_flight))


def _durations(seed: int, setting: Setting) -> Iterator[list[float]]:
    """Yield, per step, what each completion's program takes; `FOREVER` where that is beyond its deadline."""
    shape = (setting.completions, setting.steps)
    slow = _slow_completions(seed, setting.timeout_rate, *shape)
    for never_ends, factors in zip(slow, _factors(seed, setting.spread, *shape), strict=True):
        usual = [setting.reward * factor for factor in factors]
        yield [
            FOREVER if late or seconds > setting.deadline else seconds
            for late, seconds in zip(never_ends, usual, strict=True)
        ]


def _slow_completions(seed: int, rate: float, completions: int, steps: int) -> Iterator[list[bool]]:
    """Yield, per step, which of its completions never end: each with probability ``rate`` on its own."""
    generator = random.Random(seed)  # noqa: S311  # a reproducible draw, not a secret
    for _ in range(steps):
        yield [generator.random() < rate for _ in range(completions)]


def _factors(seed: int, spread: float, completions: int, steps: int) -> Iterator[list[float]]:
    """Yield, per step, what the usual time of each completion is multiplied by; 1 without a spread.

    From a stream of their own, so that a spread moves no timeout.
    """
    generator = random.Random(f"factors {seed}")  # noqa: S311  # a reproducible draw, not a secret
    for _ in range(steps):
        yield [math.exp(min(spread * generator.gauss(0.0, 1.0), _MOST_LOG)) for _ in range(completions)]
