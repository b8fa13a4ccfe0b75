"""Findings on a quantile, the median among them: what was cut off still has its rank."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

from msgspec.structs import replace

from pytest_prereg.judge.drift import drifting
from pytest_prereg.judge.findings import Drift, Finding, conclude, rounded, too_few
from pytest_prereg.judge.intervals import order_statistic_median, order_statistic_quantile
from pytest_prereg.judge.model import Reason
from pytest_prereg.judge.order_statistics import ranks, smallest_n_for_median, smallest_n_for_quantile

if TYPE_CHECKING:
    from pytest_prereg.judge.findings import Doubt
    from pytest_prereg.judge.intervals import Interval
    from pytest_prereg.judge.question import Question
    from pytest_prereg.judge.samples import Reading
    from pytest_prereg.registry.regions import Region

METHOD = "exact order statistics"


def find_quantile(question: Question, readings: list[Reading]) -> Finding:
    """The finding on a quantile, the median where no other is named.

    What was cut off ranks above all for a duration, and at both ends for anything else: the interval then
    holds both answers, and only what both decide is decided. A side that so few repeats cannot bound is
    infinite, and the other may decide alone.
    """
    n = len(readings)
    repeats = tuple([reading.repeat.id for reading in readings])
    blank = Finding(level=question.confidence, method=METHOD, n=n, repeats=repeats)
    if not n or ranks(n, _share(question), question.confidence) == (None, None):
        return replace(blank, doubt=_too_few(question, n))
    return conclude(
        question,
        blank,
        _interval(question, readings),
        short=functools.partial(_out_of_reach, question, n),
        drift=_drift(readings),
    )


def repeats_to_hold(region: Region, q: float, confidence: float) -> int:
    """Fewest repeats whose interval for the ``q`` quantile has the sides that ``region`` asks for."""
    below, above = smallest_n_for_quantile(q, confidence)
    return min(
        max(below if math.isfinite(span.low) else 1, above if math.isfinite(span.high) else 1)
        for span in region.spans
    )


def _share(question: Question) -> float:
    return 0.5 if question.q is None else question.q


def _interval(question: Question, readings: list[Reading]) -> Interval:
    """From the lowest value that each reading may have, and the highest."""
    lows, highs = [reading.low for reading in readings], [reading.high for reading in readings]
    above = _bounds(question, highs)
    below = _bounds(question, lows) if lows != highs else above
    # Where what was cut off leaves the estimate more than one value, it has none.
    estimate = above.estimate if above.estimate == below.estimate else math.nan
    return replace(above, estimate=estimate, low=below.low, level=rounded(above.level))


def _bounds(question: Question, values: list[float]) -> Interval:
    if question.q is None:
        return order_statistic_median(values, question.confidence)
    return order_statistic_quantile(values, question.q, question.confidence)


def _drift(readings: list[Reading]) -> Drift | None:
    """A trend of the highest values that the readings may have, or else of the lowest."""
    lows, highs = [reading.low for reading in readings], [reading.high for reading in readings]
    trend = drifting([highs]) or (drifting([lows]) if lows != highs else None)
    return trend and Drift(trend, min(lows), max(highs))


def _too_few(question: Question, n: int) -> Doubt:
    if question.q is None:
        return too_few(smallest_n_for_median(question.confidence), n)
    return Reason.N_TOO_SMALL, _needs(question)


def _out_of_reach(question: Question, n: int) -> Doubt | None:
    """Why so few repeats could never have given one of the verdicts."""
    needed = (_repeats_to_hold(question, region) for region in (question.predicts, question.falsifier))
    return (Reason.N_TOO_SMALL, _needs(question)) if n < max(needed) else None


def _needs(question: Question) -> str:
    support = _repeats_to_hold(question, question.predicts)
    return f"needs {support} to support, {_repeats_to_hold(question, question.falsifier)} to refute"


def _repeats_to_hold(question: Question, region: Region) -> int:
    return repeats_to_hold(region, _share(question), question.confidence)
