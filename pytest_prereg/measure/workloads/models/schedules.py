"""How long steps take on given durations of rewards: whole batch, per group, stale, and on a pool.

Deterministic, and vectorised over steps or replicas. Each is what an event simulation that takes one event
at a time would give; what each assumes and which orderings hold is in the documentation.
"""

from __future__ import annotations

import numpy as np

from pytest_prereg.measure.workloads.models.blocks import Array, blocks, checked
from pytest_prereg.measure.workloads.models.checks import MOST, check_amount, check_count, check_seconds

WORKLOAD_VERSION = "1"

_ROUNDING = 1e-6
"""By how much measured work may exceed what workers can have done: clocks are read one after another."""


def batch_waits(durations: Array) -> Array:
    """Return the seconds that each step waits for all of its rewards, [steps]: its slowest.

    Raises:
        ValueError: A duration is negative or not finite, or a step has none.
    """
    waits: Array = checked(durations, "durations").max(axis=1)
    return waits


def grouped_steps(durations: Array, *, group: int, generation: float, training: float) -> Array:
    """Return the seconds of steps whose groups train as soon as their own slowest reward is in, [steps].

    All completions are generated first. One accelerator then serves the groups as they become ready, each
    for ``training / groups``. Such a queue ends with the group from which on it never idled, so the
    recursion over the groups in order of readiness is a maximum: of each one's readiness plus the
    training of all that are not earlier.

    Raises:
        ValueError: ``group`` does not divide the completions, or a time is negative or not finite.
    """
    durations = checked(durations, "durations")
    check_count(group=group)
    check_seconds(generation=generation, training=training)
    steps, completions = durations.shape
    if completions % group:
        raise ValueError(f"groups of {group} do not divide {completions} completions: give a divisor")
    groups = completions // group
    yet_to_train = training * (np.arange(groups, 0, -1) / groups)
    after_generation = np.empty(steps)
    for block in blocks(steps, completions):
        ready = np.sort(_group_maxima(durations[block], group), axis=1)
        after_generation[block] = (ready + yet_to_train).max(axis=1)
    return generation + after_generation


def stale_makespan(waits: Array, *, staleness: int, generation: float, training: float) -> Array:
    """Return the seconds in which one accelerator generates and trains all steps, [replicas].

    ``waits`` [replicas, steps] are those of each step for its rewards, which start when its generation
    ends. The accelerator trains the oldest open step if its rewards are in; else it generates the next
    one while at most ``staleness`` are open; else it waits for the oldest. Steps train in order. The
    first generation and the last wait count, so this is a whole run and no steady state.

    Raises:
        ValueError: ``staleness`` is negative, or a time is negative or not finite.
    """
    waits = checked(waits, "waits")
    check_count(least=0, staleness=staleness)
    check_seconds(generation=generation, training=training)
    replicas, steps = waits.shape
    now = np.zeros(replicas)
    generated = np.zeros(replicas, dtype=np.intp)
    trained = np.zeros(replicas, dtype=np.intp)
    ready = np.full((replicas, steps + 1), np.inf)
    of_waits, of_ready = np.arange(replicas) * steps, np.arange(replicas) * (steps + 1)
    for _ in range(2 * steps):  # each replica generates or trains in every round, waiting beforehand or not
        oldest = ready.ravel()[of_ready + trained]
        generates = (oldest > now) & (generated < np.minimum(trained + staleness + 1, steps))
        now = np.where(generates, now + generation, np.maximum(now, oldest) + training)
        rewards_in = now + waits.ravel().take(of_waits + generated, mode="clip")
        ready.ravel()[of_ready + generated] = np.where(generates, rewards_in, np.inf)
        generated += generates
        trained += ~generates
    return now


def pool_makespans(
    durations: Array, *, workers: int, creation: float = 0.0, rate: float | None = None, warm: bool = True
) -> Array:
    """Return the seconds in which ``workers`` slots run the completions of each step, [steps].

    List scheduling: in order, each on the slot that is free first. On a cold pool (not ``warm``) a
    completion needs a sandbox of its own on its slot: it waits until one may be created, ``1 / rate``
    seconds after the one before, in order, and then ``creation`` seconds. A warm pool pays neither.

    Raises:
        ValueError: There is no worker, ``rate`` is not positive, or a time is negative or not finite.
    """
    durations = checked(durations, "durations")
    check_count(workers=workers)
    check_seconds(creation=creation)
    gap = 0.0 if rate is None else _seconds_between(rate)
    if warm:
        creation = gap = 0.0
    makespans = np.empty(len(durations))
    for block in blocks(len(durations), min(durations.shape[1], workers)):
        makespans[block] = _list_schedule(durations[block] + creation, workers, gap)
    return makespans


def efficiency(work: float | Array, workers: int, makespan: float | Array) -> Array:
    """Return η = work ÷ (workers × makespan), in the shape of the seconds given: the busy share of a pool.

    Raises:
        ValueError: There is no worker, a makespan is not positive, or the work is negative, not finite or
            more than so many workers can do by then.
    """
    check_count(workers=workers)
    work, makespan = np.asarray(work, dtype=np.float64), np.asarray(makespan, dtype=np.float64)
    if not np.all((makespan > 0) & (makespan <= MOST)):
        raise ValueError(f"a makespan of {makespan} s: give one above 0, and finite")
    if not np.all((work >= 0) & (work <= workers * makespan * (1 + _ROUNDING))):
        raise ValueError(
            f"work of {work} s: {workers} workers do between none and {workers * makespan} s of it by then"
        )
    return np.asarray(work / (workers * makespan))


def _seconds_between(rate: float) -> float:
    """Seconds from one creation to the next."""
    check_amount(rate=rate)
    if rate < 1 / MOST:
        raise ValueError(f"rate = {rate!r} creations a second: give a positive one, or None for no limit")
    return 1 / rate


def _group_maxima(durations: Array, group: int) -> Array:
    """Return the slowest of each group, [steps, groups].

    Halving works on one long axis; numpy's maximum over a short last axis takes five times as long.
    """
    found = durations.reshape(-1)
    while group % 2 == 0:
        found = np.maximum(found[::2], found[1::2])
        group //= 2
    return (
        found.reshape(len(durations), -1, group).max(axis=2)
        if group > 1
        else found.reshape(len(durations), -1)
    )


def _list_schedule(durations: Array, workers: int, gap: float) -> Array:
    """Return makespans [steps] where starts are at least ``gap`` apart."""
    if workers >= durations.shape[1]:
        ends: Array = (durations + np.arange(durations.shape[1]) * gap).max(axis=1)
        return ends
    jobs = np.ascontiguousarray(durations.T)
    starts = np.arange(workers) * gap
    free = np.ascontiguousarray((jobs[:workers] + starts[:, None]).T)
    slots = free.reshape(-1)
    rows = np.arange(len(free)) * workers
    last = np.full(len(free), starts[-1])
    for job in jobs[workers:]:
        earliest = rows + free.argmin(axis=1)
        last = np.maximum(slots[earliest], last + gap)
        slots[earliest] = last + job
    makespans: Array = free.max(axis=1)
    return makespans
