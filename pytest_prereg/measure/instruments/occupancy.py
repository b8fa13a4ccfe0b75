"""How much of a window is covered by intervals that may overlap, nest and touch; in whole nanoseconds.

An interval reaches from its start up to, but not including, its end. All times are integers on one clock
and may be anywhere in 64 bits: nothing is rounded, and nothing overflows.

The share that is covered is the length of the *union* divided by that of a window which the caller anchors.
Two other readings are in use, and both mislead: a window from the first start to the last end, as in the
idle-time breakdown of HolisticTraceAnalysis, never sees an idle time at either end; the sum of durations
counts twice what runs side by side.
"""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Literal

    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Times = NDArray[np.int64]
    Sort = Literal["quicksort", "stable"]

CHUNK = 1 << 15
"""Intervals handled at a time: what is computed of them stays in a core's own cache."""
LONG_RUN = 64
"""Where starts come in runs at least this long on average, merging the runs beats sorting anew."""
WORD = 63
"""Bits of a whole number that is not negative."""


class Coverage(NamedTuple):
    """Of a window, in nanoseconds."""

    covered: int
    longest_gap: int
    """The longest stretch without an interval, those before the first and after the last included.

    One without length covers nothing, and divides the stretch that it lies in.
    """


def coverage(starts: ArrayLike, ends: ArrayLike, low: int, high: int) -> Coverage:
    """Return how much of the window ``[low, high)`` the union of intervals covers, and its longest gap.

    Takes linear time where the starts are in order. Else start and duration are packed into one word and
    sorted together, or, where both don't fit into 64 bits, starts and ends are sorted each on their own: the
    window is idle between the k-th end and the next start, if that is later.

    Args:
        starts: Integers, shape (n,), in any order.
        ends: Integers, shape (n,).
        low: Begin of the window.
        high: End of the window.

    Raises:
        ValueError: An interval ends before it starts, the window does, or the shapes differ.
        TypeError: Times are no integers of 64 bits.
    """
    first, last = _intervals(starts, ends)
    low, high = _window(low, high)
    return _swept(_in_order(first, last, low, high), high - low)


def covered(starts: ArrayLike, ends: ArrayLike, low: int, high: int) -> int:
    """Return how many nanoseconds of the window the union covers; see :func:`coverage`."""
    return coverage(starts, ends, low, high).covered


def occupancy(starts: ArrayLike, ends: ArrayLike, low: int, high: int) -> float:
    """Return the share of the window that the union covers, 0 to 1; see :func:`coverage`.

    Raises:
        ValueError: Also if the window is empty.
    """
    return covered(starts, ends, low, high) / _length(low, high)


def occupancy_by_stream(
    starts: ArrayLike, ends: ArrayLike, streams: ArrayLike, low: int, high: int
) -> dict[int, float]:
    """Return the share of the window that each stream's intervals cover, by stream.

    ``streams`` has a whole number for each interval, shape (n,). Streams overlap: their shares may add up to
    more than 1. Raises as :func:`occupancy`.
    """
    import numpy as np  # noqa: PLC0415

    first, last = _intervals(starts, ends)
    lanes = _integers(streams, "streams")
    if lanes.shape != first.shape:
        raise ValueError(f"{lanes.size} streams for {first.size} intervals")
    order = np.argsort(lanes, kind="stable")
    names, begins = np.unique(lanes[order], return_index=True)
    parts = np.split(order, begins[1:])
    return {
        int(name): occupancy(first[part], last[part], low, high)
        for name, part in zip(names, parts, strict=False)
    }


def first_to_last(starts: ArrayLike, ends: ArrayLike, low: int, high: int) -> float | None:
    """Return the covered share between the first start and the last end in the window, 0 to 1.

    What HolisticTraceAnalysis reads (``_get_idle_time_for_kernels``), for comparison alone. ``None`` if no
    interval of any length lies in the window. Raises as :func:`coverage`.
    """
    import numpy as np  # noqa: PLC0415

    first, last = _intervals(starts, ends)
    low, high = _window(low, high)
    within = np.maximum(first, low) < np.minimum(last, high)
    if not within.any():
        return None
    first, last = first[within], last[within]
    return occupancy(first, last, max(low, int(first.min())), min(high, int(last.max())))


def summed(starts: ArrayLike, ends: ArrayLike, low: int, high: int) -> int:
    """Return the sum of the durations inside the window, in nanoseconds: overlaps count again and again.

    Raises as :func:`coverage`.
    """
    import numpy as np  # noqa: PLC0415

    first, last = _intervals(starts, ends)
    low, high = _window(low, high)
    total = 0
    for begins, stops in _clipped(first, last, low, high):
        lengths = np.subtract(stops, begins, out=stops)
        total += (int((lengths >> 32).sum()) << 32) + int((lengths & 0xFFFFFFFF).sum())
    return total


def median_length(starts: ArrayLike, ends: ArrayLike) -> float | None:
    """Return the median duration in nanoseconds, of whole intervals; ``None`` if there are none.

    Raises as :func:`coverage`.
    """
    import numpy as np  # noqa: PLC0415

    first, last = _intervals(starts, ends)
    if not first.size:
        return None
    return float(np.median(last.view(np.uint64) - first.view(np.uint64)))


def _intervals(starts: ArrayLike, ends: ArrayLike) -> tuple[Times, Times]:
    first, last = _integers(starts, "starts"), _integers(ends, "ends")
    if first.shape != last.shape:
        raise ValueError(f"{first.size} starts, but {last.size} ends")
    for at in range(0, first.size, CHUNK):
        _check_order(first[at : at + CHUNK], last[at : at + CHUNK], at)
    return first, last


def _integers(values: ArrayLike, what: str) -> Times:
    import numpy as np  # noqa: PLC0415

    array = np.asarray(values)
    if array.size == 0:
        return np.empty(0, np.int64)
    if array.ndim != 1:
        raise ValueError(f"{what} have {array.ndim} dimensions, not one")
    if not np.can_cast(array.dtype, np.int64):
        raise TypeError(f"{what} are {array.dtype}, not int64: whole nanoseconds, never rounded")
    return np.ascontiguousarray(array, np.int64)


def _check_order(starts: Times, ends: Times, before: int) -> None:
    wrong = ends < starts
    if wrong.any():
        at = int(wrong.argmax())
        raise ValueError(f"interval {before + at} ends at {ends[at]}, before it starts at {starts[at]}")


def _window(low: int, high: int) -> tuple[int, int]:
    low, high = index(low), index(high)
    if not -(1 << WORD) <= low <= high < 1 << WORD:
        raise ValueError(f"[{low}, {high}) is no window: it ends before it begins, or is not of 64 bits")
    if high - low >= 1 << WORD:
        raise ValueError(f"[{low}, {high}) is longer than 292 years")
    return low, high


def _length(low: int, high: int) -> int:
    low, high = _window(low, high)
    if low == high:
        raise ValueError(f"the window at {low} has no length, and no share of it is covered")
    return high - low


def _clipped(starts: Times, ends: Times, low: int, high: int) -> Iterator[tuple[Times, Times]]:
    """Yield the intervals chunk by chunk, clipped to the window and counted from its begin.

    The arrays are the same ones each time: whoever takes them may change them, and must be done with them.
    """
    import numpy as np  # noqa: PLC0415

    space = np.empty((2, CHUNK), np.int64)
    for at in range(0, starts.size, CHUNK):
        begins, stops = space[:, : starts.size - at]
        np.clip(starts[at : at + CHUNK], low, high, out=begins)
        np.clip(ends[at : at + CHUNK], low, high, out=stops)
        yield np.subtract(begins, low, out=begins), np.subtract(stops, low, out=stops)


def _in_order(starts: Times, ends: Times, low: int, high: int) -> Iterator[tuple[Times, Times]]:
    """Yield starts in order, with ends whose running maximum says how far the starts so far have reached."""
    descents = _descents(starts)
    if not descents:
        return _clipped(starts, ends, low, high)
    kind: Sort = "stable" if descents * LONG_RUN < starts.size else "quicksort"
    bits = WORD - (high - low).bit_length()
    words = _packed(starts, ends, low, high, bits)
    if words is None:
        return _sorted_apart(starts, ends, low, high, kind)
    words.sort(kind=kind)
    return _unpacked(words, bits)


def _descents(starts: Times) -> int:
    """Return how often a start comes before its predecessor."""
    import numpy as np  # noqa: PLC0415

    count = 0
    for at in range(0, starts.size, CHUNK):
        some = starts[at : at + CHUNK + 1]
        count += int(np.count_nonzero(some[1:] < some[:-1]))
    return count


def _packed(starts: Times, ends: Times, low: int, high: int, bits: int) -> Times | None:
    """Return words of a start and, in the lowest ``bits``, a duration; ``None`` if one doesn't fit."""
    import numpy as np  # noqa: PLC0415

    words = np.empty(starts.size, np.int64)
    for at, (begins, stops) in enumerate(_clipped(starts, ends, low, high)):
        np.subtract(stops, begins, out=stops)
        if int(stops.max()) >> bits:
            return None
        np.left_shift(begins, bits, out=begins)
        np.bitwise_or(begins, stops, out=words[at * CHUNK : (at + 1) * CHUNK])
    return words


def _unpacked(words: Times, bits: int) -> Iterator[tuple[Times, Times]]:
    import numpy as np  # noqa: PLC0415

    space = np.empty((2, CHUNK), np.int64)
    for at in range(0, words.size, CHUNK):
        packed = words[at : at + CHUNK]
        begins, stops = space[:, : packed.size]
        np.right_shift(packed, bits, out=begins)
        np.bitwise_and(packed, (1 << bits) - 1, out=stops)
        yield begins, np.add(begins, stops, out=stops)


def _sorted_apart(
    starts: Times, ends: Times, low: int, high: int, kind: Sort
) -> Iterator[tuple[Times, Times]]:
    import numpy as np  # noqa: PLC0415

    begins, stops = np.clip(starts, low, high), np.clip(ends, low, high)
    for times in (begins, stops):
        np.subtract(times, low, out=times)
        times.sort(kind=kind)
    for at in range(0, begins.size, CHUNK):
        yield begins[at : at + CHUNK], stops[at : at + CHUNK]


def _swept(intervals: Iterator[tuple[Times, Times]], length: int) -> Coverage:
    """Add up the gaps between how far all intervals so far have reached and the next start."""
    import numpy as np  # noqa: PLC0415

    reached = idle = longest = 0
    space = np.empty(CHUNK + 1, np.int64)
    for begins, stops in intervals:
        far = space[: stops.size + 1]
        far[0], far[1:] = reached, stops
        np.maximum.accumulate(far, out=far)
        reached = int(far[-1])
        np.subtract(begins, far[:-1], out=begins)
        np.maximum(begins, 0, out=begins)
        idle += int(begins.sum())
        longest = max(longest, int(begins.max()))
    trailing = length - reached
    return Coverage(length - idle - trailing, max(longest, trailing))
