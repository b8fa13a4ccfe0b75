"""Seconds of one core for 10⁶ steps of 128 completions in the models of the barrier.

Scaled from fewer steps. With the draws, but for pools and runs, which are given theirs.
"""

from __future__ import annotations

import heapq
import os
import random
import statistics
import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from table import Row

from pytest_prereg.measure.workloads.barrier_models import (
    batch_waits,
    draw_durations,
    draw_maxima,
    grouped_steps,
    pool_makespans,
    simulate,
    stale_makespan,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROUNDS = 5
STEPS = 100_000
PLAIN_STEPS = 1_000
COMPLETIONS = 128
GROUP = 8
WORKERS = 64
RUN = 40
REWARD, DEADLINE = 2.0, 30.0
TIMES = {"generation": 12.47, "training": 12.20}
LAW = {"reward": REWARD, "deadline": DEADLINE}


def rows() -> list[Row]:
    """Each with the plain way, and where there is one with numpy on all steps at once."""
    with one_core():
        return [*batches(), *groups(), *pools(), *runs()]


def batches() -> Iterator[Row]:
    for rate in (0.01, 0.5):
        ours = seconds(partial(simulated, batch_waits, rate), STEPS)
        what = f"batch, rate {rate:g}"
        loop = seconds(partial(plain_waits, rate), PLAIN_STEPS)
        yield Row(what=what, ours=ours, other=loop, against="in a loop", limit=1.0)
        at_once = seconds(partial(unchunked_waits, rate, 0.0), STEPS)
        yield Row(what=what, ours=ours, other=at_once, against="numpy, all at once", limit=1.0)
    ours = seconds(partial(simulated, batch_waits, 0.01, spread=0.5), STEPS)
    other = seconds(partial(unchunked_waits, 0.01, 0.5), STEPS)
    yield Row(what="batch, rate 0.01, spread 0.5", ours=ours, other=other, against="numpy, all at once")
    ours = seconds(
        lambda: draw_maxima(generator(), STEPS, COMPLETIONS, timeout_rate=0.01, spread=0.5, **LAW), STEPS
    )
    yield Row(what="the same, maxima alone", ours=ours, other=other, against="numpy, all at once")


def groups() -> Iterator[Row]:
    ours = seconds(partial(simulated, partial(grouped_steps, group=GROUP, **TIMES), 0.01), STEPS)
    loop = seconds(plain_groups, PLAIN_STEPS)
    yield Row(what=f"groups of {GROUP}, rate 0.01", ours=ours, other=loop, against="in a loop")
    at_once = seconds(unchunked_groups, STEPS)
    yield Row(what="the same", ours=ours, other=at_once, against="numpy, all at once")


def pools() -> Iterator[Row]:
    """Without the draws, which are the same for both."""
    durations = draw_durations(generator(), 20_000, COMPLETIONS, timeout_rate=0.01, spread=0.5, **LAW)
    for workers in (8, WORKERS, COMPLETIONS):
        ours = seconds(partial(pool_makespans, durations, workers=workers), len(durations))
        few = durations[:PLAIN_STEPS]
        other = seconds(partial(plain_pools, few, workers), len(few))
        yield Row(what=f"pool of {workers}", ours=ours, other=other, against="a heap for each")


def runs() -> Iterator[Row]:
    """Runs of 40 steps, on given waits."""
    waits = draw_maxima(generator(), (STEPS // RUN, RUN), COMPLETIONS, timeout_rate=0.01, **LAW)
    ours = seconds(partial(stale_makespan, waits, staleness=2, **TIMES), waits.size)
    few = waits[:100]
    other = seconds(partial(plain_runs, few, 2), few.size)
    yield Row(what=f"runs of {RUN} steps, staleness 2", ours=ours, other=other, against="in a loop")


@contextmanager
def one_core() -> Iterator[None]:
    """Whatever threads a library would start share one core."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def seconds(action: Callable[[], object], steps: int) -> float:
    """Processor time for a million steps, the median of some rounds."""
    taken = []
    for _ in range(ROUNDS):
        began = time.process_time()
        action()
        taken.append(time.process_time() - began)
    return statistics.median(taken) * 1e6 / steps


def generator() -> np.random.Generator:
    return np.random.default_rng(1)


def simulated(model: Callable, rate: float, spread: float = 0.0) -> np.ndarray:
    return simulate(model, generator(), STEPS, COMPLETIONS, timeout_rate=rate, spread=spread, **LAW)


def unchunked_draws(rate: float, spread: float) -> np.ndarray:
    drawn = generator()
    shape = (STEPS, COMPLETIONS)
    if spread:
        factors = np.exp(spread * drawn.standard_normal(shape))
        durations = np.minimum(REWARD * factors, DEADLINE)
    else:
        durations = np.full(shape, REWARD)
    durations[drawn.random(shape) < rate] = DEADLINE
    return durations


def unchunked_waits(rate: float, spread: float) -> np.ndarray:
    return unchunked_draws(rate, spread).max(axis=1)


def unchunked_groups() -> np.ndarray:
    ready = np.sort(unchunked_draws(0.01, 0.0).reshape(STEPS, -1, GROUP).max(axis=2), axis=1)
    free = np.zeros(STEPS)
    for each in ready.T:
        free = np.maximum(free, each) + TIMES["training"] * GROUP / COMPLETIONS
    return TIMES["generation"] + free


def plain_step(drawn: random.Random, rate: float) -> list[float]:
    return [DEADLINE if drawn.random() < rate else REWARD for _ in range(COMPLETIONS)]


def plain_waits(rate: float) -> list[float]:
    drawn = random.Random(1)
    return [max(plain_step(drawn, rate)) for _ in range(PLAIN_STEPS)]


def plain_groups() -> list[float]:
    drawn, steps = random.Random(1), []
    for _ in range(PLAIN_STEPS):
        durations = plain_step(drawn, 0.01)
        free = 0.0
        for ready in sorted(max(durations[at : at + GROUP]) for at in range(0, COMPLETIONS, GROUP)):
            free = max(free, ready) + TIMES["training"] * GROUP / COMPLETIONS
        steps.append(TIMES["generation"] + free)
    return steps


def plain_pools(durations: np.ndarray, workers: int) -> list[float]:
    makespans = []
    for row in durations.tolist():
        free = row[:workers]
        heapq.heapify(free)
        for duration in row[workers:]:
            heapq.heapreplace(free, free[0] + duration)
        makespans.append(max(free))
    return makespans


def plain_runs(waits: np.ndarray, staleness: int) -> list[float]:
    return [plain_run(row, staleness) for row in waits.tolist()]


def plain_run(waits: list[float], staleness: int) -> float:
    now, trained, ready = 0.0, 0, []
    while trained < len(waits):
        if trained < len(ready) and ready[trained] <= now:
            now += TIMES["training"]
            trained += 1
        elif len(ready) < len(waits) and len(ready) - trained <= staleness:
            now += TIMES["generation"]
            ready.append(now + waits[len(ready)])
        else:
            now = ready[trained]
    return now
