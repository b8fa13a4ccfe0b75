"""From readings to numbers on a working scale, where all estimands are means or differences of means."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from pytest_prereg.judge.samples import in_blocks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_prereg.judge.question import Question
    from pytest_prereg.judge.samples import Reading


class Run(NamedTuple):
    """Numbers on the working scale, in run order."""

    values: list[float]
    magnitude: float
    """Largest number that they were computed from, for telling rounding from variation."""
    grain: float
    """Resolution of one of them; 0 where none was declared."""


def columns_of(question: Question, readings: list[Reading]) -> list[list[Reading]]:
    """The readings of each arm; aligned by block, and of whole blocks only, where they are paired."""
    if question.paired:
        pairs = in_blocks(readings, question.arms)
        return [[pair[0] for pair in pairs], [pair[1] for pair in pairs]]
    if question.operator is None:
        return [readings]
    return [[reading for reading in readings if reading.repeat.arm == arm] for arm in question.arms]


def is_logarithmic(question: Question) -> bool:
    """Whether the working scale is the logarithm."""
    return question.statistic == "geometric-mean"


def runs_of(question: Question, columns: list[list[Reading]]) -> list[Run]:
    """One run for one arm or for block contrasts, two for two arms without blocks."""
    runs = [_run(question, column) for column in columns]
    return [_differences(*runs)] if question.paired else runs


def extremes(runs: Sequence[Run]) -> tuple[float, float]:
    """The least and the greatest value, or contrast of any two repeats, on the working scale."""
    first = runs[0].values
    if len(runs) == 1:
        return min(first), max(first)
    second = runs[1].values
    return min(first) - max(second), max(first) - min(second)


def _run(question: Question, column: list[Reading]) -> Run:
    grain = 0.0
    values = [reading.low for reading in column]
    if is_logarithmic(question):
        if question.resolutions:
            grain = max(reading.grain / reading.low for reading in column)
        values = [math.log(value) for value in values]
        return Run(values, max(1.0, *map(abs, values)), grain)
    if question.resolutions:
        grain = max(reading.grain for reading in column)
    return Run(values, max(map(abs, values)), grain)


def _differences(left: Run, right: Run) -> Run:
    values = [a - b for a, b in zip(left.values, right.values, strict=True)]
    return Run(values, max(left.magnitude, right.magnitude), left.grain + right.grain)
