"""What the calibration draws repeats from, and what is true of it: closed forms, or many digits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.random import Generator
    from numpy.typing import NDArray

    Draw = Callable[[Generator, tuple[int, ...]], NDArray[np.float64]]


@dataclass(frozen=True, kw_only=True)
class Population:
    """Independent positive repeats, with the true value of what may be asked of them."""

    name: str
    draw: Draw
    """Values of the shape (studies, n); a population of bursts adds an axis for the samples of a repeat."""
    mean: float
    log_mean: float
    """Mean of the logarithms."""
    sd: float
    quantile: Callable[[float], float]
    family: str = ""
    """``normal`` or ``log-normal``, where a t interval on the values or on their logarithms is exact."""
    metric: str = 't = "s"'
    quantity: str = "t"
    """The expression that makes a repeat one number."""

    @property
    def median(self) -> float:
        """The 0.5 quantile."""
        return self.quantile(0.5)

    @property
    def geometric_mean(self) -> float:
        """The exponential of the mean of the logarithms."""
        return math.exp(self.log_mean)


def mean_log(sd: float) -> float:
    """Mean of log(1 + sd Z) for a standard normal Z: its asymptotic series, to 1e-12 for sd up to 0.05."""
    double_factorial, total = 1.0, 0.0
    for k in range(1, 8):
        double_factorial *= 2 * k - 1
        total -= double_factorial * sd ** (2 * k) / (2 * k)
    return total


def _near_one(name: str, sd: float, draw: Draw, quantity: str = "t") -> Population:
    return Population(
        name=name,
        draw=draw,
        mean=1.0,
        log_mean=mean_log(sd),
        sd=sd,
        quantile=NormalDist(1.0, sd).inv_cdf,
        family="normal",
        quantity=quantity,
    )


def normal(sd: float) -> Population:
    """Normal values of mean 1."""
    return _near_one(f"normal, {100 * sd:g} %", sd, lambda rng, shape: rng.normal(1.0, sd, shape))


def lognormal(sigma: float) -> Population:
    """Log-normal values of median 1 whose logarithms have that standard deviation."""
    mean = math.exp(sigma**2 / 2)
    return Population(
        name=f"log-normal, {sigma:g}",
        draw=lambda rng, shape: rng.lognormal(0.0, sigma, shape),
        mean=mean,
        log_mean=0.0,
        sd=mean * math.sqrt(math.expm1(sigma**2)),
        quantile=lambda q: math.exp(NormalDist(0.0, sigma).inv_cdf(q)),
        family="log-normal",
    )


SAMPLES = 16
"""In each burst."""
WITHIN, MEMORY, BETWEEN = 0.05, 0.9, 0.02
"""Standard deviation of the samples, correlation of neighbours, standard deviation between repeats."""


def burst_sd() -> float:
    """Standard deviation of the mean of a burst: between repeats, and of a mean of correlated samples."""
    lags = sum((SAMPLES - lag) * MEMORY**lag for lag in range(1, SAMPLES))
    return math.sqrt(BETWEEN**2 + WITHIN**2 * (SAMPLES + 2 * lags) / SAMPLES**2)


def draw_bursts(rng: Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Each repeat: a level of its own, and around it samples that remember their neighbours (AR 1)."""
    noise = rng.normal(0.0, WITHIN, (*shape, SAMPLES))
    fresh = math.sqrt(1 - MEMORY**2)
    for sample in range(1, SAMPLES):
        noise[..., sample] = MEMORY * noise[..., sample - 1] + fresh * noise[..., sample]
    return noise + rng.normal(1.0, BETWEEN, shape)[..., None]


def two_valued(chance: float, metric: str, name: str) -> Population:
    """10, or with that chance 11."""
    return Population(
        name=name,
        draw=lambda rng, shape: 10.0 + (rng.random(shape) < chance),
        mean=10 + chance,
        log_mean=(1 - chance) * math.log(10) + chance * math.log(11),
        sd=math.sqrt(chance * (1 - chance)),
        quantile=lambda q: 10.0 if q <= 1 - chance else 11.0,
        metric=metric,
    )


GAMMA_2 = {0.5: 1.6783469900166607, 0.9: 3.889720169867429}
"""Quantiles: where (1 + x) exp(-x) is 1 - q."""

GAMMA = Population(
    name="gamma, shape 2",
    draw=lambda rng, shape: rng.gamma(2.0, 1.0, shape),
    mean=2.0,
    log_mean=0.4227843350984671,  # 1 - Euler's constant
    sd=math.sqrt(2),
    quantile=GAMMA_2.__getitem__,
)
FLOOR = Population(
    name="10 + exponential",
    draw=lambda rng, shape: 10.0 + rng.exponential(1.0, shape),
    mean=11.0,
    log_mean=2.394148426933834,  # log 10 + exp(10) E1(10)
    sd=1.0,
    quantile=lambda q: 10.0 - math.log1p(-q),
)
NORMAL = normal(0.02)
NARROW, WIDE = lognormal(0.3), lognormal(1.0)
BURSTS = _near_one("bursts of 16 samples", burst_sd(), draw_bursts, "mean(t)")
TIMEOUTS = Population(
    name="1 % timeouts at 30 ×",
    draw=lambda rng, shape: rng.normal(1.0, 0.02, shape) + 29.0 * (rng.random(shape) < 0.01),
    mean=1.29,
    log_mean=0.99 * mean_log(0.02) + 0.01 * (math.log(30) + mean_log(0.02 / 30)),
    sd=math.sqrt(0.02**2 + 29**2 * 0.01 * 0.99),
    quantile=lambda q: NormalDist(1.0, 0.02).inv_cdf(q / 0.99),  # for q below 0.99
)
TWO_VALUED = two_valued(0.4, 't = "s"', "two-valued, 10 or 11")
TWO_COUNTS = two_valued(0.4, 't = { unit = "token", exact = true }', "two-valued, of an exact metric")

CONTINUOUS = (NORMAL, NARROW, WIDE, GAMMA, FLOOR, BURSTS)
POPULATIONS = (*CONTINUOUS, TWO_VALUED)
SCALARS = tuple(population for population in POPULATIONS if population is not BURSTS)
"""Those of one number a repeat."""
