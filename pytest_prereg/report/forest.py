"""The plot of one verdict: an interval over the regions that it is held against, in one row of characters.

``▒▒▒├▒•▒┤▒░░░▓▓▓`` reads: the interval lies inside the predicted region (▒), the falsifier (▓) begins after a
gap (░) in which nothing is decided. The axis is linear within each zone and keeps a place for every zone, so
that a distant edge never squeezes another out of sight: which zones the interval touches is always true to
the verdict, distances across zones are not.
"""

from __future__ import annotations

import itertools
import math
import sys
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.registry.regions import contains, edges

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_prereg.registry.regions import Region

_PREDICTED, _FALSIFIER, _GAP = "▒", "▓", "░"
_MARGIN = 0.2
"""How far beyond the outermost number the axis goes, as a share of the range."""
_SEEN = 1e-9
"""Relative width of a margin that arithmetic is sure not to round away."""
_LEAST = 2
"""Characters that a zone gets at least, where there is room."""


class Zone(msgspec.Struct, kw_only=True, frozen=True):
    """A stretch of the axis that is predicted, falsifying or neither throughout."""

    mark: str
    low: float
    high: float


def forest(
    estimate: float | None,
    interval: Sequence[float | None] | None,
    predicts: Region,
    falsifier: Region,
    width: int,
) -> str:
    """Return the plot in exactly ``width`` characters; blank where there is no interval or no room.

    An infinite side of the interval (``None`` or ``±inf``) ends in an arrow.
    """
    if interval is None:
        return " " * width
    low, high = _side(interval[0], -math.inf), _side(interval[1], math.inf)
    axis = zones(predicts, falsifier, [low, high, *([] if estimate is None else [estimate])])
    if len(axis) > width:
        return " " * width
    sizes = _sizes(axis, width)
    row = [zone.mark for zone, size in zip(axis, sizes, strict=True) for _ in range(size)]
    for mark, value in (("├", low), ("┤", high), ("•", estimate)):
        if value is not None:
            column = _column(value, _mark(value, predicts, falsifier), axis, sizes)
            row[column] = _arrow(value) or mark
    return "".join(row)


def _side(end: float | None, infinite: float) -> float:
    return infinite if end is None else end


def _arrow(value: float) -> str | None:
    return {-math.inf: "←", math.inf: "→"}.get(value)


def zones(predicts: Region, falsifier: Region, values: Sequence[float]) -> list[Zone]:
    """Return the axis from below all finite edges and values to above them, cut at every edge."""
    cuts = sorted({*edges(predicts), *edges(falsifier)})
    finite = [*cuts, *filter(math.isfinite, values)]
    margin = _margin(min(finite), max(finite)) if finite else 1.0
    ends = [min(finite, default=0.0) - margin, *cuts, max(finite, default=0.0) + margin]
    return list(_cut(ends, predicts, falsifier))


def _margin(low: float, high: float) -> float:
    if high == low:
        return abs(low) * _MARGIN or 1.0
    return max((high - low) * _MARGIN, _SEEN * max(abs(low), abs(high)), sys.float_info.min)


def _cut(ends: Sequence[float], predicts: Region, falsifier: Region) -> Iterator[Zone]:
    """Yield the zones between the ends, and an edge as a zone of its own where it belongs to neither side."""
    before = None
    for low, high in itertools.pairwise(ends):
        mark = _mark(low / 2 + high / 2, predicts, falsifier)
        if before is not None and (at := _mark(low, predicts, falsifier)) not in (before, mark):
            yield Zone(mark=at, low=low, high=low)
        yield Zone(mark=mark, low=low, high=high)
        before = mark


def _mark(value: float, predicts: Region, falsifier: Region) -> str:
    if contains(predicts, value, value):
        return _PREDICTED
    return _FALSIFIER if contains(falsifier, value, value) else _GAP


def _sizes(axis: Sequence[Zone], width: int) -> list[int]:
    """Share ``width`` characters among the zones: a few for each, the rest by length."""
    least = _LEAST if _LEAST * len(axis) <= width else 1
    spare = width - least * len(axis)
    lengths = [zone.high - zone.low for zone in axis]
    total = math.fsum(lengths)
    bounds = [round(spare * math.fsum(lengths[:count]) / total) for count in range(len(axis) + 1)]
    return [least + high - low for low, high in itertools.pairwise(bounds)]


def _column(value: float, mark: str, axis: Sequence[Zone], sizes: Sequence[int]) -> int:
    """Return where a value stands: of two zones that meet in it, in the one whose mark it has."""
    if math.isinf(value):
        return 0 if value < 0 else sum(sizes) - 1
    holding = (i for i, zone in enumerate(axis) if zone.low <= value <= zone.high and zone.mark == mark)
    index = next(holding)
    zone, size = axis[index], sizes[index]
    within = (value - zone.low) / (zone.high - zone.low) if zone.high > zone.low else 0.0
    return sum(sizes[:index]) + min(size - 1, int(within * size))
