"""One interval for several groups, from the intervals of their differences.

Each function takes the same differences twice: ``uncorrected`` at the confidence of the verdict, 1 - alpha,
and ``corrected`` at :func:`confidence_of_pairs` or :func:`confidence_of_steps`. Each side of the result then
errs with a chance of at most alpha / 2, if the given intervals err equally on both sides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.judge.intervals import Interval

if TYPE_CHECKING:
    from collections.abc import Sequence


def confidence_of_pairs(confidence: float, pairs: int) -> float:
    """Confidence of the ``corrected`` intervals of :func:`largest_difference`: 1 - alpha / (2 pairs).

    Twice Bonferroni's divisor: an absolute difference is also too large where the interval lies on the wrong
    side of zero, as it does in half of the errors where the groups are equal.
    """
    return 1 - (1 - confidence) / (2 * pairs)


def confidence_of_steps(confidence: float, steps: int) -> float:
    """Confidence of the ``corrected`` intervals of :func:`smallest_step`: 1 - alpha / steps (Bonferroni)."""
    return 1 - (1 - confidence) / steps


def largest_difference(uncorrected: Sequence[Interval], corrected: Sequence[Interval]) -> Interval:
    """Interval for the largest absolute difference between any two groups: how far from a plateau they are.

    It can only be too low if the uncorrected interval of the pair that truly differs most misses on the side
    towards zero: alpha / 2, with no correction (intersection-union, Berger 1982). It can only be too high if
    some pair's corrected interval lies beyond plus or minus its own true difference: at most
    alpha / (2 pairs) each, alpha / 2 in all (Bonferroni).

    Args:
        uncorrected: Intervals of the differences of all pairs of groups, at the verdict's confidence.
        corrected: Those of the same pairs, at :func:`confidence_of_pairs`.

    Raises:
        ValueError: No pair, or not the same number of them.
    """
    _same_differences(uncorrected, corrected)
    return Interval(
        estimate=max(abs(pair.estimate) for pair in uncorrected),
        low=max(_distance_from_zero(pair) for pair in corrected),
        high=max(max(abs(pair.low), abs(pair.high)) for pair in uncorrected),
        level=min(pair.level for pair in uncorrected),
    )


def smallest_step(uncorrected: Sequence[Interval], corrected: Sequence[Interval]) -> Interval:
    """Interval for the smallest step from one group to the next: above zero, the groups increase.

    It can only be too high if the uncorrected interval of the step that is truly smallest is too high:
    alpha / 2, with no correction (intersection-union, Berger 1982). It can only be too low if some step's
    corrected interval is below that step, which is at least the smallest: alpha / (2 steps) each, alpha / 2
    in all (Bonferroni).

    Args:
        uncorrected: Intervals of each group less the one before it, at the verdict's confidence.
        corrected: Those of the same steps, at :func:`confidence_of_steps`.

    Raises:
        ValueError: No step, or not the same number of them.
    """
    _same_differences(uncorrected, corrected)
    return Interval(
        estimate=min(step.estimate for step in uncorrected),
        low=min(step.low for step in uncorrected),
        high=min(step.high for step in corrected),
        level=min(step.level for step in uncorrected),
    )


def _distance_from_zero(interval: Interval) -> float:
    return max(interval.low, -interval.high, 0.0)


def _same_differences(uncorrected: Sequence[Interval], corrected: Sequence[Interval]) -> None:
    if not uncorrected or len(uncorrected) != len(corrected):
        raise ValueError(
            f"uncorrected, corrected: {len(uncorrected)} and {len(corrected)} intervals are not those of the "
            "same differences"
        )
