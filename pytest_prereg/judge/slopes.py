"""How a quantity scales with a parameter: the exponent, from one block of repeats."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pytest_prereg.judge.intervals import logarithms

if TYPE_CHECKING:
    from collections.abc import Sequence


def log_log_slope(levels: Sequence[float], values: Sequence[float]) -> float:
    """The exponent b of ``values`` ~ ``levels`` ** b: least-squares slope of logarithm on logarithm.

    Raises:
        ValueError: Levels or values that are not positive, lists of different lengths, or fewer than two
            distinct levels.
    """
    across, up = logarithms(levels), logarithms(values)
    if len(across) != len(up) or len(set(across)) < 2:  # noqa: PLR2004
        raise ValueError(f"levels, values: {len(across)} levels and {len(up)} values have no slope")
    centre, middle = math.fsum(across) / len(across), math.fsum(up) / len(up)
    rises = [(x - centre) * (y - middle) for x, y in zip(across, up, strict=True)]
    return math.fsum(rises) / math.fsum([(x - centre) ** 2 for x in across])
