"""Several claims of one study together: the smallest alpha at which each is decided, and Holm's levels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pytest_prereg.judge.model import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SMALLEST_ALPHA = 1e-12
LARGEST_ALPHA = 0.5
_PRECISION = 1e-6


def smallest_alpha(verdict_at: Callable[[float], Verdict]) -> float | None:
    """The smallest alpha at which a rule decides: the p-value of its verdict.

    Found by bisection on the logarithm, which takes intervals to grow as alpha falls. The rule decides at
    what is returned, which is at most a millionth too large; discrete methods jump there.

    Args:
        verdict_at: The verdict at ``confidence = 1 - alpha``, two-sided, by alpha.

    Returns:
        At least ``SMALLEST_ALPHA``, or ``None`` where the rule does not even decide at ``LARGEST_ALPHA``.
    """
    if not _decides(verdict_at, LARGEST_ALPHA):
        return None
    if _decides(verdict_at, SMALLEST_ALPHA):
        return SMALLEST_ALPHA
    undecided, decided = SMALLEST_ALPHA, LARGEST_ALPHA
    while decided > undecided * (1 + _PRECISION):
        middle = math.sqrt(undecided * decided)
        if _decides(verdict_at, middle):
            decided = middle
        else:
            undecided = middle
    return decided


def holm(p: Mapping[str, float | None], alpha: float) -> dict[str, float | None]:
    """At which level each member of a family is judged (Holm 1979, step-down).

    Args:
        p: The smallest alpha at which each member is decided, by id; ``None`` for one that no alpha decides,
            or that is not complete. It counts among the family all the same, as do withdrawn ones.
        alpha: The chance of any wrong verdict in the family.

    Returns:
        By id ``alpha / (m - k)`` for the member that comes after ``k`` smaller ones of ``m``, and ``None``
        from the first that its level does not decide. Members that tie have the smallest of their levels.
    """
    ordered = sorted(_known(p).items(), key=lambda item: item[1])
    levels: dict[str, float | None] = dict.fromkeys(p)
    level, last = 0.0, -math.inf
    for smaller, (name, value) in enumerate(ordered):
        if value > last:
            level, last = alpha / (len(p) - smaller), value
        if value > level:
            break
        levels[name] = level
    return levels


def _known(p: Mapping[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in p.items() if value is not None}


def _decides(verdict_at: Callable[[float], Verdict], alpha: float) -> bool:
    return verdict_at(alpha) is not Verdict.INCONCLUSIVE
