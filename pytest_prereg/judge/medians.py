"""Findings on a median: order statistics, so a repeat that was cut off still has its rank."""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING

from msgspec.structs import replace

from pytest_prereg.judge.drift import drifting
from pytest_prereg.judge.findings import Finding, all_inside, place, rounded, straddled, too_few
from pytest_prereg.judge.model import Reason, Verdict
from pytest_prereg.judge.order_statistics import coverage, ranks, smallest_n_for_median

if TYPE_CHECKING:
    from pytest_prereg.judge.findings import Doubt
    from pytest_prereg.judge.question import Question
    from pytest_prereg.judge.samples import Reading

METHOD = "exact order statistics"


def find_median(question: Question, readings: list[Reading]) -> Finding:
    """The finding on a median.

    What was cut off ranks above all for a duration, and at both ends for anything else: the interval then
    holds both answers, and only what both decide is decided.
    """
    n = len(readings)
    repeats = tuple([reading.repeat.id for reading in readings])
    blank = Finding(level=question.confidence, method=METHOD, n=n, repeats=repeats)
    lower, upper = ranks(n, 0.5, question.confidence)
    if lower is None or upper is None:
        return replace(blank, doubt=too_few(smallest_n_for_median(question.confidence), n))
    lows = sorted([reading.low for reading in readings])
    highs = sorted([reading.high for reading in readings])
    low, high = rounded(lows[lower - 1]), rounded(highs[upper - 1])
    verdict = place(question, low, high)
    doubt = _doubt(question, readings, verdict)
    if doubt is None and verdict is Verdict.INCONCLUSIVE:
        doubt = straddled(question, low, high)
    return replace(
        blank,
        verdict=verdict if doubt is None else Verdict.INCONCLUSIVE,
        doubt=doubt,
        estimate=_estimate(lows, highs),
        interval=(low, high),
        level=rounded(coverage(n, 0.5, lower, upper)),
    )


def _doubt(question: Question, readings: list[Reading], verdict: Verdict) -> Doubt | None:
    highs = [reading.high for reading in readings]
    trend = drifting([highs])
    if trend is None:
        return None
    least = min(reading.low for reading in readings)
    return None if all_inside(question, verdict, least, max(highs)) else (Reason.DRIFT, trend.describe())


def _estimate(lows: list[float], highs: list[float]) -> float | None:
    """The sample median, where what was cut off leaves it one finite value."""
    low, high = median(lows), median(highs)
    return rounded(high) if low == high and math.isfinite(high) else None
