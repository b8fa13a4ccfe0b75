"""Findings that rest on a t distribution: a mean, a geometric mean, a difference or a ratio of two arms."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from pytest_prereg.judge import intervals
from pytest_prereg.judge.censoring import cut_off, untested_tail
from pytest_prereg.judge.drift import drifting
from pytest_prereg.judge.findings import APPROXIMATE, Finding, all_inside, place, rounded, straddled, too_few
from pytest_prereg.judge.intervals import Interval
from pytest_prereg.judge.model import Reason, Verdict
from pytest_prereg.judge.resolution import too_few_values, widening
from pytest_prereg.judge.sequences import columns_of, extremes, is_logarithmic, runs_of
from pytest_prereg.registry.regions import edges

if TYPE_CHECKING:
    from pytest_prereg.judge.findings import Doubt
    from pytest_prereg.judge.intervals import Moments
    from pytest_prereg.judge.question import Question
    from pytest_prereg.judge.samples import Reading
    from pytest_prereg.judge.sequences import Run

SMALLEST_N = 3
SMALLEST_N_FOR_HULL = 5
SKEWED_CV = 0.2
"""Above this sample CV, the mean of values of one sign gets the hull of Student's t and modified Cox."""
HULL = "hull of Student t and modified Cox"
_METHODS = {
    (None, False): "Student t",
    ("-", True): "paired t",
    ("-", False): "Welch t",
    ("/", True): "paired t on log ratios",
    ("/", False): "Welch t on logs",
}


class Located(msgspec.Struct, frozen=True):
    """An interval in the unit shown, and how it was made."""

    interval: Interval
    method: str
    approximate: bool


def find_location(question: Question, readings: list[Reading]) -> Finding:
    """The finding on a mean, geometric mean, difference or ratio."""
    columns = columns_of(question, readings)
    blank = Finding(
        level=question.confidence,
        method=method(question),
        n=min(map(len, columns)),
        repeats=tuple([reading.repeat.id for column in columns for reading in column]),
    )
    if unfit := _unfit(question, columns, blank.n):
        return replace(blank, doubt=unfit)
    runs = runs_of(question, columns)
    located = _locate(question, runs)
    if located.method == HULL and blank.n < SMALLEST_N_FOR_HULL:
        doubt = too_few(SMALLEST_N_FOR_HULL, blank.n, condition=f" where the CV is above {SKEWED_CV}")
        return replace(blank, method=HULL, doubt=doubt)
    return _decided(question, runs, located, blank)


def method(question: Question) -> str:
    """The method's name, before the data say whether the mean is skewed."""
    if question.operator is None and is_logarithmic(question):
        return "Student t on logs"
    return _METHODS[question.operator, question.paired]


def is_skewed(values: list[float], sample: Moments) -> bool:
    """Whether values of one sign vary so much that Student's t alone would not hold its level."""
    if sample.variance <= (SKEWED_CV * sample.mean) ** 2:
        return False
    return min(values) > 0 or max(values) < 0


def _unfit(question: Question, columns: list[list[Reading]], n: int) -> Doubt | None:
    """Why these readings have no interval at all."""
    if n < SMALLEST_N:
        per_arm = " per arm" if question.operator and not question.paired else ""
        return too_few(SMALLEST_N, n, "block" if question.paired else "repeat", per_arm)
    readings = [reading for column in columns for reading in column]
    if is_logarithmic(question):
        for reading in readings:
            if reading.low <= 0 and not reading.cut:
                detail = f"repeat {reading.repeat.id} is {reading.low:.10g}, which has no logarithm"
                return Reason.UNBOUNDED, detail
    return cut_off(question, readings)


def _locate(question: Question, runs: list[Run]) -> Located:
    samples = [intervals.moments(run.values) for run in runs]
    name, approximate = method(question), len(samples) > 1
    if approximate:
        interval = intervals.welch_from_moments(samples[0], samples[1], question.confidence)
    else:
        interval = intervals.t_from_moments(samples[0], question.confidence)
        if name == "Student t" and is_skewed(runs[0].values, samples[0]):
            cox = intervals.modified_cox(runs[0].values, question.confidence)
            interval, name, approximate = intervals.hull(interval, cox), HULL, True
    if question.resolutions:
        interval = _widened(interval, runs, samples)
    if is_logarithmic(question):
        interval = intervals.mapped(interval, intervals.exponential)
    return Located(interval, name, approximate)


def _widened(interval: Interval, runs: list[Run], samples: list[Moments]) -> Interval:
    by = math.fsum(widening(run.grain, sample.variance) for run, sample in zip(runs, samples, strict=True))
    return replace(interval, low=interval.low - by, high=interval.high + by) if by else interval


def _decided(question: Question, runs: list[Run], located: Located, blank: Finding) -> Finding:
    low, high = rounded(located.interval.low), rounded(located.interval.high)
    verdict = place(question, low, high)
    doubt = _doubt(question, runs, verdict)
    if doubt is None and verdict is Verdict.INCONCLUSIVE:
        doubt = straddled(question, low, high)
    flag, note = untested_tail(question, len(blank.repeats)) or (None, None)
    flags = (APPROXIMATE,) if located.approximate else ()
    return replace(
        blank,
        verdict=verdict if doubt is None else Verdict.INCONCLUSIVE,
        doubt=doubt,
        note=note,
        estimate=rounded(located.interval.estimate),
        interval=(low, high),
        method=located.method,
        flags=flags if flag is None else (*flags, flag),
    )


def _is_share(question: Question, runs: list[Run]) -> bool:
    """Whether a mean is that of a yes or no, whose t interval is far too narrow: all alike, it has no width.

    A count that is 0 or 1 throughout is none, if it is only asked on which side of a whole number it lies.
    """
    if question.operator is not None or question.statistic != "mean":
        return False
    found = set(runs[0].values)
    ends = (*edges(question.predicts), *edges(question.falsifier))
    between = any(0 < end < question.scale for end in ends)
    return found <= {0.0, question.scale} and (len(found) > 1 or between)


def _doubt(question: Question, runs: list[Run], verdict: Verdict) -> Doubt | None:
    """Why the interval may not be believed: too few distinct values, or a trend."""
    if not question.exact and any(too_few_values(run.values, run.magnitude) for run in runs):
        return Reason.RESOLUTION, "fewer than 3 distinct values, of a metric that is not exact"
    if question.exact and _is_share(question, runs):
        return Reason.RESOLUTION, 'every value is 0 or 1; that is for statistic = "proportion"'
    trend = drifting([run.values for run in runs])
    if trend is None:
        return None
    least, greatest = extremes(runs)
    if is_logarithmic(question):
        least, greatest = intervals.exponential(least), intervals.exponential(greatest)
    return None if all_inside(question, verdict, least, greatest) else (Reason.DRIFT, trend.describe())
