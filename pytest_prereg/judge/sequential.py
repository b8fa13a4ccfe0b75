"""Evidence that may be looked at after every repeat."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pytest_prereg.judge.intervals import Interval, moments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_prereg.judge.intervals import Moments

MIXTURE_G = 10.0
"""Variance of the standardised effect in the mixture that verdicts use."""


def t_mixture_e_value(values: Sequence[float], *, g: float, mean: float = 0.0) -> float:
    """E-value against normal values of mean ``mean`` and unknown variance, a Gaussian mixture over effects.

    ``g`` is the mixture's variance of the standardised effect (Wang and Ramdas 2025, theorem 4.9, with
    g = 1/c²; the same number is the Bayes factor of Gönen et al. 2005). At least 20 means evidence at 5 %, at
    any stopping time.
    """
    sample = moments(values)
    if sample.variance == 0:
        raise ValueError("values: they are constant, so the e-value is not defined")
    n, df = sample.n, sample.n - 1
    t_squared = n * (sample.mean - mean) ** 2 / sample.variance
    ratio = (1 + t_squared / df) / (1 + t_squared / (df * (1 + n * g)))
    return math.exp(n / 2 * math.log(ratio) - 0.5 * math.log1p(n * g))


def t_mixture_interval(sample: Moments, confidence: float, g: float = MIXTURE_G) -> Interval:
    """One interval of a confidence sequence for the mean of normal values of unknown variance.

    All intervals of a series of growing samples hold the mean together with ``confidence``, so one may look
    after every repeat (Wang and Ramdas 2025, theorem 4.9, with g = 1/c²). The mean lies outside just where
    its :func:`t_mixture_e_value` exceeds 1 / (1 - ``confidence``). Both sides are infinite for samples too
    small to bound the mean: of 2 values at 95 % and g = 10.
    """
    n, spread = sample.n, sample.variance * (sample.n - 1) / sample.n
    prior = 1 + n * g
    log_q = (2 * math.log(1 - confidence) - math.log(prior)) / n
    # q (1 + n g) - 1 as a sum whose parts are exact to the last digit, also for a small g.
    below = n * g * math.exp(log_q) + math.expm1(log_q)
    half = math.sqrt(-math.expm1(log_q) * prior / below * spread) if below > 0 else math.inf
    return Interval(estimate=sample.mean, low=sample.mean - half, high=sample.mean + half, level=confidence)
