"""A finding: what one set of readings says about a question, before anything outside them is weighed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pytest_prereg.judge.model import Reason, Verdict
from pytest_prereg.registry.regions import contains

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_prereg.judge.drift import Trend
    from pytest_prereg.judge.intervals import Interval
    from pytest_prereg.judge.question import Question

APPROXIMATE = "approximate"
ASSUMES_NORMAL = "assumes normal"
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
    if doubt is None and verdict is Verdict.INCONCLUSIVE and short is not None:
        doubt = short()
    if doubt is None and drift is not None and not all_inside(question, verdict, drift.least, drift.greatest):
        doubt = Reason.DRIFT, drift.trend.describe()
    if doubt is None and verdict is Verdict.INCONCLUSIVE:
        doubt = straddled(question, low, high)
    return msgspec.structs.replace(
        blank,
        verdict=verdict if doubt is None else Verdict.INCONCLUSIVE,
        doubt=doubt,
        estimate=rounded(interval.estimate) if math.isfinite(interval.estimate) else None,
        interval=(low, high),
        level=interval.level,
    )


def place(question: Question, low: float, high: float) -> Verdict:
    """Where the interval lies; ``INCONCLUSIVE`` if neither region holds the whole of it."""
    if contains(question.predicts, low, high):
        return Verdict.SUPPORTED
    if contains(question.falsifier, low, high):
        return Verdict.REFUTED
    return Verdict.INCONCLUSIVE


def all_inside(question: Question, verdict: Verdict, least: float, greatest: float) -> bool:
    """Whether everything from ``least`` to ``greatest`` lies in the region that decided."""
    return verdict is not Verdict.INCONCLUSIVE and place(question, least, greatest) is verdict


def straddled(question: Question, low: float, high: float) -> Doubt:
    """Which edges the interval straddles, or between which it lies."""
    ends = question.edges
    inside = [number(end) for end in ends if low <= end <= high]
    if inside:
        return Reason.STRADDLES, f"straddles {inside[0]}" + (f" to {inside[-1]}" if len(inside) > 1 else "")
    below = max((end for end in ends if end < low), default=-math.inf)
    above = min((end for end in ends if end > high), default=math.inf)
    return Reason.STRADDLES, f"lies between {number(below)} and {number(above)}, in neither region"


def too_few(needed: int, n: int, noun: str = "repeat", condition: str = "") -> Doubt:
    """The doubt of a method that needs more repeats than there are."""
    return Reason.N_TOO_SMALL, f"needs {plural(needed, noun)}{condition}, has {n}"


def rounded(value: float) -> float:
    """``value`` at 15 significant digits, so that the same evidence gives the same record everywhere."""
    return float(f"{value:.15g}")


def number(value: float) -> str:
    """A threshold as people write it."""
    return f"{value:.10g}"


def plural(count: int, noun: str) -> str:
    """``1 repeat``, ``2 repeats``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
