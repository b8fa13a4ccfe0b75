"""Two-sided intervals for means, ratios of geometric means, quantiles and proportions, one number per repeat.

Every function takes the values of independent repeats in any order and returns an :class:`Interval` at the
``confidence`` asked for. They raise ``ValueError`` where the method has no answer. The rules of a verdict
(smallest n, resolution, drift) are elsewhere: see :mod:`pytest_prereg.judge.verdicts`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.judge.order_statistics import coverage, ranks
from pytest_prereg.judge.quantiles import beta_quantile, t_quantile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CONFIDENCE = 0.95
_NEEDED_FOR_VARIANCE = 2
_LEAST_VARIANCE = 1e-290
"""Below this the squares of deviations are no longer numbers of full precision."""
_ROUNDING = 1e-30
"""Relative to the squared mean, a variance that rounding alone could make."""


class Interval(msgspec.Struct, kw_only=True, frozen=True, gc=False):
    """A point estimate between two limits; an unbounded side is ``±inf``."""

    estimate: float
    low: float
    high: float
    level: float
    """Confidence achieved: above the one asked for where the method is discrete."""
    df: float | None = None
    """Degrees of freedom, where the limits rest on a t distribution."""


class Moments(msgspec.Struct, frozen=True, gc=False):
    """Size, mean and unbiased variance of a sample."""

    n: int
    mean: float
    variance: float


def moments(values: Sequence[float]) -> Moments:
    """Size, mean and unbiased variance, summed without rounding error (``fsum``).

    Raises:
        OverflowError: Deviations are too large, or too small, to be squared.
    """
    n = len(values)
    if n < _NEEDED_FOR_VARIANCE:
        raise ValueError(f"values: a variance needs 2, got {n}")
    mean = math.fsum(values) / n
    variance = math.fsum([(value - mean) ** 2 for value in values]) / (n - 1)
    if variance < _LEAST_VARIANCE or variance < _ROUNDING * mean * mean:
        if min(values) == max(values):  # whose mean may be a last digit away from them
            return Moments(n, values[0], 0.0)
        if variance < _LEAST_VARIANCE:
            raise OverflowError("values: their deviations are too small to be squared")
    return Moments(n, mean, variance)


def t_from_moments(sample: Moments, confidence: float = CONFIDENCE) -> Interval:
    """Student's t interval for a mean."""
    df = sample.n - 1
    half = t_quantile(df, confidence) * math.sqrt(sample.variance / sample.n)
    mean = sample.mean
    return Interval(estimate=mean, low=mean - half, high=mean + half, level=confidence, df=df)


def welch_from_moments(left: Moments, right: Moments, confidence: float = CONFIDENCE) -> Interval:
    """Welch's interval for the difference of two means (Welch 1947), Satterthwaite degrees of freedom."""
    a, b = left.variance / left.n, right.variance / right.n
    df = satterthwaite_df(a, left.n, b, right.n)
    half = t_quantile(df, confidence) * math.sqrt(a + b)
    shift = left.mean - right.mean
    return Interval(estimate=shift, low=shift - half, high=shift + half, level=confidence, df=df)


def satterthwaite_df(left: float, left_n: int, right: float, right_n: int) -> float:
    """Degrees of freedom of the sum of two squared standard errors (Satterthwaite 1946)."""
    if left == right == 0:
        return left_n + right_n - 2
    share = left / (left + right)
    return 1 / (share**2 / (left_n - 1) + (1 - share) ** 2 / (right_n - 1))


def student_t(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Student's t interval for the mean; exact for normal values."""
    return t_from_moments(moments(values), confidence)


def paired_t(left: Sequence[float], right: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Student's t interval for the mean of ``left - right``, block by block."""
    return student_t([a - b for a, b in zip(left, right, strict=True)], confidence)


def welch(left: Sequence[float], right: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Welch's interval for ``mean(left) - mean(right)`` of independent samples."""
    return welch_from_moments(moments(left), moments(right), confidence)


def welch_t(left: Sequence[float], right: Sequence[float]) -> tuple[float, float]:
    """Welch's t statistic of no difference, and its degrees of freedom."""
    a, b = moments(left), moments(right)
    squared = a.variance / a.n + b.variance / b.n
    if squared == 0:
        raise ValueError("left, right: both are constant, so t is not defined")
    return (a.mean - b.mean) / math.sqrt(squared), satterthwaite_df(
        a.variance / a.n, a.n, b.variance / b.n, b.n
    )


def log_t(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Interval for the geometric mean: Student's t on logarithms; exact for lognormal values."""
    return mapped(student_t(logarithms(values), confidence), exponential)


def paired_log_t(left: Sequence[float], right: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Interval for the geometric mean of ``left / right``, block by block."""
    return mapped(paired_t(logarithms(left), logarithms(right), confidence), exponential)


def log_welch(left: Sequence[float], right: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Interval for the ratio of two geometric means of independent samples: Welch on logarithms."""
    return mapped(welch(logarithms(left), logarithms(right), confidence), exponential)


def logarithms(values: Sequence[float]) -> list[float]:
    """Natural logarithms; ``ValueError`` for a value that has none."""
    if min(values, default=1.0) <= 0:
        raise ValueError(f"values: {min(values)!r} has no logarithm")
    return [math.log(value) for value in values]


def exponential(value: float) -> float:
    """``exp``, with ``inf`` where it would overflow."""
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def mapped(interval: Interval, function: Callable[[float], float]) -> Interval:
    """The interval on another, increasing scale."""
    return msgspec.structs.replace(
        interval,
        estimate=function(interval.estimate),
        low=function(interval.low),
        high=function(interval.high),
    )


def modified_cox(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Interval for the arithmetic mean of lognormal values of one sign.

    Cox's method as modified by Olsson (Journal of Statistics Education 13(1), 2005): t in place of z. The
    estimate is that of the lognormal mean, ``exp(mean + variance / 2)`` on logarithms.
    """
    if max(values) < 0:
        mirrored = modified_cox([-value for value in values], confidence)
        return msgspec.structs.replace(
            mirrored, estimate=-mirrored.estimate, low=-mirrored.high, high=-mirrored.low
        )
    logs = moments(logarithms(values))
    n, variance = logs.n, logs.variance
    centre = logs.mean + variance / 2
    half = t_quantile(n - 1, confidence) * math.sqrt(variance / n + variance**2 / (2 * (n - 1)))
    on_logs = Interval(estimate=centre, low=centre - half, high=centre + half, level=confidence, df=n - 1)
    return mapped(on_logs, exponential)


def hull(first: Interval, second: Interval) -> Interval:
    """The shortest interval that holds both; the estimate and degrees of freedom are the first's."""
    low, high = min(first.low, second.low), max(first.high, second.high)
    return msgspec.structs.replace(first, low=low, high=high)


def order_statistic_median(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Distribution-free interval for the median between two order statistics.

    Its ``level`` is the one achieved, 1 - 2 P(Bin(n, 1/2) < rank): 0.984 for seven values. A side that so few
    values cannot bound is infinite (Conover, Practical Nonparametric Statistics, 3.2).
    """
    ordered, n = sorted(values), len(values)
    if not ordered:
        raise ValueError("values: a median needs at least one")
    return _between_ranks(ordered, 0.5, confidence, (ordered[(n - 1) // 2] + ordered[n // 2]) / 2)


def order_statistic_quantile(values: Sequence[float], q: float, confidence: float = CONFIDENCE) -> Interval:
    """Distribution-free interval for the ``q`` quantile between two order statistics, each on its own tail.

    A side that so few values cannot bound is infinite; ``level`` is the one achieved (Conover, Practical
    Nonparametric Statistics, 3.2). The estimate is the smallest value that at least a share ``q`` of the
    values do not exceed (type 1 of Hyndman and Fan, 1996), which lies inside at every n; for the median it
    differs from :func:`order_statistic_median`'s, which halves the two middle values.
    """
    ordered = sorted(values)
    if not ordered or not 0 < q < 1:
        raise ValueError(f"values, q: {len(ordered)} values have no quantile {q}")
    # As typed: the float 0.9 lies above nine tenths, of which ten values would take the tenth.
    rank = math.ceil(len(ordered) * Fraction(repr(float(q))))
    return _between_ranks(ordered, q, confidence, ordered[rank - 1])


def _between_ranks(ordered: list[float], q: float, confidence: float, estimate: float) -> Interval:
    n = len(ordered)
    lower, upper = ranks(n, q, confidence)
    return Interval(
        estimate=estimate,
        low=-math.inf if lower is None else ordered[lower - 1],
        high=math.inf if upper is None else ordered[upper - 1],
        level=coverage(n, q, lower, upper),
    )


def clopper_pearson(successes: int, n: int, confidence: float = CONFIDENCE) -> Interval:
    """Exact interval for a proportion (Clopper and Pearson 1934)."""
    if not 0 <= successes <= n or n < 1:
        raise ValueError(f"successes: {successes} of {n} is no proportion")
    low, high = proportion_limits(successes, n, confidence)
    return Interval(estimate=successes / n, low=low, high=high, level=confidence)


def proportion_limits(successes: float, n: float, confidence: float) -> tuple[float, float]:
    """Limits of Clopper and Pearson for counts that need not be whole, as effective sizes are not."""
    tail = (1 - confidence) / 2
    low = beta_quantile(successes, n - successes + 1, tail) if successes else 0.0
    high = beta_quantile(successes + 1, n - successes, 1 - tail) if successes < n else 1.0
    return low, high
