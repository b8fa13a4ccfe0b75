"""How long the union of ten million intervals takes, beside numpy's sort of them and what users would write.

Intervals come shuffled; as a profiler hands over the kernels of several streams, each when it has ended, so
that starts are nearly in order; and in order of their starts. Memory is the peak of what is allocated on top
of the intervals themselves. Where torch is installed, the way from its events to the reading follows, for a
hundred thousand of them.
"""

from __future__ import annotations

import importlib.util
import time
import tracemalloc
from typing import TYPE_CHECKING, Any

import numpy as np
from table import Row

from pytest_prereg.measure.instruments.kernel_intervals import operator_reading
from pytest_prereg.measure.instruments.occupancy import covered
from pytest_prereg.measure.instruments.torch_trace import Session, trace_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Times = NDArray[np.int64]
    Way = Callable[[Times, Times, int, int], int]

COUNT = 10_000_000
ROUNDS = 3
STREAMS = 4
WINDOW = 60 * 10**9
EVENTS = 100_000


def rows() -> list[Row]:
    """Fastest of some rounds, all ways in turns; the promise is made on numpy's sort."""
    found = []
    for order, (starts, ends) in {
        "shuffled": shuffled(),
        f"{STREAMS} streams as they end": streams(),
        "in order": in_order(),
    }.items():
        found += rows_of(order, starts, ends)
    if importlib.util.find_spec("torch") is not None:
        found += rows_of_events()
    return found


def rows_of(order: str, starts: Times, ends: Times) -> list[Row]:
    """One order of the intervals."""
    seconds = dict.fromkeys(WAYS, float("inf"))
    answers = {}
    for _ in range(ROUNDS):
        for name, way in WAYS.items():
            began = time.perf_counter()
            answers[name] = way(starts, ends, 0, WINDOW)
            seconds[name] = min(seconds[name], time.perf_counter() - began)
    assert len({answers[name] for name in (OURS, BY_HAND, GROUPED)}) == 1
    megabytes = {name: peak(way, starts, ends) for name, way in WAYS.items()}
    others = [name for name in WAYS if name != OURS]
    return [
        Row(
            what=f"{COUNT:.0e} intervals, {order}",
            ours=seconds[OURS],
            other=seconds[name],
            against=name,
            at_least=0.5 if name in (SORTED, STARTS_SORTED) and order == "shuffled" else None,
        )
        for name in others
    ] + [
        Row(what=f"{order}: memory", ours=megabytes[OURS], other=megabytes[name], against=name, unit="MB")
        for name in (SORTED, BY_HAND)
    ]


def peak(way: Way, starts: Times, ends: Times) -> float:
    """Megabytes that a way allocates at the most at a time."""
    tracemalloc.start()
    way(starts, ends, 0, WINDOW)
    _, highest = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return highest / 1e6


def shuffled() -> tuple[Times, Times]:
    """Kernels of some hundred microseconds at any time, in no order."""
    rng = np.random.default_rng(1)
    starts = rng.integers(0, WINDOW, COUNT)
    return starts, starts + rng.integers(1_000, 500_000, COUNT)


def streams() -> tuple[Times, Times]:
    """Kernels that follow each other on each of several streams, listed as they end."""
    rng = np.random.default_rng(2)
    parts = [one_stream(rng, COUNT // STREAMS) for _ in range(STREAMS)]
    starts, ends = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.argsort(ends)
    return starts[order], ends[order]


def one_stream(rng: np.random.Generator, count: int) -> tuple[Times, Times]:
    """Kernels and pauses in turns, over the whole window."""
    times = np.cumsum(rng.integers(100, WINDOW // count, 2 * count))
    return times[::2], times[1::2]


def in_order() -> tuple[Times, Times]:
    """The same by their starts."""
    starts, ends = streams()
    order = np.argsort(starts)
    return starts[order], ends[order]


def by_hand(starts: Times, ends: Times, low: int, high: int) -> int:
    """What a user would write who knows numpy."""
    order = np.argsort(starts)
    starts, ends = starts[order].clip(low, high), ends[order].clip(low, high)
    reached = np.maximum.accumulate(np.concatenate([[low], ends]))
    return int(high - low - (starts - reached[:-1]).clip(0).sum() - (high - reached[-1]))


def grouped(starts: Times, ends: Times, low: int, high: int) -> int:
    """As HolisticTraceAnalysis merges kernels, without its data frames: number the groups, reduce each."""
    order = np.argsort(starts)
    starts, ends = starts[order].clip(low, high), ends[order].clip(low, high)
    new = starts[1:] > np.maximum.accumulate(ends)[:-1]
    firsts = np.concatenate([[0], np.flatnonzero(new) + 1])
    return int((np.maximum.reduceat(ends, firsts) - starts[firsts]).sum())


OURS, SORTED, STARTS_SORTED = "ours", "np.sort of starts and ends", "np.sort of starts alone"
BY_HAND, GROUPED = "argsort, take, accumulate", "argsort, groups (HTA)"
WAYS: dict[str, Way] = {
    OURS: covered,
    SORTED: lambda starts, ends, *_: len([np.sort(starts), np.sort(ends)]),
    STARTS_SORTED: lambda starts, *_: len(np.sort(starts)),
    BY_HAND: by_hand,
    GROUPED: grouped,
}


def rows_of_events() -> list[Row]:
    """From operators of torch on the CPU to a reading; profiling them is held against running them."""
    import torch  # noqa: PLC0415  # an extra

    torch.set_num_threads(1)
    matrix = torch.randn(2, 2)

    def work() -> None:
        for _ in range(EVENTS):
            torch.neg(matrix)

    timed(work)
    plain = min(timed(work)[0] for _ in range(ROUNDS))
    session = Session(cuda=False)
    session.start()
    profiled, _ = timed(work)
    stopping, _ = timed(session.stop)
    listing, events = timed(session.events)
    sorting, trace = timed(lambda: trace_of(events, session.marker))
    judging, reading = timed(lambda: operator_reading(trace, {"aten::neg": EVENTS}))
    assert reading.details["operators"] >= EVENTS
    what = f"{EVENTS:,} operators: "
    return [
        Row(what=what + "run, profiled", ours=profiled, other=plain, against="not profiled"),
        Row(what=what + "stop the profiler", ours=stopping),
        Row(what=what + "events into columns", ours=listing + sorting),
        Row(what=what + "reading with all its details", ours=judging),
    ]


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and what came of it."""
    began = time.perf_counter()
    result = action()
    return time.perf_counter() - began, result
