"""A finding: what one set of readings says about a question, before anything outside them is weighed."""

from __future__ import annotations

import math
from math import floor, log10
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec.structs import replace

from pytest_prereg.judge.model import Reason, Verdict
from pytest_prereg.registry.regions import contains

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_prereg.judge.drift import Trend
    from pytest_prereg.judge.intervals import Interval
    from pytest_prereg.judge.question import Question

APPROXIMATE = "approximate"
ASSUMES_NORMAL = "assumes normal"
_SUPPORTED, _REFUTED, _INCONCLUSIVE = Verdict  # before Python 3.12, Verdict.SUPPORTED is a slow search
_STRADDLES = Reason.STRADDLES
_LEAST, _FEWEST, _MOST = 1e-7, 1e14, 1e15
"""Least value whose power of ten is exact, and between which numbers have fifteen digits."""
_POWERS = [10.0**exponent for exponent in range(23)]
_ROUNDING = 1.5 * 2.0**52
"""Added to a number of fifteen digits, it leaves no place for a fraction."""
_NEAR = 0.4
Doubt = tuple[Reason, str]
"""Why a verdict is inconclusive, and one line on it for people."""


class Finding(msgspec.Struct, kw_only=True, frozen=True, gc=False):
    """A verdict with its numbers; ``doubt`` says why it is inconclusive."""

    verdict: Verdict = Verdict.INCONCLUSIVE
    doubt: Doubt | None = None
    note: str | None = None
    """A line for people beside a verdict that decides."""
    estimate: float | None = None
    interval: tuple[float, float] | None = None
    level: float
    method: str
    flags: tuple[str, ...] = ()
    n: int
    repeats: tuple[str, ...]


class Drift(NamedTuple):
    """A trend over the run, and the least and greatest value that one repeat, or one contrast, has."""

    trend: Trend
    least: float = -math.inf
    greatest: float = math.inf


def conclude(
    question: Question,
    blank: Finding,
    interval: Interval,
    *,
    doubt: Doubt | None = None,
    short: Callable[[], Doubt | None] | None = None,
    drift: Drift | None = None,
) -> Finding:
    """The finding where the estimand lies in ``interval``: the one place where an interval becomes a verdict.

    Args:
        question: Whose regions decide.
        blank: Method, flags, n and repeats.
        interval: In the unit shown.
        doubt: Why the interval may not be believed, wherever it lies.
        short: Asked where neither region holds the interval, whether so few repeats could ever have told.
        drift: A trend, which forbids a verdict unless every repeat alone agrees with it.
    """
    low, high = rounded(interval.low), rounded(interval.high)
    verdict = place(question, low, high)
    if doubt is None and verdict is _INCONCLUSIVE and short is not None:
        doubt = short()
    if doubt is None and drift is not None and not all_inside(question, verdict, drift.least, drift.greatest):
        doubt = Reason.DRIFT, drift.trend.describe()
    if doubt is None and verdict is _INCONCLUSIVE:
        doubt = straddled(question, low, high)
    return replace(
        blank,
        verdict=verdict if doubt is None else _INCONCLUSIVE,
        doubt=doubt,
        estimate=rounded(interval.estimate) if math.isfinite(interval.estimate) else None,
        interval=(low, high),
        level=interval.level,
    )


def place(question: Question, low: float, high: float) -> Verdict:
    """Where the interval lies; ``INCONCLUSIVE`` if neither region holds the whole of it."""
    if contains(question.predicts, low, high):
        return _SUPPORTED
    if contains(question.falsifier, low, high):
        return _REFUTED
    return _INCONCLUSIVE


def all_inside(question: Question, verdict: Verdict, least: float, greatest: float) -> bool:
    """Whether everything from ``least`` to ``greatest`` lies in the region that decided."""
    return verdict is not Verdict.INCONCLUSIVE and place(question, least, greatest) is verdict


def straddled(question: Question, low: float, high: float) -> Doubt:
    """Which edges the interval straddles, or between which it lies."""
    ends = question.edges
    if inside := [number(end) for end in ends if low <= end <= high]:
        return _STRADDLES, f"straddles {inside[0]}" + (f" to {inside[-1]}" if len(inside) > 1 else "")
    below = max((end for end in ends if end < low), default=-math.inf)
    above = min((end for end in ends if end > high), default=math.inf)
    return _STRADDLES, f"lies between {number(below)} and {number(above)}, in neither region"


def too_few(needed: int, n: int, noun: str = "repeat", condition: str = "") -> Doubt:
    """The doubt of a method that needs more repeats than there are."""
    return Reason.N_TOO_SMALL, f"needs {plural(needed, noun)}{condition}, has {n}"


def rounded(value: float) -> float:
    """``value`` at 15 significant digits, so that the same evidence gives the same record everywhere.

    It is ``float(f"{value:.15g}")``, in most cases without the text. Times a power of ten the value is off by
    a sixteenth at most, so a whole number nearer than 0.4 is the nearest one; number and power are exact, and
    IEEE 754 divides them as it reads the decimal.
    """
    size = abs(value)
    if _LEAST < size < _MOST:
        power = _POWERS[14 - floor(log10(size))]
        scaled = value * power
        whole = (scaled + _ROUNDING) - _ROUNDING
        if -_NEAR < scaled - whole < _NEAR and _FEWEST < abs(whole) < _MOST:
            return whole / power
    return float(f"{value:.15g}")


def number(value: float) -> str:
    """A threshold as people write it."""
    return f"{value:.10g}"


def plural(count: int, noun: str) -> str:
    """``1 repeat``, ``2 repeats``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
