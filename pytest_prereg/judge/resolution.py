"""What a coarse clock does to a verdict: too few distinct values decide nothing, a declared grain widens."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from pytest_prereg.judge.model import Reason
from pytest_prereg.judge.shares import are_yes_or_no
from pytest_prereg.registry.quantities import evaluate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_prereg.evidence.model import Value
    from pytest_prereg.judge.findings import Doubt
    from pytest_prereg.judge.question import Question
    from pytest_prereg.judge.samples import Reading
    from pytest_prereg.judge.sequences import Run
    from pytest_prereg.registry.model import Node

_DISTINCT = 3
_NOISE = 1e-12
"""Relative size of differences that arithmetic alone could have made."""


def grain(question: Question, node: Node, values: Mapping[str, Value]) -> float:
    """Resolution of ``node`` in one repeat: by how much a step of its metrics' resolutions moves it.

    In the unit of ``node``. Steps of several metrics are added, the worst case. Infinite where it has no
    value a step away.
    """
    return math.fsum(_step(question, node, values, name, size) for name, size in question.resolutions.items())


def too_coarse(
    question: Question, runs: Iterable[Run], columns: Sequence[Sequence[Reading]] = ()
) -> Doubt | None:
    """Why readings that hardly differ decide nothing, unless they are exact.

    Args:
        question: What is asked of them.
        runs: The numbers whose variation counts.
        columns: The readings of each arm, whose location or ratio it is; none of a standard deviation.
    """
    if columns and are_yes_or_no(question, columns):
        return Reason.RESOLUTION, 'every value is 0 or 1; that is for statistic = "proportion"'
    if not question.exact:
        for run in runs:
            if too_few_values(run.values, run.magnitude):
                return Reason.RESOLUTION, few_values(question)
    return None


def few_values(question: Question) -> str:
    """Why so few distinct values say nothing."""
    if question.metrics and all(metric.exact for metric in question.metrics):
        return "fewer than 3 distinct values, and a condition hides how far exact metrics were from another"
    return "fewer than 3 distinct values, of a metric that is not exact"


def too_few_values(sequence: Sequence[float], magnitude: float) -> bool:
    """Whether fewer than three values differ by more than rounding at ``magnitude``."""
    ordered = sorted(sequence)
    least, distinct = _NOISE * magnitude, 1
    for below, above in pairwise(ordered):
        distinct += above - below > least
        if distinct == _DISTINCT:
            return False
    return True


def widening(size: float, variance: float) -> float:
    """Half the grain where it exceeds half a standard deviation, else nothing."""
    return size / 2 if size > 0.5 * math.sqrt(variance) else 0.0


def _step(question: Question, node: Node, values: Mapping[str, Value], name: str, size: float) -> float:
    try:
        above, below = (
            evaluate(node, {**values, name: _shifted(values[name], by)}, question.constants)
            for by in (size / 2, -size / 2)
        )
    except (ArithmeticError, ValueError):
        return math.inf
    return abs(above - below)


def _shifted(value: Value, by: float) -> Value:
    return [one + by for one in value] if isinstance(value, list) else value + by
