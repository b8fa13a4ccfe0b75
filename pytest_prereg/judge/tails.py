"""Tails of the beta, gamma and t distributions, and where a tail has a given probability, in plain Python.

Libraries differ from release to release in the last digits of these, and with them would every record. Here
nothing is used but the elementary functions of :mod:`math`. Relative errors are about 1e-14.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

_EPSILON = 3e-16
_MOST_TERMS = 1_000_000
_MOST_STEPS = 200
_LONGEST_STEP = 20.0
_CLOSE = 3e-5
"""A step of third order makes of such an error one at the last digit."""
_LEAST = 1e-300
"""Below it a share is no longer a number of full precision."""
_STIRLING_FROM = 16.0
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)
"""B(2k) / (2k (2k - 1)), with Bernoulli's numbers."""


class Tail(NamedTuple):
    """The probability of a tail that ends at some coordinate, and how it changes with that."""

    log: float
    """Of the probability."""
    rate: float
    """Derivative of ``log``."""
    bend: float
    """Derivative of the logarithm of the density, which is that of the coordinate."""


def t_tail(df: float, log_t: float) -> Tail:
    """P(abs(T) > t) of Student's t, by the logarithm of t."""
    squared = math.exp(2 * log_t)
    x, y = df / (df + squared), squared / (df + squared)
    log, rate = _beta_below(df / 2, 0.5, x, y)
    return Tail(log, -2 * rate, x - df * y)


def beta_tail(a: float, b: float, logit: float) -> Tail:
    """P(X < x) of a Beta(``a``, ``b``) variable, by the logit of x."""
    x, y = max(share(logit), _LEAST), max(share(-logit), _LEAST)
    return Tail(*_beta_below(a, b, x, y), a * y - b * x)


def gamma_tail(shape: float, log_x: float, *, above: bool) -> Tail:
    """P(X < x) of a gamma variable of scale 1, or P(X > x) for ``above``, by the logarithm of x."""
    x = math.exp(log_x)
    far = x > shape + 1
    part = _gamma_fraction(shape, x) if far else _gamma_series(shape, x)
    log, rate = _either(_log_gamma_density(shape, x), part, complement=far is not above)
    return Tail(log, -rate if above else rate, shape - x)


def share(logit: float) -> float:
    """The inverse of the logit; a small share keeps its digits."""
    odds = math.exp(-abs(logit))
    return (odds if logit < 0 else 1.0) / (1 + odds)


def where(tail: Callable[[float], Tail], target: float, start: float) -> float:
    """The coordinate at which a tail has the probability ``target``, by Halley's method on its logarithm.

    That logarithm is concave for the tails here, so that steps from anywhere lead to the only root.

    Args:
        tail: By its coordinate.
        target: Above 0 and below 1.
        start: A first guess.
    """
    at, wanted = start, math.log(target)
    for _ in range(_MOST_STEPS):
        found = tail(at)
        error = found.log - wanted
        step = error / math.copysign(max(abs(found.rate), _LEAST), found.rate)
        step /= min(max(1 - step * (found.bend - found.rate) / 2, 0.5), 2.0)
        at -= min(max(step, -_LONGEST_STEP), _LONGEST_STEP)
        if abs(error) < _CLOSE:
            return at
    raise ArithmeticError(f"target: no tail of {target} was found")


def _either(log_density: float, part: float, *, complement: bool) -> tuple[float, float]:
    """Logarithm of a probability and its rate, where it or its complement is density times ``part``."""
    if not complement:
        return log_density + math.log(part), 1 / part
    density = math.exp(log_density)
    probability = 1 - density * part
    return math.log(probability), density / probability


def _beta_below(a: float, b: float, x: float, y: float) -> tuple[float, float]:
    """P(X < x) of a beta variable: its logarithm, and the rate by the logit of x; ``y`` is ``1 - x``."""
    log_density = _log_beta_density(a, b, x, y)
    if x <= (a + 1) / (a + b + 2):
        return _either(log_density, _beta_fraction(a, b, x) / a, complement=False)
    return _either(log_density, _beta_fraction(b, a, y) / b, complement=True)


def _log_beta_density(a: float, b: float, x: float, y: float) -> float:
    """Logarithm of ``x**a y**b / B(a, b)``, written around the mean, where its parts cancel."""
    away = a * y - b * x
    return (
        a * _log_ratio(x, a / (a + b), -away / a) + b * _log_ratio(y, b / (a + b), away / b) + _at_mean(a, b)
    )


def _log_ratio(value: float, mean: float, departure: float) -> float:
    """``log(value / mean)``, for a ratio of ``1 + departure``."""
    return math.log1p(departure) if departure > -0.5 else math.log(value / mean)  # noqa: PLR2004


@lru_cache(maxsize=64)
def _at_mean(a: float, b: float) -> float:
    """The logarithm of the beta density at its mean."""
    left_out = _stirling(a) + _stirling(b) - _stirling(a + b)
    return 0.5 * math.log(a / (a + b) * b / (2 * math.pi)) - left_out


def _beta_fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method."""
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, _MOST_TERMS):
        at = a + 2 * m
        term = m * (b - m) * x / ((at - 1) * at)
        d, c = 1 / (1 + term * d), 1 + term / c
        fraction *= c * d
        term = -(a + m) * (a + b + m) * x / (at * (at + 1))
        d, c = 1 / (1 + term * d), 1 + term / c
        change = c * d
        fraction *= change
        if abs(change - 1) < _EPSILON:
            return fraction
    raise ArithmeticError(f"a, b: the incomplete beta function of {a} and {b} does not settle")


def _log_gamma_density(shape: float, x: float) -> float:
    """Logarithm of ``x**shape exp(-x) / Gamma(shape)``, written around the mean."""
    departure = (x - shape) / shape
    power = shape * (_log_ratio(x, shape, departure) - departure)
    return power + 0.5 * math.log(shape / (2 * math.pi)) - _stirling(shape)


def _gamma_series(shape: float, x: float) -> float:
    """P(X < x) of a gamma variable over its density (DLMF 8.7.1)."""
    term = total = 1 / shape
    for n in range(1, _MOST_TERMS):
        term *= x / (shape + n)
        total += term
        if term < _EPSILON * total:
            return total
    raise ArithmeticError(f"shape: the incomplete gamma function of {shape} does not settle")


def _gamma_fraction(shape: float, x: float) -> float:
    """P(X > x) of a gamma variable over its density (DLMF 8.9.2), by Lentz's method."""
    b = x + 1 - shape
    c, d = math.inf, 1 / b
    fraction = d
    for n in range(1, _MOST_TERMS):
        term = n * (shape - n)
        b += 2
        d, c = 1 / (b + term * d), b + term / c
        change = c * d
        fraction *= change
        if abs(change - 1) < _EPSILON:
            return fraction
    raise ArithmeticError(f"shape: the incomplete gamma function of {shape} does not settle")


def _stirling(z: float) -> float:
    """What Stirling's formula for the logarithm of the gamma function leaves out (DLMF 5.11.1)."""
    if z < _STIRLING_FROM:
        return math.lgamma(z) - ((z - 0.5) * math.log(z) - z + 0.5 * math.log(2 * math.pi))
    total = 0.0
    for coefficient in reversed(_STIRLING):
        total = total / (z * z) + coefficient
    return total / z
