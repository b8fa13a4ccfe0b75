"""The interval for a proportion of trials, of which each repeat made several."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.judge.intervals import CONFIDENCE, Interval, proportion_limits
from pytest_prereg.judge.quantiles import t_quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

_NEEDED = 2


def korn_graubard(
    successes: Sequence[float], trials: Sequence[float], confidence: float = CONFIDENCE
) -> Interval:
    """Interval for a proportion of trials that are alike within a repeat (Korn and Graubard 1998).

    With p = sum(successes) / sum(trials) over n repeats, N = sum(trials), and the variance of p between
    repeats v = n / (n - 1) × sum((successes - p trials)²) / N², the effective number of trials is
    p (1 - p) / v × (t(N - 1) / t(n - 1))², at most N, where t is the two-sided quantile at ``confidence``; it
    goes into Clopper and Pearson's limits (Survey Methodology 24, 2, 193-201). Where all repeats have the
    same share, v says nothing, and the effective number is n: each repeat may be all alike inside.

    Approximate: 0.93 at 95 % for 7 repeats of 20 trials, p = 0.9 and a correlation of 0.2 within a repeat.

    Raises:
        ValueError: Fewer than two repeats, lists of different lengths, a repeat without trials, or counts
            that are not whole or more than the trials.
    """
    counts = [_whole(s, t) for s, t in zip(successes, trials, strict=True)]
    if len(counts) < _NEEDED:
        raise ValueError(f"successes, trials: the variance between repeats needs 2, got {len(counts)}")
    succeeded, tried = sum(s for s, _ in counts), sum(t for _, t in counts)
    effective = _effective_trials(counts, succeeded, tried, confidence)
    low, high = proportion_limits(effective * succeeded / tried, effective, confidence)
    return Interval(estimate=succeeded / tried, low=low, high=high, level=confidence)


def _effective_trials(counts: list[tuple[int, int]], succeeded: int, tried: int, confidence: float) -> float:
    n = len(counts)
    # In whole numbers, so that equal shares are seen to be equal: N (successes - p trials).
    deviations = sum((s * tried - succeeded * t) ** 2 for s, t in counts)
    if deviations == 0:
        return float(n)
    unadjusted = succeeded * (tried - succeeded) * tried**2 * (n - 1) / (n * deviations)
    adjustment = (t_quantile(tried - 1, confidence) / t_quantile(n - 1, confidence)) ** 2
    return min(unadjusted * adjustment, float(tried))


def _whole(succeeded: float, tried: float) -> tuple[int, int]:
    if not 0 <= succeeded <= tried or tried == 0 or succeeded % 1 or tried % 1:
        raise ValueError(f"successes, trials: {succeeded!r} of {tried!r} are no counts of a repeat")
    return int(succeeded), int(tried)
