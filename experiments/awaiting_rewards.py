"""What the machine does while rewards are awaited: the share of its CPU time that nobody used."""

from __future__ import annotations

import hashlib
import os
import random
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING

from pytest_prereg import experiment
from pytest_prereg.measure.workloads.reward_pool import FOREVER, RewardPool

if TYPE_CHECKING:
    from pytest_prereg import Repeat

BLOCK = bytes(1 << 17)
"""What is hashed between two looks at the clock: a fraction of a millisecond."""


@experiment(
    metrics={
        "wait": "s",
        "whole": "s",
        "own": {"unit": "1", "instrument": "process-times"},
        "others": {"unit": "1", "instrument": "host-load"},
    },
)
def awaiting_rewards(
    repeat: Repeat,
    *,
    works: bool = True,
    timeout_rate: float = 0.1,
    completions: int = 128,
    steps: int = 4,
    scale: float = 0.02,
    busy: float = 24.67,
    reward: float = 2.0,
    deadline: float = 30.0,
) -> None:
    """Work for ``busy`` seconds, then await ``completions`` rewards, ``steps`` times; all times at ``scale``.

    Rewards are those of ``reward_barrier``: most take ``reward`` seconds, one in ``1 / timeout_rate`` never
    ends and is killed at its ``deadline``, and a warm worker of its own runs each. The work keeps every core
    busy that this process may use; without ``works`` it is left out, as ``reward_barrier`` does.

    ``wait`` has one sample per step, ``whole`` is all steps together. ``own`` is the share of the machine's
    CPU time that this process and all that descends from it had, ``others`` that of everybody else; what is
    left was idle.
    """
    draw = random.Random(repeat.seed)  # noqa: S311  # a reproducible draw, not a secret
    window = repeat.instrument("host-load").window("others")
    with RewardPool(completions) as pool, window, repeat.timer("whole"):
        began = monotonic()
        for _ in range(steps):
            durations = [
                FOREVER if draw.random() < timeout_rate else scale * reward for _ in range(completions)
            ]
            spend(pool, scale * busy if works else 0.0)
            with repeat.timer("wait"):
                pool.wait(pool.submit(durations, deadline=scale * deadline))
        seconds = monotonic() - began
    if window.reading is not None:
        told = window.reading.details
        repeat.instrument("process-times").record("own", told["own"] / (told["cores"] * seconds))


def spend(pool: RewardPool, seconds: float) -> None:
    """Keep every core at work for ``seconds``, the replacement of what was killed in the pool included."""
    until = monotonic() + seconds
    pool.refill()
    threads = [Thread(target=work, args=(until,)) for _ in os.sched_getaffinity(0)]
    for thread in threads:
        thread.start()
    for thread in threads:  # before anything is forked beside them
        thread.join()


def work(until: float) -> None:
    """Hash until the monotonic clock shows ``until``; other threads run meanwhile."""
    while monotonic() < until:
        hashlib.sha256(BLOCK)
