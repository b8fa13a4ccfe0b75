"""Intervals for how much values vary."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pytest_prereg.judge.intervals import CONFIDENCE, Interval, moments
from pytest_prereg.judge.quantiles import chi_square_quantile

if TYPE_CHECKING:
    from collections.abc import Sequence


def chi_square_sd(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Interval for the standard deviation of normal values, in their unit: chi-square, n - 1 df.

    Exact for normal values only, and more values do not mend that: heavy tails make it too narrow. Below a
    confidence of 0.37 it is widened to hold the estimate.

    Raises:
        ValueError: Fewer than two values.
    """
    sample = moments(values)
    df, tail, sd = sample.n - 1, (1 - confidence) / 2, math.sqrt(sample.variance)
    low, high = (sd * math.sqrt(df / chi_square_quantile(df, p)) for p in (1 - tail, tail))
    return Interval(estimate=sd, low=min(low, sd), high=max(high, sd), level=confidence)
