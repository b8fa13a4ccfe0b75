"""Evidence that may be looked at after every repeat."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pytest_prereg.judge.intervals import moments

if TYPE_CHECKING:
    from collections.abc import Sequence


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
