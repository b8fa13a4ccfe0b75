"""Fieller's intervals for the ratio of two means.

A ratio of means is no mean of ratios: its interval comes from the values of numerator - ratio × denominator,
which are normal where both are. With r the estimate, e = x - r y has mean 0, and the limits are r + those of
the ratio of e to y. Written so, they lose no digits where the values hardly vary, and always hold r.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from pytest_prereg.judge.intervals import CONFIDENCE, Interval, moments, satterthwaite_df
from pytest_prereg.judge.quantiles import t_quantile

if TYPE_CHECKING:
    from collections.abc import Sequence


class _Parts(NamedTuple):
    """Squared standard errors of e = x - r y and of y, and their covariance."""

    residual: float
    denominator: float
    covariance: float


def fieller(
    numerator: float,
    denominator: float,
    *,
    numerator_se: float,
    denominator_se: float,
    df: float,
    covariance: float = 0.0,
    confidence: float = CONFIDENCE,
) -> Interval:
    """Fieller's interval for a ratio of two means, from their standard errors and covariance (Fieller 1954).

    Both sides are infinite where the denominator does not differ from zero at this confidence; the estimate
    is NaN where the denominator is zero.
    """
    if denominator == 0:
        return _unbounded(df, confidence)
    ratio, variance = numerator / denominator, denominator_se**2
    residual = numerator_se**2 - 2 * ratio * covariance + ratio**2 * variance
    parts = _Parts(max(residual, 0.0), variance, covariance - ratio * variance)
    return _about(ratio, denominator, parts, df, confidence)


def paired_fieller(
    numerators: Sequence[float], denominators: Sequence[float], confidence: float = CONFIDENCE
) -> Interval:
    """Fieller's interval for ``mean(numerators) / mean(denominators)`` of values measured together.

    So too for a ratio of sums over repeats. n - 1 degrees of freedom; exact where the pairs are normal
    (Fieller 1954). Both sides are infinite where the denominators' mean does not differ from zero at this
    confidence.

    Raises:
        ValueError: Fewer than two pairs, or lists of different lengths.
    """
    above, below = moments(numerators), moments(denominators)
    n, df = below.n, below.n - 1
    pairs = list(zip(numerators, denominators, strict=True))
    if below.mean == 0:
        return _unbounded(df, confidence)
    ratio = above.mean / below.mean
    residuals = [(x - above.mean) - ratio * (y - below.mean) for x, y in pairs]
    shared = [e * (y - below.mean) for e, (_, y) in zip(residuals, pairs, strict=True)]
    parts = _Parts(
        residual=math.fsum([e * e for e in residuals]) / df / n,
        denominator=below.variance / n,
        covariance=math.fsum(shared) / df / n,
    )
    return _about(ratio, below.mean, parts, df, confidence)


def unpaired_fieller(
    left: Sequence[float], right: Sequence[float], confidence: float = CONFIDENCE
) -> Interval:
    """Fieller's interval for ``mean(left) / mean(right)`` of independent samples.

    Degrees of freedom after Satterthwaite, of left - ratio × right at the estimated ratio (Tamhane and Logan,
    Journal of Biopharmaceutical Statistics 14, 2004; ``ttestratio`` of R's mratios); approximate. Both
    sides are infinite where the mean of ``right`` does not differ from zero at this confidence.

    Raises:
        ValueError: Fewer than two values on a side.
    """
    above, below = moments(left), moments(right)
    if below.mean == 0:
        return _unbounded(None, confidence)
    ratio, variance = above.mean / below.mean, below.variance / below.n
    own, others = above.variance / above.n, ratio**2 * variance
    parts = _Parts(residual=own + others, denominator=variance, covariance=-ratio * variance)
    return _about(ratio, below.mean, parts, satterthwaite_df(own, above.n, others, below.n), confidence)


def _about(ratio: float, denominator: float, parts: _Parts, df: float, confidence: float) -> Interval:
    t, size = t_quantile(df, confidence), abs(denominator)
    shrunk = t * math.sqrt(parts.denominator) / size
    if shrunk >= 1:
        return _unbounded(df, confidence, ratio)
    half = t * math.sqrt(parts.residual) / size
    shift = t / size * (t / size) * parts.covariance
    known = (1 - shrunk) * (1 + shrunk)
    root = math.sqrt(shift**2 + known * half**2)
    low, high = ratio - (shift + root) / known, ratio + (root - shift) / known
    return Interval(estimate=ratio, low=low, high=high, level=confidence, df=df)


def _unbounded(df: float | None, confidence: float, ratio: float = math.nan) -> Interval:
    return Interval(estimate=ratio, low=-math.inf, high=math.inf, level=confidence, df=df)
