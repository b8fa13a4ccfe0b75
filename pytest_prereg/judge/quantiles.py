"""Quantiles of the t, beta and chi-square distributions at twelve digits, the same everywhere.

They come from :mod:`pytest_prereg.judge.tails`: scipy's differ between 1.11 and 1.18 by up to 5e-9, and
even after a Newton step over its distribution functions one in a hundred does at the twelfth digit, which a
record would show.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from statistics import NormalDist

from pytest_prereg.judge.tails import beta_tail, gamma_tail, share, t_tail, where

DIGITS = 12
NEARLY_NORMAL = 1e4
"""From so many degrees of freedom on, an expansion has more digits than the beta function."""
_HALF = 0.5
_LEAST_LOGIT = -600.0
"""So near to 0 the first term of the power series is all there is."""


@lru_cache(maxsize=4096)
def t_quantile(df: float, confidence: float) -> float:
    """The value that Student's t with ``df`` degrees of freedom stays within, ±, with ``confidence``.

    ``df`` may be infinite: the normal quantile.
    """
    roughly = _nearly_normal(df, confidence)
    if df >= NEARLY_NORMAL:
        return _settled(roughly)
    return _settled(math.exp(where(partial(t_tail, df), 1 - confidence, math.log(roughly))))


@lru_cache(maxsize=4096)
def beta_quantile(a: float, b: float, p: float) -> float:
    """The value below which a Beta(``a``, ``b``) variable lies with probability ``p``.

    0 or 1 where it is nearer to them than floats tell.
    """
    if p > _HALF:
        return _settled(share(-_logit_of_beta(b, a, 1 - p)))
    return _settled(share(_logit_of_beta(a, b, p)))


@lru_cache(maxsize=4096)
def chi_square_quantile(df: float, p: float) -> float:
    """The value below which chi-square with ``df`` degrees of freedom lies with probability ``p``."""
    shape, above = df / 2, p > _HALF
    start = _log_of_gamma(shape, p)
    return _settled(
        2 * math.exp(where(partial(gamma_tail, shape, above=above), 1 - p if above else p, start))
    )


def _nearly_normal(df: float, confidence: float) -> float:
    """Expansion of t about the normal quantile (Abramowitz and Stegun 26.7.5)."""
    z = -NormalDist().inv_cdf((1 - confidence) / 2)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + math.fsum(term / df**power for power, term in enumerate(terms, 1))


def _logit_of_beta(a: float, b: float, p: float) -> float:
    """The logit of the quantile, for ``p`` up to a half."""
    start = _roughly_beta(a, b, p)
    return start if start < _LEAST_LOGIT else where(partial(beta_tail, a, b), p, start)


def _roughly_beta(a: float, b: float, p: float) -> float:
    """Abramowitz and Stegun 26.5.22; for small parameters the first term of the power series about 0."""
    middle = math.log(a / b)
    if a < 1 or b < 1:
        log_x = (math.log(p * a) + math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)) / a
        return min(log_x, middle) if log_x < -1 else middle
    z = NormalDist().inv_cdf(p)
    left, right = 1 / (2 * a - 1), 1 / (2 * b - 1)
    h, third = 2 / (left + right), (z * z - 3) / 6
    if h + third < 0:
        return middle
    return middle + 2 * (z * math.sqrt(h + third) / h + (right - left) * (third + 5 / 6 - 2 / (3 * h)))


def _log_of_gamma(shape: float, p: float) -> float:
    """Wilson and Hilferty's cube; below it the first term of the power series about 0."""
    least = (math.log(p) + math.lgamma(shape + 1)) / shape
    ninth = 1 / (9 * shape)
    root = 1 - ninth + NormalDist().inv_cdf(p) * math.sqrt(ninth)
    return max(least, math.log(shape * root**3)) if root > 0 else least


def _settled(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
