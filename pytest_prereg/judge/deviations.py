"""Findings on how much repeats vary: the standard deviation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from pytest_prereg.judge.drift import drifting
from pytest_prereg.judge.findings import ASSUMES_NORMAL, Drift, Finding, conclude
from pytest_prereg.judge.fitness import blank_finding, described, unfit
from pytest_prereg.judge.resolution import too_coarse, widening
from pytest_prereg.judge.sequences import run_of
from pytest_prereg.judge.spreads import chi_square_sd

if TYPE_CHECKING:
    from pytest_prereg.judge.question import Question
    from pytest_prereg.judge.samples import Reading

METHOD = "chi-square"


def find_deviation(question: Question, readings: list[Reading]) -> Finding:
    """The finding on a standard deviation. A repeat alone has none, so after a trend none can agree."""
    blank = blank_finding(question, [readings], METHOD)
    if doubt := unfit(question, [readings], blank.n):
        return replace(blank, doubt=doubt)
    run = run_of(question, readings)
    interval = chi_square_sd(run.values, question.confidence)
    if by := widening(run.grain, interval.estimate**2):
        interval = replace(interval, low=max(0.0, interval.low - by), high=interval.high + by)
    trend = drifting([run.values])
    return conclude(
        question,
        described(question, blank, METHOD, (ASSUMES_NORMAL,)),
        interval,
        doubt=too_coarse(question, [run]),
        drift=trend and Drift(trend),
    )
