"""Chances of each verdict for one prediction, at a true value that its author names."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.judge.power import chance_inside, chance_of_median, chance_of_proportion
from pytest_prereg.judge.proportions import as_share

if TYPE_CHECKING:
    from pytest_prereg.registry.model import Experiment, Prediction
    from pytest_prereg.registry.regions import Region

LARGEST_N = 4096
"""How far :func:`repeats_for` looks."""


class Plan(msgspec.Struct, kw_only=True, frozen=True):
    """How a prediction will be judged, and how much its author expects repeats to vary.

    ``cv`` and ``sd`` (in the unit shown) are the spread of what is averaged: of repeats, in blocks of the
    block's contrast.
    """

    statistic: str
    operator: str | None
    paired: bool
    n: tuple[int, ...]
    """Repeats of each arm; a single number for one arm or for blocks."""
    confidence: float
    cv: float | None
    sd: float | None
    scale: float
    """From the quantity's natural unit to the one shown."""

    @property
    def logarithmic(self) -> bool:
        """Whether it is judged on logarithms."""
        return self.statistic == "geometric-mean"

    def spread(self, value: float) -> float | None:
        """Standard deviation at ``value``, of logarithms where those are judged; ``None`` where not known."""
        if self.logarithmic:
            cv = self.cv or (self.sd / value if self.sd and value > 0 else None)
            return math.sqrt(math.log1p(cv * cv)) if cv else None
        if self.operator is None and self.cv and value:
            return self.cv * abs(value)
        return self.sd


def plan_of(prediction: Prediction, experiment: Experiment, scale: float = 1.0) -> Plan | None:
    """The plan of a prediction; ``None`` where its number of repeats is not registered."""
    counts = [experiment.arms[arm].repeats for arm in prediction.arms if arm in experiment.arms]
    n = tuple(count for count in counts if count is not None)
    if len(n) < len(prediction.arms):
        return None
    paired = prediction.contrast is not None and experiment.pairing == "block"
    return Plan(
        statistic=prediction.statistic,
        operator=prediction.contrast.operator if prediction.contrast else None,
        paired=paired,
        n=(min(n),) if paired else n,
        confidence=prediction.confidence,
        cv=prediction.table.cv,
        sd=prediction.table.sd,
        scale=scale,
    )


def chance(plan: Plan, region: Region, value: float) -> float | None:
    """P(the interval lies in ``region``) when ``value`` is true; ``None`` where no spread is given.

    Means, differences and ratios are taken as normal or lognormal with equal spread in both arms, medians as
    those of normal values.
    """
    if plan.statistic == "proportion":
        share = value / plan.scale
        if not 0 <= share <= 1:
            return None
        return chance_of_proportion(share, plan.n[0], as_share(region, plan.scale), plan.confidence)
    spread = plan.spread(value)
    if not spread or (plan.logarithmic and value <= 0):
        return None
    if plan.statistic == "median":
        return _chance_of_median(plan, region, value, spread)
    return _chance_of_location(plan, region, value, spread)


def repeats_for(plan: Plan, region: Region, value: float, wanted: float) -> int | None:
    """Fewest repeats in every arm with which :func:`chance` is at least ``wanted``; ``None`` if very many."""

    def enough(n: int) -> bool:
        got = chance(msgspec.structs.replace(plan, n=(n,) * len(plan.n)), region, value)
        return got is not None and got >= wanted

    high = max(plan.n)
    while not enough(high):
        high *= 2
        if high > LARGEST_N:
            return None
    low = 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return high


def _chance_of_median(plan: Plan, region: Region, value: float, spread: float) -> float:
    return math.fsum(
        chance_of_median(
            (span.low, span.high), mean=value, sd=spread, n=plan.n[0], confidence=plan.confidence
        )
        for span in region.spans
    )


def _chance_of_location(plan: Plan, region: Region, value: float, spread: float) -> float:
    if min(plan.n) < 2:  # noqa: PLR2004 - one value has no variance
        return 0.0
    se = spread * math.sqrt(math.fsum(1 / n for n in plan.n))
    df, mean = sum(plan.n) - len(plan.n), _scaled(plan, value)
    return math.fsum(
        chance_inside(
            (_scaled(plan, span.low), _scaled(plan, span.high)),
            mean=mean,
            se=se,
            df=df,
            confidence=plan.confidence,
        )
        for span in region.spans
        if not plan.logarithmic or span.high > 0
    )


def _scaled(plan: Plan, value: float) -> float:
    """``value`` on the working scale."""
    if not plan.logarithmic:
        return value
    return math.log(value) if value > 0 else -math.inf
