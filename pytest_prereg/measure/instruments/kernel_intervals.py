"""Share of a window in which a kernel ran, or on a CPU an operator: the union of torch's profiled intervals.

Unit: 1. The window is where the caller put it, so a wait at its end counts as idle. Read low: what lies
between the kernels of a busy phase is idle, and the profiler makes that longer. A kernel that waits (for
other ranks, say) is busy. Kernels of all of this process's threads, streams and devices are seen, and no
other process's: work on any device makes the window busy; each one's share is in the details.

The profiler loses kernels, and says nothing of it. On CUDA each launch is therefore looked for among the
kernels, by the number that CUDA gave both; one without a kernel, or with one that began before it, is lost.
Operators have no second count: a stimulus that knows its own says so (``Window.expect``).

Operators are what torch's dispatcher calls, of whatever library, and compiled graphs. What computes past the
dispatcher (Python, numpy, a child) is idle, and so is an operator that began before the profiler: the CPU
time of the process is told beside the reading, for what was not an operator to show.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from pytest_prereg.measure.instruments import occupancy as intervals
from pytest_prereg.measure.instruments import wall_clock
from pytest_prereg.measure.instruments.reading import Reading, UnreadableError
from pytest_prereg.measure.instruments.torch_trace import COMPILED, Events, Session

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_prereg.measure.instruments.torch_trace import Trace

KERNELS = "kernel-intervals"
OPERATORS = "operator-intervals"
LOST_AT_MOST = 1e-3
"""Of all launches."""
UNSEEN_AT_MOST = 0.5
"""Of the time of regions by a compiler that the profiler knows nothing of, without an operator in them."""
UNSEEN_IN_WINDOW = 0.01
"""Of the window, which they may do so in any case."""
CLOCKS_AGREE_NS = 1_000_000
"""The device's times are translated to the host's clock, some microseconds off; wrong ones are hours off."""


class KernelIntervals:
    """Reads kernels where this process uses CUDA before the window, else operators."""

    def __init__(self) -> None:
        self._session: Session | None = None
        self._expected: Counter[str] = Counter()

    def start(self) -> None:
        """Start the profiler, then the window.

        Raises:
            UnreadableError: There is no profiler to be had; see :class:`Session`.
        """
        self._session = Session(cuda=wall_clock.cuda_in_use() is not None)
        self._session.start()

    def stop(self) -> None:
        """End the window, then the profiler.

        Raises:
            UnreadableError: The profiler could not be stopped in good order.
        """
        self._started().stop()

    def expect(self, count: int, operator: str) -> None:
        """Say that the window called ``operator`` (``aten::mm``) so often; on CUDA each runs a kernel."""
        self._expected[operator] += count

    def reading(self) -> Reading:
        """Return the share of the window in which a kernel, or an operator, ran.

        Raises:
            UnreadableError: Of the launches, or the expected calls, more than one in a thousand is lost; the
                profiler did not watch the window to its end, or was stopped in it, or its recording was
                switched; CUDA came up in it; what was compiled ran without operators.
        """
        session = self._started()
        if session.switches.used:
            raise UnreadableError(
                f"the recording of operators was turned off or on inside the window ({session.switches.used} "
                "times), so that some are lost; leave it alone"
            )
        if session.cuda:
            return kernel_reading(session.trace(), self._expected)
        if wall_clock.cuda_in_use() is not None:
            raise UnreadableError("CUDA was first used inside the window; use it once before")
        reading = operator_reading(session.trace(), self._expected)
        reading.details.update(_told_by_session(session, reading.details))
        return reading

    def _started(self) -> Session:
        if self._session is None:
            raise UnreadableError("the window was never started")
        return self._session


class OperatorIntervals(KernelIntervals):
    """Reads operators; where CUDA is in use they return before their kernels have run, and say nothing."""

    def start(self) -> None:
        """Start the profiler, then the window.

        Raises:
            UnreadableError: This process uses CUDA, or there is no profiler to be had.
        """
        if wall_clock.cuda_in_use() is not None:
            raise UnreadableError(
                f"this process uses CUDA, where operators only launch kernels: use {KERNELS}"
            )
        super().start()


def _told_by_session(session: Session, details: Mapping[str, Any]) -> dict[str, Any]:
    """Return what else a session on the CPU knows of its window; shares are of the window.

    ``cpu_time`` is what all threads of this process used, so more than 1 if several computed at a time, and
    ``children_cpu_time`` what children did that were waited for. ``profiler`` is an estimate of how much of
    the window the profiler itself took: operators times what it adds to one.
    """
    window, operators = details["window_s"], details["operators"]
    return {
        "threads": "all" if session.all_threads else "this one and those that torch starts",
        "cpu_time": session.used.own / window,
        "children_cpu_time": session.used.children / window,
        "operators_per_s": operators / window,
        "profiler_s_per_operator": session.event_seconds,
        "profiler": operators * session.event_seconds / window,
    }


def kernel_reading(trace: Trace, expected: Mapping[str, int] | None = None) -> Reading:
    """Judge what the profiler saw of a window on CUDA devices.

    Args:
        trace: Of one session.
        expected: How often the window called which operators; each call launches at least one kernel.

    Raises:
        UnreadableError: As :meth:`KernelIntervals.reading`.
    """
    low, high = _window(trace)
    found = _kernels_by_launch(trace)
    launches = _starting_in(trace.launches, low, high)
    launched = {trace.launches.keys[row] for row in launches}
    if not found:
        raise UnreadableError(
            "the profiler saw nothing of CUDA (CUPTI may need a permission that it lacks here)"
        )
    _check_watched_to_the_end(
        any(
            trace.launches.keys[row] in found
            for row, start in enumerate(trace.launches.starts)
            if start >= high
        )
    )
    lost = len(launched - found)
    _check_lost(lost, len(launched), "kernel launches", "kernel")
    missing = _check_expected(trace, expected or {}, low, high, kernels=len(launched & found))
    kernels = _inside(trace.kernels, low, high)
    median = intervals.median_length(kernels.starts, kernels.ends)
    known = set(trace.launches.keys)
    details = {
        "source": "cuda",
        "kernels": len(kernels.starts),
        "launched": len(launched),
        "lost": lost,
        "graph_launches": len(launched & trace.graphs),
        "without_launch": sum(key not in known for key in kernels.keys),
        "median_length_s": None if median is None else median * 1e-9,
        **missing,
        **_shares(kernels, trace.lanes, low, high),
        "devices": _by_device(kernels, trace.lanes, low, high),
        "copies": len(_inside(trace.copies, low, high).starts),
        "copying": intervals.occupancy(trace.copies.starts, trace.copies.ends, low, high),
    }
    return Reading(
        value=intervals.occupancy(kernels.starts, kernels.ends, low, high),
        instrument=KERNELS,
        details=details,
    )


def operator_reading(trace: Trace, expected: Mapping[str, int] | None = None) -> Reading:
    """Judge what the profiler saw of a window on the CPU.

    Args:
        trace: Of one session.
        expected: How often the window called which operators.

    Raises:
        UnreadableError: As :meth:`KernelIntervals.reading`.
    """
    low, high = _window(trace)
    _check_watched_to_the_end(any(start >= high for start in trace.operators.starts))
    missing = _check_expected(trace, expected or {}, low, high)
    operators = _inside(trace.operators, low, high)
    regions = _inside(trace.regions, low, high)
    details = {
        "source": "operators",
        "operators": len(operators.starts),
        "regions": len(regions.starts),
        "regions_unseen": _unseen(regions, operators, trace.names, low, high),
        **missing,
        **_shares(operators, trace.lanes, low, high),
    }
    value = intervals.occupancy(operators.starts, operators.ends, low, high)
    return Reading(value=value, instrument=OPERATORS, details=details)


def _window(trace: Trace) -> tuple[int, int]:
    if len(trace.windows.starts) != 1:
        raise UnreadableError("the profiler was stopped inside the window: another one was used there")
    low, high = trace.windows.starts[0], trace.windows.ends[0]
    if high <= low:
        raise UnreadableError("the window has no length")
    return low, high


def _kernels_by_launch(trace: Trace) -> set[int]:
    """Return the launches of which a kernel was seen, or (a graph may have no kernels) a copy, in time."""
    began = dict(zip(trace.launches.keys, trace.launches.starts, strict=True))
    return {
        key
        for events in (trace.kernels, trace.copies)
        for key, start in zip(events.keys, events.starts, strict=True)
        if start >= began.get(key, start) - CLOCKS_AGREE_NS
    }


def _check_watched_to_the_end(seen: object) -> None:
    if not seen:
        raise UnreadableError(
            "the profiler did not see what was run right after the window: it was turned off in it, or its "
            "buffers were full; use a shorter window"
        )


def _unseen(regions: Events, operators: Events, names: Sequence[str], low: int, high: int) -> float:
    """Return the share of the window in which compiled regions ran, and no operator that could be seen.

    A region with a graph of torch's own compiler is that graph, and Python around it.

    Raises:
        UnreadableError: Regions of other compilers ran for more than a hundredth of the window so, and for
            more than half of their time: whatever ran in them is not known to the profiler.
    """
    opaque = _without_graphs(regions, operators, names)
    ran = intervals.covered(opaque.starts, opaque.ends, low, high)
    either = intervals.covered(
        [*opaque.starts, *operators.starts], [*opaque.ends, *operators.ends], low, high
    )
    unseen = either - intervals.covered(operators.starts, operators.ends, low, high)
    if unseen > max(ran * UNSEEN_AT_MOST, (high - low) * UNSEEN_IN_WINDOW):
        raise UnreadableError(
            f"compiled regions ran for {ran * 1e-9:.3g} s of the window, {unseen * 1e-9:.3g} s of it without "
            "an operator that the profiler can see, so what they ran would read as idle"
        )
    return unseen / (high - low)


def _without_graphs(regions: Events, operators: Events, names: Sequence[str]) -> Events:
    """Return the regions in which no graph of torch's compiler starts, on their own thread."""
    graphs: dict[int, list[int]] = defaultdict(list)
    for lane, start, key in zip(operators.lanes, operators.starts, operators.keys, strict=True):
        if COMPILED.fullmatch(names[key]):
            graphs[lane].append(start)
    for starts in graphs.values():
        starts.sort()

    def has_none(row: int) -> bool:
        starts = graphs[regions.lanes[row]]
        return bisect_left(starts, regions.starts[row]) == bisect_left(starts, regions.ends[row])

    return _rows(regions, filter(has_none, range(len(regions.starts))))


def _check_lost(lost: int, of: int, what: str, record: str) -> None:
    if lost > of * LOST_AT_MOST:
        raise UnreadableError(f"the profiler lost the {record} of {lost} of {of} {what} in the window")


def _check_expected(
    trace: Trace, expected: Mapping[str, int], low: int, high: int, kernels: int | None = None
) -> dict[str, Any]:
    """Hold the calls that the caller counted against those that were seen; return both as details."""
    names = Counter(
        trace.names[trace.operators.keys[row]] for row in _starting_in(trace.operators, low, high)
    )
    lost = {operator: max(0, count - names[operator]) for operator, count in expected.items()}
    for operator, count in expected.items():
        _check_lost(lost[operator], count, f"calls of {operator}", "record")
    calls = sum(expected.values())
    if kernels is not None:
        _check_lost(max(0, calls - kernels), calls, "calls that launch kernels", "kernel")
    return {"expected": calls, "calls_lost": sum(lost.values())} if expected else {}


def _shares(events: Events, lanes: tuple[str, ...], low: int, high: int) -> dict[str, Any]:
    """Return what else there is to know of intervals in a window; times in seconds, shares of the window."""
    starts, ends = events.starts, events.ends
    by_lane = intervals.occupancy_by_stream(starts, ends, events.lanes, low, high)
    return {
        "window_s": (high - low) * 1e-9,
        "streams": {lanes[lane]: share for lane, share in by_lane.items()},
        "first_to_last": intervals.first_to_last(starts, ends, low, high),
        "summed": intervals.summed(starts, ends, low, high) / (high - low),
        "longest_gap_s": intervals.coverage(starts, ends, low, high).longest_gap * 1e-9,
    }


def _by_device(events: Events, lanes: tuple[str, ...], low: int, high: int) -> dict[str, float]:
    devices = [lane.partition(":")[0] for lane in lanes]
    names = sorted({devices[lane] for lane in events.lanes})
    numbers = [names.index(devices[lane]) for lane in events.lanes]
    shares = intervals.occupancy_by_stream(events.starts, events.ends, numbers, low, high)
    return {names[number]: share for number, share in shares.items()}


def _inside(events: Events, low: int, high: int) -> Events:
    """Return the events of which any part lies in the window, whole."""
    rows = [
        row
        for row, (start, end) in enumerate(zip(events.starts, events.ends, strict=True))
        if start < high and (end > low or start >= low)
    ]
    return _rows(events, rows)


def _rows(events: Events, rows: Iterable[int]) -> Events:
    chosen = list(rows)
    return Events(*(type(column)("q", [column[row] for row in chosen]) for column in events))


def _starting_in(events: Events, low: int, high: int) -> Iterable[int]:
    return [row for row, start in enumerate(events.starts) if low <= start < high]
