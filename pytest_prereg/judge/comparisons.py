"""Findings on several arms at once: a plateau, where no two differ much, and a rise from each to the next."""

from __future__ import annotations

import math
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from pytest_prereg.judge.contrasts import (
    confidence_of_pairs,
    confidence_of_steps,
    largest_difference,
    smallest_step,
)
from pytest_prereg.judge.drift import drifting
from pytest_prereg.judge.findings import APPROXIMATE, Drift, Finding, conclude
from pytest_prereg.judge.fitness import blank_finding, described, unfit
from pytest_prereg.judge.intervals import moments, t_from_moments, welch_from_moments
from pytest_prereg.judge.resolution import too_coarse, widening
from pytest_prereg.judge.sequences import columns_of, difference, extremes, run_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_prereg.judge.intervals import Interval
    from pytest_prereg.judge.question import Question
    from pytest_prereg.judge.samples import Reading
    from pytest_prereg.judge.sequences import Run


class _Rule(NamedTuple):
    """How pairs of arms make one number."""

    pairs: Callable[[Sequence[Run]], list[tuple[Run, Run]]]
    """The first less the second of each is a difference that counts."""
    corrected: Callable[[float, int], float]
    combine: Callable[[Sequence[Interval], Sequence[Interval]], Interval]
    span: Callable[[Sequence[tuple[float, float]]], tuple[float, float]]
    """Least and greatest value of the number, from those of each difference."""


def _all_pairs(runs: Sequence[Run]) -> list[tuple[Run, Run]]:
    return list(combinations(runs, 2))


def _steps(runs: Sequence[Run]) -> list[tuple[Run, Run]]:
    return [(later, earlier) for earlier, later in pairwise(runs)]


def _span_of_largest(spans: Sequence[tuple[float, float]]) -> tuple[float, float]:
    least = max(max(low, -high, 0.0) for low, high in spans)
    return least, max(max(abs(low), abs(high)) for low, high in spans)


def _span_of_smallest(spans: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return min(low for low, _ in spans), min(high for _, high in spans)


_RULES = {
    "plateau": _Rule(_all_pairs, confidence_of_pairs, largest_difference, _span_of_largest),
    "increasing": _Rule(_steps, confidence_of_steps, smallest_step, _span_of_smallest),
}
_WORDS = {"plateau": "largest of the pairwise differences", "increasing": "smallest of the steps"}


def find_comparison(question: Question, readings: list[Reading]) -> Finding:
    """The finding on the largest difference of any two arms, or on the smallest step to the next."""
    columns = columns_of(question, readings)
    words = _WORDS[question.operator or ""]
    method = f"{'paired t' if question.paired else 'Welch t'}, {words}"
    blank = blank_finding(question, columns, method)
    if doubt := unfit(question, columns, blank.n):
        return replace(blank, doubt=doubt)
    rule, runs = _RULES[question.operator or ""], [run_of(question, column) for column in columns]
    pairs = rule.pairs(runs)
    contrasts = [[difference(*pair)] if question.paired else list(pair) for pair in pairs]
    interval = _interval(question, rule, contrasts)
    blank = described(question, blank, method, () if question.paired else (APPROXIMATE,))
    sequences = [run for contrast in contrasts for run in contrast] if question.paired else runs
    return conclude(
        question,
        blank,
        interval,
        doubt=too_coarse(question, sequences, columns),
        drift=_drift(rule, contrasts, sequences),
    )


def _interval(question: Question, rule: _Rule, contrasts: list[list[Run]]) -> Interval:
    confidence = question.confidence
    stricter = rule.corrected(confidence, len(contrasts))
    return rule.combine(
        [_of_one(contrast, confidence) for contrast in contrasts],
        [_of_one(contrast, stricter) for contrast in contrasts],
    )


def _of_one(contrast: list[Run], confidence: float) -> Interval:
    """The interval of one difference: of block differences, or of two arms."""
    samples = [moments(run.values) for run in contrast]
    if len(samples) == 1:
        interval = t_from_moments(samples[0], confidence)
    else:
        interval = welch_from_moments(samples[0], samples[1], confidence)
    by = math.fsum(
        widening(run.grain, sample.variance) for run, sample in zip(contrast, samples, strict=True)
    )
    return replace(interval, low=interval.low - by, high=interval.high + by) if by else interval


def _drift(rule: _Rule, contrasts: list[list[Run]], sequences: list[Run]) -> Drift | None:
    trend = drifting([run.values for run in sequences])
    return trend and Drift(trend, *rule.span([extremes(contrast) for contrast in contrasts]))
