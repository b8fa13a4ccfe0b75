"""Findings on a ratio of two means or of two sums: Fieller's interval."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from pytest_prereg.judge.drift import drifting
from pytest_prereg.judge.findings import APPROXIMATE, Drift, Finding, conclude
from pytest_prereg.judge.fitness import blank_finding, described, unfit
from pytest_prereg.judge.intervals import moments
from pytest_prereg.judge.model import Reason
from pytest_prereg.judge.ratios import paired_fieller, unpaired_fieller
from pytest_prereg.judge.resolution import too_coarse, widening
from pytest_prereg.judge.sequences import Run, columns_of, run_of

if TYPE_CHECKING:
    from pytest_prereg.judge.findings import Doubt
    from pytest_prereg.judge.intervals import Interval
    from pytest_prereg.judge.question import Question
    from pytest_prereg.judge.samples import Reading

PAIRED = "Fieller, paired"
UNPAIRED = "Fieller"


class _Parts(NamedTuple):
    above: Run
    below: Run
    joint: bool
    """Whether a numerator and a denominator at one place were measured together."""


def find_quotient(question: Question, readings: list[Reading]) -> Finding:
    """The finding on the mean of one arm over that of another, or on a ratio of sums over repeats."""
    columns = columns_of(question, readings)
    joint = question.paired or question.divisor is not None
    method = PAIRED if joint else UNPAIRED
    blank = blank_finding(question, columns, method)
    if doubt := unfit(question, columns, blank.n):
        return replace(blank, doubt=doubt)
    parts = _parts(question, columns, joint=joint)
    fieller = paired_fieller if joint else unpaired_fieller
    interval = fieller(parts.above.values, parts.below.values, question.confidence)
    if question.resolutions and not math.isinf(interval.low):
        interval = _widened(interval, parts)
    blank = described(question, blank, method, (APPROXIMATE,))
    doubt = _doubt(interval) or too_coarse(question, _sequences(parts, interval.estimate), columns)
    drift = _drift(parts, interval.estimate)
    return conclude(question, blank, interval, doubt=doubt, drift=drift)


def _parts(question: Question, columns: list[list[Reading]], *, joint: bool) -> _Parts:
    above = run_of(question, columns[0])
    if question.divisor is None:
        return _Parts(above, run_of(question, columns[1]), joint)
    divisors = [reading.divisor for reading in columns[0]]
    grain = max(reading.divisor_grain for reading in columns[0])
    return _Parts(above, Run(divisors, max(map(abs, divisors)), grain), joint)


def _widened(interval: Interval, parts: _Parts) -> Interval:
    """Each side moved by what half a grain of both means, where that counts, could do to the ratio.

    (A + a) / (B + b) - r = (a - r b) / (B + b) with r = A / B; the grain of the denominator may make it zero.
    """
    above, below = moments(parts.above.values), moments(parts.below.values)
    by_above = widening(parts.above.grain, above.variance)
    by_below = widening(parts.below.grain, below.variance)
    left = abs(below.mean) - by_below
    if left <= 0 or math.isinf(by_above):
        return replace(interval, low=-math.inf, high=math.inf)
    low = interval.low - (by_above + abs(interval.low) * by_below) / left
    high = interval.high + (by_above + abs(interval.high) * by_below) / left
    return replace(interval, low=low, high=high)


def _doubt(interval: Interval) -> Doubt | None:
    if math.isinf(interval.low) or math.isinf(interval.high):
        return Reason.UNBOUNDED, "the mean of the denominator cannot be told from 0"
    return None


def _sequences(parts: _Parts, ratio: float) -> list[Run]:
    """What is tested for variation and for a trend: each arm, or what was measured together as one number."""
    if not parts.joint:
        return [parts.above, parts.below]
    above, below = parts.above, parts.below
    if _has_one_sign(below.values):
        values = [x / y for x, y in zip(above.values, below.values, strict=True)]
        return [Run(values, max(map(abs, values)), 0.0)]
    # A single ratio means nothing where its denominator may be 0; what Fieller's variance is made of does.
    residuals = [x - ratio * y for x, y in zip(above.values, below.values, strict=True)]
    return [Run(residuals, max(above.magnitude, abs(ratio) * below.magnitude), 0.0)]


def _drift(parts: _Parts, ratio: float) -> Drift | None:
    if math.isnan(ratio):
        return None
    sequences = _sequences(parts, ratio)
    trend = drifting([run.values for run in sequences])
    if trend is None:
        return None
    if not _has_one_sign(parts.below.values):
        return Drift(trend)
    if parts.joint:
        return Drift(trend, min(sequences[0].values), max(sequences[0].values))
    above, below = parts.above.values, parts.below.values
    ends = [x / y for x in (min(above), max(above)) for y in (min(below), max(below))]
    return Drift(trend, min(ends), max(ends))


def _has_one_sign(values: list[float]) -> bool:
    return min(values) > 0 or max(values) < 0
