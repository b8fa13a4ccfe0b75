"""What the range alone says of a few normal values, where nothing else of them is published."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr


def expected_range(n: int) -> float:
    """Mean range of n standard normal values, d2, by the integral of Tippett 1925 (Biometrika 17)."""
    at, step = np.linspace(-12, 12, 4801, retstep=True)
    below = ndtr(at)
    return float((1 - (1 - below) ** n - below**n).sum() * step)


def range_quantile(share: float, n: int) -> float:
    """The range that n standard normal values keep with that probability, by bisection of its law.

    All but the least of them lie within it above the least (Hartley 1942, Biometrika 32).
    """
    at, step = np.linspace(-12, 12, 2401, retstep=True)
    density = n * np.exp(-(at**2) / 2) / math.sqrt(2 * math.pi) * step
    low, high = 0.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        if float(density @ (ndtr(at + middle) - ndtr(at)) ** (n - 1)) < share:
            low = middle
        else:
            high = middle
    return high


def range_test(difference: float, width: float, n: int) -> float:
    """Two-sided p of a mean's difference where only the range is known (Lord 1947, Biometrika 34).

    Exact for normal values: mean and range are independent, and the range has a known density.
    """
    at, step = np.linspace(-9, 9, 361, retstep=True)
    ranges, apart = np.linspace(0, 15, 361, retstep=True)
    low, high = at[:, None], at[:, None] + ranges
    density = np.exp(-(low**2 + high**2) / 2) / (2 * math.pi) * (ndtr(high) - ndtr(low)) ** (n - 2)
    of_range = n * (n - 1) * density.sum(axis=0) * step
    return float((of_range * 2 * ndtr(-abs(difference) / width * ranges * math.sqrt(n))).sum() * apart)


def possible_deviations(width: float, n: int) -> tuple[float, float]:
    """The least and greatest standard deviation (of n - 1) that n values with that range can have.

    Least where two lie at the ends and the others half-way, greatest where all lie at the ends.
    """
    least = width**2 / 2
    most = width**2 * (n // 2) * (n - n // 2) / n
    return math.sqrt(least / (n - 1)), math.sqrt(most / (n - 1))
