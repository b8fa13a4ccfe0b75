"""Which order statistics bound a quantile, whatever the distribution, and how many values that takes."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import accumulate


@lru_cache(maxsize=1024)
def ranks(n: int, q: float, confidence: float) -> tuple[int | None, int | None]:
    """Ranks (from 1) of the values that bound the ``q`` quantile, each at half of ``1 - confidence``.

    ``None`` for a side that so few values cannot bound (Conover, Practical Nonparametric Statistics, 3.2).
    """
    tail = (1 - confidence) / 2
    below = _below(n, q)
    lower = sum(chance <= tail for chance in below) or None
    upper = n + 1 - sum(1 - chance <= tail for chance in below)
    return lower, upper if upper <= n else None


def coverage(n: int, q: float, lower: int | None, upper: int | None) -> float:
    """Probability that the values of these ranks enclose the ``q`` quantile of a continuous distribution."""
    below = _below(n, q)
    above = 1.0 if upper is None else below[upper - 1]
    return above - (0.0 if lower is None else below[lower - 1])


def smallest_n_for_median(confidence: float) -> int:
    """Fewest values whose extremes bound the median on both sides: 6 at 95 %."""
    n = 1
    while 2 * 0.5**n > 1 - confidence:
        n += 1
    return n


def smallest_n_for_quantile(q: float, confidence: float) -> tuple[int, int]:
    """Fewest values that bound the ``q`` quantile from below, and fewest that bound it from above.

    Each side at half of ``1 - confidence``: at 95 %, 2 and 36 for q = 0.9, 2 and 72 for 0.95, 1 and 368 for
    0.99.
    """
    if not 0 < q < 1:
        raise ValueError(f"q: no values bound the quantile {q}, which is not between 0 and 1")
    tail = (1 - confidence) / 2
    lower = _roughly(tail, math.log1p(-q))
    while _all_above(lower, q) > tail:
        lower += 1
    upper = _roughly(tail, math.log(q))
    while 1 - _not_all_below(upper, q) > tail:
        upper += 1
    return lower, upper


def wilks_n(content: float, confidence: float = 0.95) -> int:
    """Fewest values whose largest exceeds the ``content`` quantile: 59 for 95/95 (Wilks 1941)."""
    n = 1
    while 1 - content**n < confidence:
        n += 1
    return n


def wilks_n_two_sided(content: float, confidence: float = 0.95) -> int:
    """Fewest values whose extremes hold ``content`` of the distribution: 93 for 95/95 (Wilks 1941)."""
    n = 2
    while 1 - content**n - n * (1 - content) * content ** (n - 1) < confidence:
        n += 1
    return n


def _roughly(tail: float, log_chance: float) -> int:
    """At most the number of independent events that all happen with a chance of ``tail``."""
    return max(1, math.floor(math.log(tail) / log_chance) - 1)


def _all_above(n: int, q: float) -> float:
    """First of ``_below``."""
    part, whole = q.as_integer_ratio()
    return float((whole - part) ** n / whole**n)


def _not_all_below(n: int, q: float) -> float:
    """Last of ``_below``."""
    part, whole = q.as_integer_ratio()
    return float((whole**n - part**n) / whole**n)


@lru_cache(maxsize=1024)
def _below(n: int, q: float) -> tuple[float, ...]:
    """P(fewer than ``rank`` of ``n`` values lie below the quantile) for each rank, in exact arithmetic."""
    part, whole = q.as_integer_ratio()
    count, counts = (whole - part) ** n, []
    for k in range(n):
        counts.append(count)
        count = count * (n - k) * part // ((k + 1) * (whole - part))
    total = whole**n
    return tuple([below / total for below in accumulate(counts)])
