"""From readings to numbers on a working scale, where all estimands are means or differences of means."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.judge.samples import in_blocks
from pytest_prereg.judge.slopes import log_log_slope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_prereg.judge.question import Question
    from pytest_prereg.judge.samples import Reading


class Run(msgspec.Struct, frozen=True, gc=False):
    """Numbers on the working scale, in run order."""

    values: list[float]
    magnitude: float
    """Largest number that they were computed from, for telling rounding from variation."""
    grain: float
    """Resolution of one of them; 0 where none was declared."""


def columns_of(question: Question, readings: list[Reading]) -> list[list[Reading]]:
    """The readings of each arm; aligned by block, and of whole blocks only, where they are paired."""
    if len(question.arms) == 1:
        return [readings]
    if question.paired:
        blocks = in_blocks(readings, question.arms)
        return [[block[place] for block in blocks] for place in range(len(question.arms))]
    return [[reading for reading in readings if reading.repeat.arm == arm] for arm in question.arms]


def runs_of(question: Question, columns: list[list[Reading]]) -> list[Run]:
    """One run for one arm or for one number a block, else one of each arm."""
    if len(columns) == 1:
        return [run_of(question, columns[0])]
    runs = [run_of(question, column) for column in columns]
    if question.operator == "exponent":
        return [_slopes(question, columns, runs)]
    if question.points:
        return [_reduced(question, runs)]
    return [difference(*runs)] if question.paired else runs


def extremes(runs: Sequence[Run]) -> tuple[float, float]:
    """The least and the greatest value, or contrast of any two repeats, on the working scale."""
    first = runs[0].values
    if len(runs) == 1:
        return min(first), max(first)
    second = runs[1].values
    return min(first) - max(second), max(first) - min(second)


def run_of(question: Question, column: list[Reading]) -> Run:
    """The readings of one arm on the working scale."""
    grain = 0.0
    values = [reading.low for reading in column]
    if question.takes_logs:
        if question.resolutions:
            grain = max(reading.grain / reading.low for reading in column)
        values = [math.log(value) for value in values]
        return Run(values, max(1.0, *map(abs, values)), grain)
    if question.resolutions:
        grain = max(reading.grain for reading in column)
    return Run(values, max(map(abs, values)), grain)


def difference(left: Run, right: Run) -> Run:
    """``left - right``, block by block."""
    values = [a - b for a, b in zip(left.values, right.values, strict=True)]
    return Run(values, max(left.magnitude, right.magnitude), left.grain + right.grain)


def _reduced(question: Question, runs: list[Run]) -> Run:
    """One number a block: the least of its points, or on logarithms their mean."""
    arms = len(question.points[0])
    points = [runs[first : first + arms] for first in range(0, len(runs), arms)]
    singles = [difference(*point) if question.operator else point[0] for point in points]
    blocks = zip(*[single.values for single in singles], strict=True)
    if question.reduction == "min":
        values = [min(block) for block in blocks]
    else:
        values = [math.fsum(block) / len(block) for block in blocks]
    magnitude = max([single.magnitude for single in singles])
    return Run(values, magnitude, max([single.grain for single in singles]))


def _slopes(question: Question, columns: list[list[Reading]], runs: list[Run]) -> Run:
    """The exponent of each block; a slope is a weighted sum of the logarithms, and so is its grain."""
    levels = question.levels
    blocks = zip(*[[reading.low for reading in column] for column in columns], strict=True)
    values = [log_log_slope(levels, block) for block in blocks]
    places = range(len(levels))
    weights = [
        abs(log_log_slope(levels, [math.e if k == place else 1.0 for k in places])) for place in places
    ]
    magnitude = math.fsum([weight * run.magnitude for weight, run in zip(weights, runs, strict=True)])
    grain = math.fsum([weight * run.grain for weight, run in zip(weights, runs, strict=True)])
    return Run(values, magnitude, grain)
