"""Quantiles of the t and beta distributions, equal to twelve digits on every supported scipy.

``stdtrit`` and ``betaincinv`` differ between scipy 1.11 and 1.17 by up to 1e-10, which a record kept at
fifteen digits would show. One Newton step over the forward function, and rounding, take that away.
"""

from __future__ import annotations

import math
from functools import lru_cache

DIGITS = 12


@lru_cache(maxsize=4096)
def t_quantile(df: float, confidence: float) -> float:
    """The value that Student's t with ``df`` degrees of freedom stays within, ±, with ``confidence``."""
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
    log_density = (a - 1) * math.log(x) + (b - 1) * math.log1p(-x)
    log_density += math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return _settled(x - (float(betainc(a, b, x)) - p) / math.exp(log_density))


def _settled(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
