"""What a coarse clock does to a verdict: too few distinct values decide nothing, a declared grain widens."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from pytest_prereg.registry.quantities import evaluate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_prereg.evidence.model import Value
    from pytest_prereg.judge.question import Question

_DISTINCT = 3
_NOISE = 1e-12
"""Relative size of differences that arithmetic alone could have made."""


def grain(question: Question, values: Mapping[str, Value]) -> float:
    """Resolution of the quantity in one repeat: by how much a step of its metrics' resolutions moves it.

    Steps of several metrics are added, the worst case. Infinite where the quantity has no value a step away.
    """
    return math.fsum(_step(question, values, name, size) for name, size in question.resolutions.items())


def too_few_values(sequence: Sequence[float], magnitude: float) -> bool:
    """Whether fewer than three values differ by more than rounding at ``magnitude``."""
    ordered = sorted(sequence)
    least, distinct = _NOISE * magnitude, 1
    for below, above in pairwise(ordered):
        distinct += above - below > least
    return distinct < _DISTINCT


def widening(size: float, variance: float) -> float:
    """Half the grain where it exceeds half a standard deviation, else nothing."""
    return size / 2 if size > 0.5 * math.sqrt(variance) else 0.0


def _step(question: Question, values: Mapping[str, Value], name: str, size: float) -> float:
    try:
        above, below = (
            evaluate(
                question.node,
                {**values, "completed": 1.0, name: _shifted(values[name], by)},
                question.constants,
            )
            for by in (size / 2, -size / 2)
        )
    except (ArithmeticError, ValueError):
        return math.inf
    return abs(above - below) * question.scale


def _shifted(value: Value, by: float) -> Value:
    return [one + by for one in value] if isinstance(value, list) else value + by
