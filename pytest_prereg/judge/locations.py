"""Findings that rest on a t distribution: means, geometric means, their differences, ratios, slopes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from pytest_prereg.judge import intervals
from pytest_prereg.judge.drift import drifting
from pytest_prereg.judge.findings import (
    APPROXIMATE,
    ASSUMES_NORMAL,
    Drift,
    Finding,
    conclude,
    plural,
    too_few,
)
from pytest_prereg.judge.fitness import blank_finding, described, unfit
from pytest_prereg.judge.intervals import Interval
from pytest_prereg.judge.model import Reason
from pytest_prereg.judge.resolution import too_coarse, widening
from pytest_prereg.judge.sequences import columns_of, extremes, runs_of
from pytest_prereg.judge.sequential import t_mixture_interval

if TYPE_CHECKING:
    from pytest_prereg.judge.findings import Doubt
    from pytest_prereg.judge.intervals import Moments
    from pytest_prereg.judge.question import Question
    from pytest_prereg.judge.samples import Reading
    from pytest_prereg.judge.sequences import Run

SMALLEST_N_FOR_HULL = 5
SKEWED_CV = 0.2
"""Above this sample CV, the mean of values of one sign gets the hull of Student's t and modified Cox."""
HULL = "hull of Student t and modified Cox"
SEQUENCE = "t-mixture confidence sequence"
_METHODS = {
    ("-", True): "paired t",
    ("-", False): "Welch t",
    ("/", True): "paired t on log ratios",
    ("/", False): "Welch t on logs",
    ("exponent", True): "Student t on log-log slopes",
}


class Located(msgspec.Struct, frozen=True, gc=False):
    """An interval in the unit shown, and how it was made."""

    interval: Interval
    method: str
    flags: tuple[str, ...] = ()


def find_location(question: Question, readings: list[Reading]) -> Finding:
    """The finding on a mean or geometric mean, of one arm, of block contrasts, or of two arms' difference."""
    columns = columns_of(question, readings)
    blank = blank_finding(question, columns, method(question))
    if doubt := unfit(question, columns, blank.n):
        return replace(blank, doubt=doubt)
    runs = runs_of(question, columns)
    located = _locate(question, runs, blank.method)
    if (located.method == HULL or question.anytime) and (doubt := _unsettled(question, located, blank.n)):
        return replace(blank, method=located.method, doubt=doubt)
    blank = described(question, blank, located.method, located.flags)
    doubt = too_coarse(question, runs, columns)
    return conclude(question, blank, located.interval, doubt=doubt, drift=_drift(question, runs))


def method(question: Question) -> str:
    """The method's name, before the data say whether the mean is skewed."""
    operator, paired = question.operator, question.paired
    name = _METHODS[operator, paired] if operator is not None else "Student t"
    if operator is None and question.is_logarithmic:
        name = "Student t on logs"
    if question.anytime:
        name = name.replace("Student t", SEQUENCE).replace("paired t", f"paired {SEQUENCE}")
    if question.points:
        name = f"{name}, {question.reduction} of {plural(len(question.points), 'point')} in each block"
    return name


def is_skewed(values: list[float], sample: Moments) -> bool:
    """Whether values of one sign vary so much that Student's t alone would not hold its level."""
    if sample.variance <= (SKEWED_CV * sample.mean) ** 2:
        return False
    return min(values) > 0 or max(values) < 0


def _locate(question: Question, runs: list[Run], name: str) -> Located:
    samples = [intervals.moments(run.values) for run in runs]
    located = _on_working_scale(question, runs, samples, name)
    interval = located.interval
    if question.resolutions:
        interval = _widened(interval, runs, samples)
    if question.is_logarithmic:
        interval = intervals.mapped(interval, intervals.exponential)
    if question.limits is not None:
        interval = _clipped(interval, *question.limits)
    return located if interval is located.interval else replace(located, interval=interval)


def _on_working_scale(question: Question, runs: list[Run], samples: list[Moments], name: str) -> Located:
    confidence = question.confidence
    if len(samples) > 1:
        return Located(intervals.welch_from_moments(samples[0], samples[1], confidence), name, (APPROXIMATE,))
    if question.anytime:
        return Located(t_mixture_interval(samples[0], confidence), name, (ASSUMES_NORMAL,))
    interval = intervals.t_from_moments(samples[0], confidence)
    is_mean = question.statistic == "mean" and question.operator is None
    if is_mean and is_skewed(runs[0].values, samples[0]):
        cox = intervals.modified_cox(runs[0].values, confidence)
        return Located(intervals.hull(interval, cox), HULL, (APPROXIMATE,))
    flags = (APPROXIMATE,) if question.exact and _is_two_valued(runs[0].values) else ()
    return Located(interval, name, flags)


def _is_two_valued(values: list[float]) -> bool:
    """Whether an exact metric took two values: no t distribution, however often either was seen."""
    return len(set(values)) == 2  # noqa: PLR2004


def _widened(interval: Interval, runs: list[Run], samples: list[Moments]) -> Interval:
    by = math.fsum(widening(run.grain, sample.variance) for run, sample in zip(runs, samples, strict=True))
    return replace(interval, low=interval.low - by, high=interval.high + by) if by else interval


def _clipped(interval: Interval, least: float, greatest: float) -> Interval:
    return replace(interval, low=max(interval.low, least), high=min(interval.high, greatest))


def _unsettled(question: Question, located: Located, n: int) -> Doubt | None:
    """Why so few values, as they turned out, have no interval."""
    noun = "block" if question.paired else "repeat"
    if located.method == HULL and n < SMALLEST_N_FOR_HULL:
        return too_few(SMALLEST_N_FOR_HULL, n, noun, condition=f" where the CV is above {SKEWED_CV}")
    if question.anytime and math.isinf(located.interval.high):
        detail = f"{plural(n, noun)} bound nothing where every look counts at {question.confidence:.6g}"
        return Reason.N_TOO_SMALL, detail
    return None


def _drift(question: Question, runs: list[Run]) -> Drift | None:
    trend = drifting([run.values for run in runs], question.questions)
    if trend is None:
        return None
    least, greatest = extremes(runs)
    if question.is_logarithmic:
        least, greatest = intervals.exponential(least), intervals.exponential(greatest)
    return Drift(trend, least, greatest)
