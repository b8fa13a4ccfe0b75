"""Linear propagation: the interval of a formula over several measured quantities.

The formula is taken as linear around the means; how far it is not is part of the answer (JCGM 100:2008, 5.1).
"""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from pytest_prereg.judge.gradients import gradient
from pytest_prereg.judge.intervals import CONFIDENCE, Interval, moments, t_from_moments
from pytest_prereg.judge.quantiles import t_quantile
from pytest_prereg.registry.evaluation import evaluate
from pytest_prereg.registry.quantities import names_used

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_prereg.registry.model import Node

MOST_INPUTS = 10
_CONSTANT_CONFIDENCE = 0.95
"""A constant's stated interval is read as that of a normal quantity at this confidence."""


class Propagated(Interval, kw_only=True, frozen=True):
    """An interval, and how far the formula departs from the straight line that it rests on."""

    departure: float
    """Largest distance at the corners of the inputs' intervals; infinite where it has no value at one."""


class _Input(NamedTuple):
    value: float
    low: float
    high: float


class _Variance(NamedTuple):
    """A squared standard error of the formula, and its degrees of freedom."""

    squared: float
    df: float


def propagate(
    node: Node,
    groups: Sequence[Mapping[str, Sequence[float]]],
    fixed: Mapping[str, tuple[float, float, float]],
    confidence: float = CONFIDENCE,
) -> Propagated:
    """The interval of the formula ``node`` at the means of its inputs (JCGM 100:2008, 5.1, 5.2 and G.4).

    Each group gives the linearised formula one value per repeat, so what its inputs share counts; the groups
    are independent. Student's t with Welch and Satterthwaite's degrees of freedom over the groups; exact for
    one group of normal values and a linear formula.

    Args:
        node: A parsed expression of numbers, names, arithmetic and elementwise functions.
        groups: For each experiment (or each arm that is not paired with another), the values of its inputs by
            name; those of one repeat stand at one place in each list.
        fixed: For each constant its value, and the limits of its interval, which counts as ± 1.96 standard
            errors (the larger side, where they differ) with infinite degrees of freedom; the value itself
            twice if it has none.
        confidence: Of the interval, and of the inputs' intervals whose corners are tried for the departure.

    Raises:
        ValueError: The formula has no value, or no derivative, at the means; a group has lists of different
            lengths or of fewer than two values; a name is given twice; a constant's interval is not finite,
            or does not hold its value; or more than ``MOST_INPUTS`` of the inputs vary.
        ArithmeticError: The formula, or its variance, is too large, or divides by zero.
        KeyError: A name in the formula that is given nowhere.
    """
    inputs = _inputs(groups, fixed, confidence)
    point = {name: each.value for name, each in inputs.items()}
    estimate = evaluate(node, point)
    if not math.isfinite(estimate):
        raise OverflowError(f"node: the formula is {estimate} at the means")
    used = sorted(set(names_used(node)))
    varying = {name: inputs[name] for name in used if inputs[name].low < inputs[name].high}
    if len(varying) > MOST_INPUTS:
        raise ValueError(f"groups, fixed: {len(varying)} inputs vary, and {MOST_INPUTS} at most are allowed")
    slopes = gradient(node, point, list(varying))
    variances = [_of_group(group, slopes) for group in groups]
    variances += [_of_constant(inputs[name], slopes.get(name, 0.0)) for name in fixed]
    squared = math.fsum([each.squared for each in variances])
    df = _satterthwaite_df(variances, squared)
    half = t_quantile(df, confidence) * math.sqrt(squared)
    return Propagated(
        estimate=estimate,
        low=estimate - half,
        high=estimate + half,
        level=confidence,
        df=df,
        departure=_departure(node, point, varying, slopes),
    )


def _inputs(
    groups: Sequence[Mapping[str, Sequence[float]]],
    fixed: Mapping[str, tuple[float, float, float]],
    confidence: float,
) -> dict[str, _Input]:
    found = {name: _Input(*limits) for name, limits in fixed.items()}
    for name, constant in found.items():
        if not -math.inf < constant.low <= constant.value <= constant.high < math.inf:
            raise ValueError(f"fixed: {name!r} is {constant.value!r}, not inside a finite interval")
    for group in groups:
        if len({len(values) for values in group.values()}) > 1:
            raise ValueError(f"groups: the values of {', '.join(group)} are not those of the same repeats")
        for name, values in group.items():
            if name in found:
                raise ValueError(f"groups, fixed: {name!r} is given twice")
            interval = t_from_moments(moments(values), confidence)
            found[name] = _Input(interval.estimate, interval.low, interval.high)
    return found


def _of_group(group: Mapping[str, Sequence[float]], slopes: Mapping[str, float]) -> _Variance:
    """That of the mean of the linearised formula, one value for each repeat of an experiment."""
    used = [name for name in group if name in slopes]
    if not used:
        return _Variance(0.0, math.inf)
    centred = [[slopes[name] * value for value in _centred(group[name])] for name in used]
    sample = moments([math.fsum(repeat) for repeat in zip(*centred, strict=True)])
    return _Variance(sample.variance / sample.n, sample.n - 1)


def _centred(values: Sequence[float]) -> list[float]:
    mean = math.fsum(values) / len(values)
    return [value - mean for value in values]


def _of_constant(constant: _Input, slope: float) -> _Variance:
    half = max(constant.high - constant.value, constant.value - constant.low)
    return _Variance((slope * half / t_quantile(math.inf, _CONSTANT_CONFIDENCE)) ** 2, math.inf)


def _satterthwaite_df(variances: Sequence[_Variance], squared: float) -> float:
    """Degrees of freedom of a sum of squared standard errors (Satterthwaite 1946)."""
    shares = [(each.squared / squared) ** 2 / each.df for each in variances] if squared else []
    return 1 / math.fsum(shares) if any(shares) else math.inf


def _departure(
    node: Node, point: Mapping[str, float], varying: Mapping[str, _Input], slopes: Mapping[str, float]
) -> float:
    ends = [(each.low, each.high) for each in varying.values()]
    corners = [dict(zip(varying, corner, strict=True)) for corner in product(*ends)]
    return max(_off_the_line(node, point, corner, slopes) for corner in corners)


def _off_the_line(
    node: Node, point: Mapping[str, float], corner: Mapping[str, float], slopes: Mapping[str, float]
) -> float:
    rise = math.fsum([slopes[name] * (value - point[name]) for name, value in corner.items()])
    try:
        distance = abs(evaluate(node, {**point, **corner}) - evaluate(node, point) - rise)
    except (ArithmeticError, ValueError):
        return math.inf
    return distance if math.isfinite(distance) else math.inf
