"""Findings on a proportion of repeats: Clopper-Pearson, with failures and timeouts among the repeats."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec.structs import replace

from pytest_prereg.judge.findings import Finding, place, rounded, straddled, too_few
from pytest_prereg.judge.intervals import Interval, clopper_pearson
from pytest_prereg.judge.model import Reason, Verdict
from pytest_prereg.registry.regions import contains, scaled

if TYPE_CHECKING:
    from pytest_prereg.judge.findings import Doubt
    from pytest_prereg.judge.question import Question
    from pytest_prereg.judge.samples import Reading
    from pytest_prereg.registry.regions import Region, Span

METHOD = "Clopper-Pearson"
LARGEST_N = 2000
"""How far :func:`needed_n` looks."""
_AROUND = 2


def find_proportion(question: Question, readings: list[Reading]) -> Finding:
    """The finding on the proportion of repeats in which the quantity is 1."""
    n, confidence = len(readings), question.confidence
    repeats = tuple([reading.repeat.id for reading in readings])
    blank = Finding(level=confidence, method=METHOD, n=n, repeats=repeats)
    if not n:
        return replace(blank, doubt=too_few(1, 0))
    successes = int(math.fsum([reading.low for reading in readings]))
    interval = interval_of(successes, n, confidence)
    low, high = rounded(question.scale * interval.low), rounded(question.scale * interval.high)
    verdict = place(question, low, high)
    return replace(
        blank,
        verdict=verdict,
        doubt=_undecided(question, n, low, high) if verdict is Verdict.INCONCLUSIVE else None,
        estimate=rounded(question.scale * interval.estimate),
        interval=(low, high),
    )


@lru_cache(maxsize=4096)
def interval_of(successes: int, n: int, confidence: float) -> Interval:
    """:func:`clopper_pearson`, remembered."""
    return clopper_pearson(successes, n, confidence)


def as_share(region: Region, scale: float) -> Region:
    """A region of proportions shown in another unit (per cent, with ``scale`` 100), between 0 and 1."""
    return region if scale == 1 else scaled(region, 1 / scale)


def reachable(region: Region, n: int, confidence: float) -> bool:
    """Whether some number of successes out of ``n`` puts the whole interval inside ``region``."""
    counts = {0, n}
    for span in region.spans:
        counts |= _counts_around(span, n)
    return any(
        contains(region, interval.low, interval.high)
        for interval in (interval_of(count, n, confidence) for count in sorted(counts))
    )


def needed_n(region: Region, confidence: float) -> int | None:
    """Fewest repeats with which ``region`` is reachable; ``None`` if more than ``LARGEST_N``."""
    return next((n for n in range(1, LARGEST_N + 1) if reachable(region, n, confidence)), None)


def _undecided(question: Question, n: int, low: float, high: float) -> Doubt:
    """Too few repeats for the prediction ever to be supported, or a plain straddle."""
    predicts = as_share(question.predicts, question.scale)
    if reachable(predicts, n, question.confidence):
        return straddled(question, low, high)
    needed = needed_n(predicts, question.confidence)
    support = f"needs {needed} to support" if needed else "no number of repeats would support it"
    return Reason.N_TOO_SMALL, f"{support}, has {n}"


def _counts_around(span: Span, n: int) -> set[int]:
    """Counts whose intervals are centred on the part of ``span`` that proportions reach."""
    low, high = max(span.low, 0.0), min(span.high, 1.0)
    if low > high:
        return set()
    centre = round(n * (low + high) / 2)
    return {count for count in range(centre - _AROUND, centre + _AROUND + 1) if 0 <= count <= n}
