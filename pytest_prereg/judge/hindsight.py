"""How many repeats would probably have decided, if repeats vary as they did and the estimate is true."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from pytest_prereg.judge.chances import repeats_for
from pytest_prereg.judge.quantiles import t_quantile
from pytest_prereg.registry.regions import contains

if TYPE_CHECKING:
    from pytest_prereg.judge.chances import Plan
    from pytest_prereg.judge.model import Judgement
    from pytest_prereg.registry.regions import Region

ENOUGH = 0.8
"""How likely a verdict has to be for a number of repeats to count as one that decides."""


class Hindsight(msgspec.Struct, kw_only=True, frozen=True):
    """What more repeats would have been worth."""

    word: str
    """``supported``, ``refuted``, or ``undecided`` where the estimate lies in neither region."""
    n: int | None
    """Repeats with which that verdict would have been likely; ``None`` if very many."""


def hindsight(plan: Plan, judgement: Judgement, predicts: Region, falsifier: Region) -> Hindsight | None:
    """Return how many repeats would probably have decided; ``None`` where the data do not say.

    It is a rough figure: the estimate stands in for the truth, and the spread of these repeats for that of
    all. So it says how far away a verdict was, and is no plan for a successor.

    Args:
        plan: How it was judged.
        judgement: What came of it.
        predicts: The predicted region, in the unit shown.
        falsifier: The falsifying region, in the unit shown.
    """
    estimate = judgement.estimate
    if estimate is None or not math.isfinite(estimate):
        return None
    word, region = next(
        (
            (word, region)
            for word, region in (("supported", predicts), ("refuted", falsifier))
            if contains(region, estimate, estimate)
        ),
        ("undecided", None),
    )
    if region is None:
        return Hindsight(word=word, n=None)
    seen = _as_seen(plan, judgement)
    if seen is None:
        return None
    return Hindsight(word=word, n=repeats_for(seen, region, estimate, ENOUGH))


def _as_seen(plan: Plan, judgement: Judgement) -> Plan | None:
    """The plan with the spread of the repeats that were judged."""
    if plan.statistic in ("proportion", "sd"):
        return None if plan.clustered else plan
    half = _half_width(plan, judgement)
    if half is None or plan.statistic not in ("mean", "geometric-mean", "ratio-of-sums"):
        return None
    n = [judgement.n] * len(plan.n)
    df = sum(n) - len(n)
    spread = half / t_quantile(df, judgement.confidence) / math.sqrt(math.fsum(1 / each for each in n))
    if not plan.logarithmic:
        return replace(plan, cv=None, sd=spread)
    return replace(plan, cv=math.sqrt(math.expm1(spread**2)), sd=None) if spread < 1 else None


def _half_width(plan: Plan, judgement: Judgement) -> float | None:
    """Half of the interval on the working scale; ``None`` where it has none, or no width."""
    if judgement.interval is None or judgement.n < 2:  # noqa: PLR2004 - one value has no spread
        return None
    low, high = judgement.interval
    if plan.logarithmic:
        low, high = (math.log(end) if end > 0 else -math.inf for end in (low, high))
    half = (high - low) / 2
    return half if 0 < half < math.inf else None
