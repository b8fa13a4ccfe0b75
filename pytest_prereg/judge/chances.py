"""Chances of each verdict for one prediction, at a true value that its author names."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.judge.fitness import SMALLEST_N
from pytest_prereg.judge.intervals import Moments
from pytest_prereg.judge.power import chance_inside, chance_of_proportion, chance_of_quantile, chance_of_sd
from pytest_prereg.judge.proportions import as_share
from pytest_prereg.judge.sequential import t_mixture_interval

if TYPE_CHECKING:
    from pytest_prereg.registry.model import Experiment, Prediction
    from pytest_prereg.registry.regions import Region

LARGEST_N = 4096
"""How far :func:`repeats_for` looks."""
_LOCATIONS = frozenset({"mean", "geometric-mean", "ratio-of-sums"})
_JOINT = frozenset({"plateau", "increasing"})
_ABSOLUTE = frozenset({"-", "exponent", *_JOINT})
"""Contrasts whose spread no coefficient of variation can give."""


class Plan(msgspec.Struct, kw_only=True, frozen=True):
    """How a prediction will be judged, and how much its author expects repeats to vary.

    ``cv`` and ``sd`` (in the unit shown) are the spread of what is averaged: of repeats, in blocks of the
    block's contrast, slope or reduced number.
    """

    statistic: str
    q: float | None = None
    operator: str | None
    paired: bool
    clustered: bool = False
    """Whether it is a proportion of trials within repeats."""
    n: tuple[int, ...]
    """Repeats of each arm; a single number for one arm or for blocks."""
    confidence: float
    """Of the interval at the last look."""
    looks: int = 1
    anytime: bool = False
    cv: float | None
    sd: float | None
    scale: float
    """From the quantity's natural unit to the one shown."""

    @property
    def logarithmic(self) -> bool:
        """Whether it is judged on logarithms."""
        return self.statistic == "geometric-mean"

    @property
    def relative(self) -> bool:
        """Whether ``cv`` says how much values vary."""
        return self.operator not in _ABSOLUTE

    def spread(self, value: float) -> float | None:
        """Standard deviation at ``value``, of logarithms where those are judged; ``None`` where not known."""
        if self.logarithmic:
            cv = self.cv or (self.sd / value if self.sd and value > 0 else None)
            return math.sqrt(math.log1p(cv * cv)) if cv else None
        if self.relative and self.cv and value:
            return self.cv * abs(value)
        return self.sd


def plan_of(prediction: Prediction, experiment: Experiment, scale: float = 1.0) -> Plan | None:
    """The plan of a prediction; ``None`` where its number of repeats is not registered, or it is a formula.

    A series that may end early is planned as if it ran to its end: the chances at its last look alone, which
    those of all looks together can only exceed.
    """
    counts = [experiment.arms[arm].repeats for arm in prediction.arms if arm in experiment.arms]
    n = tuple(count for count in counts if count is not None)
    if not n or len(n) < len(prediction.arms) or prediction.statistic == "formula":
        return None
    paired = len(prediction.arms) > 1 and experiment.pairing == "block"
    stopping = experiment.stopping
    looks = len(stopping.looks) if stopping and stopping.looks else 1
    return Plan(
        statistic=_statistic(prediction),
        q=prediction.q,
        operator=prediction.contrast.operator if prediction.contrast else None,
        paired=paired,
        clustered=prediction.statistic == "proportion" and prediction.divisor is not None,
        n=(min(n),) if paired else n,
        confidence=1 - (1 - prediction.confidence) / looks,
        looks=looks,
        anytime=stopping is not None and stopping.anytime,
        cv=prediction.table.cv,
        sd=prediction.table.sd,
        scale=scale,
    )


def _statistic(prediction: Prediction) -> str:
    """What is judged across repeats: of points that are all judged, the statistic of each."""
    if prediction.statistic != "all":
        return prediction.statistic
    contrast = prediction.contrast
    return "geometric-mean" if contrast and contrast.operator == "/" else "mean"


def chance(plan: Plan, region: Region, value: float) -> float | None:
    """P(the interval lies in ``region``) when ``value`` is true; ``None`` where that is not known.

    Means, differences, ratios and slopes are taken as normal or lognormal with equal spread in both arms,
    quantiles and standard deviations as those of normal values. Nothing is computed for contrasts of more
    than two arms, nor for clustered proportions, whose chances hang on how alike the trials of a repeat are.
    """
    if plan.clustered or plan.operator in _JOINT:
        return None
    if plan.statistic in _SPREADLESS:
        return _SPREADLESS[plan.statistic](plan, region, value)
    spread = plan.spread(value)
    if not spread or (plan.logarithmic and value <= 0):
        return None
    if plan.statistic in _LOCATIONS:
        return _chance_of_location(plan, region, value, spread)
    return _chance_of_quantile(plan, region, value, spread)


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


def _chance_of_quantile(plan: Plan, region: Region, value: float, spread: float) -> float:
    q = 0.5 if plan.q is None else plan.q
    mean = value - spread * NormalDist().inv_cdf(q)
    return math.fsum(
        chance_of_quantile(
            (span.low, span.high), q=q, mean=mean, sd=spread, n=plan.n[0], confidence=plan.confidence
        )
        for span in region.spans
    )


def _chance_of_proportion(plan: Plan, region: Region, value: float) -> float | None:
    share = value / plan.scale
    if not 0 <= share <= 1:
        return None
    return chance_of_proportion(share, plan.n[0], as_share(region, plan.scale), plan.confidence)


def _chance_of_sd(plan: Plan, region: Region, value: float) -> float | None:
    if value <= 0:
        return None
    if plan.n[0] < SMALLEST_N:
        return 0.0
    return math.fsum(
        chance_of_sd((span.low, span.high), sd=value, n=plan.n[0], confidence=plan.confidence)
        for span in region.spans
    )


def _chance_of_location(plan: Plan, region: Region, value: float, spread: float) -> float:
    if min(plan.n) < SMALLEST_N:
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
            reach=_reach(plan),
        )
        for span in region.spans
        if not plan.logarithmic or span.high > 0
    )


def _reach(plan: Plan) -> float | None:
    """Half-width over the estimated standard error, of an interval that holds after every repeat at once."""
    if not plan.anytime:
        return None
    return t_mixture_interval(Moments(plan.n[0], 0.0, float(plan.n[0])), plan.confidence).high


_SPREADLESS = {"proportion": _chance_of_proportion, "sd": _chance_of_sd}
"""Statistics whose chances hang on nothing but their own value."""


def _scaled(plan: Plan, value: float) -> float:
    """``value`` on the working scale."""
    if not plan.logarithmic:
        return value
    return math.log(value) if value > 0 else -math.inf
