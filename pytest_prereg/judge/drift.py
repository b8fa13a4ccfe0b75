"""Whether values rise or fall over a run: the Mann-Kendall test, exact to sixty values, ties included."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

SMALLEST_N = 6
LEVEL = 0.01
"""Shared among the sequences that one prediction tests."""
_EXACT_TO = 60


class Trend(NamedTuple):
    """Pairs that rise minus pairs that fall, and how rarely chance alone gives as many either way."""

    score: int
    p: float

    def describe(self) -> str:
        """The trend in words."""
        direction = "rise" if self.score > 0 else "fall"
        return f"values {direction} over the run (Mann-Kendall p = {self.p:.2g})"


def mann_kendall(values: Sequence[float]) -> Trend:
    """Two-sided Mann-Kendall test of the values in run order.

    p comes from the distribution of the score over all orders of these values (Mann 1945), which for tied
    values is that of the inversions of a multiset; above sixty values from the normal approximation with the
    tie-corrected variance and a continuity correction (Kendall 1975).
    """
    return Trend(*_tested(values))


def drifting(sequences: Sequence[Sequence[float]], questions: int = 1) -> Trend | None:
    """The first sequence with a trend at ``LEVEL`` over the number of sequences long enough to be tested.

    ``questions`` says how many times as many the prediction tests in all.
    """
    tested = 0
    for sequence in sequences:
        tested += len(sequence) >= SMALLEST_N
    for sequence in sequences:
        if len(sequence) >= SMALLEST_N:
            score, p = _tested(sequence)
            if p <= LEVEL / (tested * questions):
                return Trend(score, p)
    return None


def _tested(values: Sequence[float]) -> tuple[int, float]:
    """Score and p; of the pairs of unequal values, all that don't rise fall."""
    seen: list[float] = []
    rises, n = 0, len(values)
    for value in values:
        place = bisect_left(seen, value)
        seen.insert(place, value)
        rises += place
    ties = () if len(set(seen)) == n else _ties(seen)
    score = 2 * rises - (_unequal_pairs(n, ties) if ties else n * (n - 1) // 2)
    p = _tails(n, ties)[abs(score)] if n <= _EXACT_TO else _normal_p(abs(score), n, ties)
    return score, p


def _unequal_pairs(n: int, ties: tuple[int, ...]) -> int:
    pairs = n * (n - 1) // 2
    return pairs - sum([tie * (tie - 1) // 2 for tie in ties]) if ties else pairs


def _ties(values: Sequence[float]) -> tuple[int, ...]:
    return tuple(sorted(count for count in Counter(values).values() if count > 1))


@lru_cache(maxsize=4096)
def _tails(n: int, ties: tuple[int, ...]) -> tuple[float, ...]:
    """P(score at least as far from zero), indexed by the absolute score."""
    counts = _inversions(n, ties)
    total, most = sum(counts), len(counts) - 1
    by_score = [0] * (most + 1)
    for inversions, count in enumerate(counts):
        by_score[abs(most - 2 * inversions)] += count
    return tuple(beyond / total for beyond in reversed(list(accumulate(reversed(by_score)))))


def _inversions(n: int, ties: tuple[int, ...]) -> list[int]:
    """Orders of a multiset by their number of inversions: the coefficients of the Gaussian multinomial.

    That is [n]! / prod [t]!, where [k]! is the product of (1 - q^j) / (1 - q) for j = 2 to k (MacMahon 1915;
    Stanley, Enumerative Combinatorics 1, 1.7).
    """
    most = _unequal_pairs(n, ties)
    counts = [1] + [0] * most
    for k in range(2, n + 1):
        _multiply(counts, k)
        _divide(counts, 1)
    for tie in ties:
        for k in range(2, tie + 1):
            _multiply(counts, 1)
            _divide(counts, k)
    return counts


def _multiply(counts: list[int], k: int) -> None:
    """Multiply by 1 - q^k, in place."""
    for power in range(len(counts) - 1, k - 1, -1):
        counts[power] -= counts[power - k]


def _divide(counts: list[int], k: int) -> None:
    """Divide by 1 - q^k, in place."""
    for power in range(k, len(counts)):
        counts[power] += counts[power - k]


def _normal_p(score: int, n: int, ties: tuple[int, ...]) -> float:
    variance = (_tie_term(n) - sum(map(_tie_term, ties))) / 18
    if variance <= 0 or score == 0:
        return 1.0
    return math.erfc((score - 1) / math.sqrt(2 * variance))


def _tie_term(count: int) -> int:
    return count * (count - 1) * (2 * count + 5)
