"""Findings on a proportion: of repeats, failures and timeouts among them, or of trials inside repeats."""

from __future__ import annotations

import functools
import math
from bisect import bisect_left
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec.structs import replace

from pytest_prereg.evidence.model import Outcome
from pytest_prereg.judge.clusters import korn_graubard
from pytest_prereg.judge.findings import APPROXIMATE, Finding, conclude, place, plural, rounded, too_few
from pytest_prereg.judge.fitness import SMALLEST_N, blank_finding
from pytest_prereg.judge.intervals import Interval, clopper_pearson, mapped
from pytest_prereg.judge.model import Reason, Verdict
from pytest_prereg.registry.regions import Region, Span, contains, scaled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.judge.findings import Doubt
    from pytest_prereg.judge.question import Question
    from pytest_prereg.judge.samples import Reading

METHOD = "Clopper-Pearson"
CLUSTERED = "Korn-Graubard"
LARGEST_N = 2000
"""How far :func:`needed_n` looks."""
_AROUND = 2


def find_proportion(question: Question, readings: list[Reading]) -> Finding:
    """The finding on the proportion of repeats in which the quantity is 1, or of successes among trials."""
    if question.divisor is not None:
        return _find_clustered(question, readings)
    blank = blank_finding(question, [readings], METHOD)
    if not readings:
        return replace(blank, doubt=too_few(1, 0))
    successes = int(math.fsum([reading.low for reading in readings]))
    interval = interval_of(successes, blank.n, question.confidence)
    if doubt := _hanging(question, readings, successes):
        return replace(blank, doubt=doubt)
    short = functools.partial(_out_of_reach, question, blank.n)
    return conclude(question, blank, _shown(question, interval), short=short)


def _hanging(question: Question, readings: list[Reading], successes: int) -> Doubt | None:
    """How the verdict hangs on repeats that count as failures and may have been none.

    A failed repeat may refute, as the failure that it is. It supports nothing that it would not support as a
    success; and what lies above a cap decides nothing either way.
    """
    either = [reading for reading in readings if reading.low < reading.high]
    verdict = _verdict(question, successes, len(readings)) if either else Verdict.INCONCLUSIVE
    if verdict is Verdict.REFUTED:
        either = [reading for reading in either if reading.cut]
    if verdict is Verdict.INCONCLUSIVE or not either:
        return None
    counts = range(successes + 1, successes + len(either) + 1)
    if all(_verdict(question, count, len(readings)) is verdict for count in counts):
        return None
    first = either[0]
    what = f'"{question.text}" could be either in {plural(len(either), "repeat")}, first {first.repeat.id}'
    if all(reading.cut or reading.repeat.outcome is Outcome.TIMEOUT for reading in either):
        return Reason.CENSORED, f"{what}, which was cut off"
    return Reason.TASK_FAILED, f"{what}, which failed"


def _verdict(question: Question, successes: int, n: int) -> Verdict:
    interval = _shown(question, interval_of(successes, n, question.confidence))
    return place(question, rounded(interval.low), rounded(interval.high))


def _find_clustered(question: Question, readings: list[Reading]) -> Finding:
    """The finding on a proportion of trials, of which each repeat counted its own."""
    blank = blank_finding(question, [readings], CLUSTERED)
    if blank.n < SMALLEST_N:
        return replace(blank, doubt=too_few(SMALLEST_N, blank.n))
    if doubt := _unseen_trials(readings):
        return replace(blank, doubt=doubt)
    interval = korn_graubard(
        [reading.low for reading in readings], [reading.divisor for reading in readings], question.confidence
    )
    return conclude(question, replace(blank, flags=(APPROXIMATE,)), _shown(question, interval))


def _unseen_trials(readings: list[Reading]) -> Doubt | None:
    cut = [reading for reading in readings if reading.cut]
    ended = sum(reading.cut for reading in cut if reading.repeat.outcome is Outcome.TIMEOUT)
    if ended:
        return Reason.CENSORED, f"{plural(ended, 'timeout')}: trials that were never made"
    capped = plural(sum(reading.cut for reading in cut), "sample")
    return (Reason.CENSORED, f"{capped} at a cap: trials whose end nobody saw") if cut else None


def _shown(question: Question, interval: Interval) -> Interval:
    return mapped(interval, lambda share: question.scale * share)


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


def counts_inside(region: Region, n: int, confidence: float) -> Iterator[int]:
    """Every number of successes out of ``n`` that puts the whole interval inside ``region``.

    Both limits rise with the count, so the counts of each span are found from its two ends.
    """

    def is_above(span: Span, count: int) -> bool:
        start = Region(spans=(Span(low=span.low, low_closed=span.low_closed),))
        return contains(start, interval_of(count, n, confidence).low, math.inf)

    def is_beyond(span: Span, count: int) -> bool:
        end = Region(spans=(Span(high=span.high, high_closed=span.high_closed),))
        return not contains(end, -math.inf, interval_of(count, n, confidence).high)

    counts = range(n + 1)
    for span in region.spans:
        first = bisect_left(counts, x=True, key=functools.partial(is_above, span))
        yield from range(first, bisect_left(counts, x=True, key=functools.partial(is_beyond, span)))


def needed_n(region: Region, confidence: float) -> int | None:
    """Fewest repeats with which ``region`` is reachable; ``None`` if more than ``LARGEST_N``."""
    return next((n for n in range(1, LARGEST_N + 1) if reachable(region, n, confidence)), None)


def _out_of_reach(question: Question, n: int) -> Doubt | None:
    """Why so few repeats could never have supported the prediction."""
    predicts = as_share(question.predicts, question.scale)
    if reachable(predicts, n, question.confidence):
        return None
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
