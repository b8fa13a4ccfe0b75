"""Chances of a verdict before anything is measured: power of t intervals, order statistics and proportions.

For t intervals the noncentral t is integrated over the sample standard deviation with Gauss-Legendre nodes:
``scipy.stats.nct`` returns NaN at, for instance, 7 values 5 standard deviations away.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pytest_prereg.judge.order_statistics import ranks
from pytest_prereg.judge.proportions import counts_inside
from pytest_prereg.judge.quantiles import t_quantile

if TYPE_CHECKING:
    from pytest_prereg.registry.regions import Region

_NODES = 200
_NEGLIGIBLE = 1e-13
_CLOSE_ENOUGH = 1e-10


def power_t(n: float, difference: float, sd: float = 1.0, *, alpha: float = 0.025, samples: int = 2) -> float:
    """Probability that a t test finds a true ``difference`` in its own direction.

    Args:
        n: Values in each sample; need not be whole.
        difference: True difference of two means, or of one mean from its reference.
        sd: Standard deviation of the values.
        alpha: Error probability in this one direction: 0.025 for a two-sided 95 % interval.
        samples: Two independent samples of ``n``, or one (which may be paired differences).
    """
    df = samples * (n - 1)
    se = sd * math.sqrt(samples / n)
    return chance_inside((0.0, math.inf), mean=abs(difference), se=se, df=df, confidence=1 - 2 * alpha)


def n_for_power_t(
    power: float, difference: float, sd: float = 1.0, *, alpha: float = 0.025, samples: int = 2
) -> float:
    """The sample size, not rounded up, at which :func:`power_t` is ``power``."""
    low, high = 1.5, 3.0
    while power_t(high, difference, sd, alpha=alpha, samples=samples) < power:
        low, high = high, 2 * high
        if high > 1e9:  # noqa: PLR2004 - no study has that many repeats
            raise ValueError(f"power: {power} is not reached at any n")
    while high - low > _CLOSE_ENOUGH * high:
        middle = (low + high) / 2
        if power_t(middle, difference, sd, alpha=alpha, samples=samples) < power:
            low = middle
        else:
            high = middle
    return high


def chance_inside(
    ends: tuple[float, float],
    *,
    mean: float,
    se: float,
    df: float,
    confidence: float,
    reach: float | None = None,
) -> float:
    """P(the t interval of an estimate lies between the two ``ends``, which may be infinite).

    Args:
        ends: Lower and upper end.
        mean: True value of the estimate.
        se: True standard error of the estimate.
        df: Degrees of freedom of its estimated standard error.
        confidence: Of the interval, two-sided.
        reach: Half-width of the interval over the estimated standard error, where it is not the t quantile.
    """
    import numpy as np  # noqa: PLC0415
    from scipy.special import ndtr  # noqa: PLC0415

    ratio, weight = _scaled_chi(df)
    half = (t_quantile(df, confidence) if reach is None else reach) * ratio
    inside = ndtr((ends[1] - mean) / se - half) - ndtr((ends[0] - mean) / se + half)
    return float(min(1.0, np.sum(weight * np.maximum(inside, 0.0))))


def chance_of_quantile(
    ends: tuple[float, float], *, q: float, mean: float, sd: float, n: int, confidence: float
) -> float:
    """P(the order-statistic interval of the ``q`` quantile of normal values lies between the two ``ends``).

    So it does when fewer values than the lower rank lie below, and few enough of the others lie above. A side
    that so few values cannot bound lies nowhere but in what is open on that side.
    """
    from scipy.special import bdtr  # noqa: PLC0415

    lower, upper = ranks(n, q, confidence)
    if (lower is None and ends[0] > -math.inf) or (upper is None and ends[1] < math.inf):
        return 0.0
    below, above = _normal(ends[0], mean, sd), _normal(mean, ends[1], sd)
    if below >= 1:
        return 0.0
    share, spare = min(1.0, above / (1 - below)), n - (upper or n)
    return math.fsum(binomial(i, n, below) * float(bdtr(spare, n - i, share)) for i in range(lower or 1))


def chance_of_sd(ends: tuple[float, float], *, sd: float, n: int, confidence: float) -> float:
    """P(the chi-square interval of the standard deviation of normal values lies between the two ``ends``)."""
    from scipy.special import chdtr, chdtri  # noqa: PLC0415

    df, tail = n - 1, (1 - confidence) / 2
    largest = ends[1] ** 2 * float(chdtri(df, 1 - tail)) / sd**2
    least = max(ends[0], 0.0) ** 2 * float(chdtri(df, tail)) / sd**2
    return max(0.0, float(chdtr(df, largest)) - float(chdtr(df, least))) if ends[1] > 0 else 0.0


def chance_of_proportion(proportion: float, n: int, region: Region, confidence: float) -> float:
    """P(the Clopper-Pearson interval of ``n`` independent repeats lies in ``region``)."""
    return math.fsum(binomial(count, n, proportion) for count in counts_inside(region, n, confidence))


def binomial(successes: int, n: int, p: float) -> float:
    """P(just so many ``successes`` in ``n`` independent trials)."""
    failures = n - successes
    if p in (0, 1):
        return float(failures == 0 if p else successes == 0)
    ways = math.lgamma(n + 1) - math.lgamma(successes + 1) - math.lgamma(failures + 1)
    return math.exp(ways + successes * math.log(p) + failures * math.log1p(-p))


@lru_cache(maxsize=64)
def _scaled_chi(df: float) -> tuple[Any, Any]:
    """Nodes and weights of the sample over the true standard deviation, chi / sqrt(df)."""
    import numpy as np  # noqa: PLC0415
    from scipy.special import chdtri  # noqa: PLC0415

    low, high = (math.sqrt(chdtri(df, tail) / df) for tail in (1 - _NEGLIGIBLE, _NEGLIGIBLE))
    nodes, weights = _gauss_legendre()
    ratio = (high - low) / 2 * nodes + (high + low) / 2
    log_density = math.log(2) + df / 2 * math.log(df / 2) - math.lgamma(df / 2)
    log_density = log_density + (df - 1) * np.log(ratio) - df * ratio**2 / 2
    return ratio, np.exp(log_density) * weights * (high - low) / 2


@lru_cache(maxsize=1)
def _gauss_legendre() -> tuple[Any, Any]:
    import numpy as np  # noqa: PLC0415

    return np.polynomial.legendre.leggauss(_NODES)


def _normal(value: float, mean: float, sd: float) -> float:
    return 0.5 * math.erfc((mean - value) / (sd * math.sqrt(2)))


def inner_count(run_cost: float, sample_cost: float, run_sd: float, sample_sd: float) -> float:
    """Samples in a repeat with which a given cost estimates a mean best, not rounded.

    The square root of cost of a repeat over cost of a sample, times variance inside a repeat over variance
    between repeats (Kalibera and Jones, Rigorous benchmarking in reasonable time, ISMM 2013).

    Args:
        run_cost: Cost of a repeat before its first sample, in any unit.
        sample_cost: Cost of one sample, in the same unit.
        run_sd: Standard deviation from repeat to repeat, in any unit.
        sample_sd: Standard deviation of samples inside a repeat, in the same unit.
    """
    if min(run_cost, sample_cost, run_sd, sample_sd) <= 0:
        raise ValueError("run_cost, sample_cost, run_sd, sample_sd: all have to be above 0")
    return math.sqrt(run_cost / sample_cost) * sample_sd / run_sd
