"""Quantiles of the t, beta and chi-square distributions, equal to twelve digits on every supported scipy.

``stdtrit`` and ``betaincinv`` differ between scipy 1.11 and 1.17 by up to 1e-10, which a record kept at
fifteen digits would show. One Newton step over the forward function, and rounding, take that away.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

DIGITS = 12
NEARLY_NORMAL = 1e5
"""From so many degrees of freedom on, an expansion has more digits than the beta function."""


@lru_cache(maxsize=4096)
def t_quantile(df: float, confidence: float) -> float:
    """The value that Student's t with ``df`` degrees of freedom stays within, ±, with ``confidence``.

    ``df`` may be infinite: the normal quantile.
    """
    if df >= NEARLY_NORMAL:
        return _settled(_nearly_normal(df, confidence))
    from scipy.special import betainc, stdtrit  # noqa: PLC0415

    t = float(stdtrit(df, 0.5 + confidence / 2))
    tail = float(betainc(df / 2, 0.5, df / (df + t * t)))
    log_density = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - 0.5 * math.log(df * math.pi)
    log_density -= (df + 1) / 2 * math.log1p(t * t / df)
    return _settled(t + (tail - (1 - confidence)) / (2 * math.exp(log_density)))


@lru_cache(maxsize=4096)
def beta_quantile(a: float, b: float, p: float) -> float:
    """The value below which a Beta(``a``, ``b``) variable lies with probability ``p``."""
    from scipy.special import betainc, betaincinv  # noqa: PLC0415

    x = float(betaincinv(a, b, p))
    if x in (0, 1):
        return x  # nearer to the end than floats tell
    log_density = (a - 1) * math.log(x) + (b - 1) * math.log1p(-x)
    log_density += math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return _settled(x - (float(betainc(a, b, x)) - p) / math.exp(log_density))


@lru_cache(maxsize=4096)
def chi_square_quantile(df: float, p: float) -> float:
    """The value below which chi-square with ``df`` degrees of freedom lies with probability ``p``."""
    from scipy.special import gammainc, gammaincinv  # noqa: PLC0415

    shape = df / 2
    x = float(gammaincinv(shape, p))
    log_density = (shape - 1) * math.log(x) - x - math.lgamma(shape)
    return _settled(2 * (x - (float(gammainc(shape, x)) - p) / math.exp(log_density)))


def _nearly_normal(df: float, confidence: float) -> float:
    """Expansion of t about the normal quantile (Abramowitz and Stegun 26.7.5)."""
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + first / df + second / df**2


def _settled(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
