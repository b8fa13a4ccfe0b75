"""Every estimand that is calibrated, with the populations that it is asked of.

A new one is a function that yields cases, and an entry in :data:`TABLES`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from calibration_cases import (
    ONLY,
    Case,
    Standard,
    exact_for,
    one_arm,
    order_statistics,
    two_arms,
)
from calibration_populations import (
    NARROW,
    POPULATIONS,
    SCALARS,
    TIMEOUTS,
    TWO_COUNTS,
    TWO_VALUED,
    WIDE,
    Population,
    lognormal,
    normal,
)
from calibration_several import exponent, formula, increasing, plateau, swept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from calibration_cases import Data
    from numpy.random import Generator


def mean() -> Iterator[Case]:
    """Student's t, or its hull with modified Cox."""
    for population in (*POPULATIONS, TWO_COUNTS, TIMEOUTS):
        yield one_arm(
            "mean",
            population,
            'statistic = "mean"',
            population.mean,
            standard=exact_for(population, "normal"),
            limits={7: 0.065} if population is WIDE else {},
        )


def geometric_mean() -> Iterator[Case]:
    """Student's t on logarithms."""
    for population in POPULATIONS:
        yield one_arm(
            "geometric mean",
            population,
            'statistic = "geometric-mean"',
            population.geometric_mean,
            standard=exact_for(population, "log-normal"),
        )


def median() -> Iterator[Case]:
    """Order statistics."""
    for population in (*POPULATIONS, TIMEOUTS):
        yield one_arm(
            "median",
            population,
            'statistic = "median"',
            population.median,
            standard=Standard.AT_MOST if population is TWO_VALUED else Standard.EXACT,
            nominal=order_statistics(0.5),
        )


def quantile() -> Iterator[Case]:
    """Order statistics, each side on its own: the upper one needs 36 repeats."""
    for population in POPULATIONS:
        yield one_arm(
            "0.9 quantile",
            population,
            'statistic = "quantile(0.9)"',
            population.quantile(0.9),
            standard=Standard.AT_MOST if population is TWO_VALUED else Standard.EXACT,
            nominal=order_statistics(0.9),
            sizes=(3, 7, 10, 20, 30, 40, 60),
        )


def spread() -> Iterator[Case]:
    """Chi-square."""
    for population in POPULATIONS:
        yield one_arm(
            "sd", population, 'statistic = "sd"', population.sd, standard=exact_for(population, "normal")
        )


def proportion() -> Iterator[Case]:
    """Clopper-Pearson. Whatever a threshold cuts, what is counted is binomial."""
    for chance in (0.5, 0.9, 0.99):
        yield Case(
            estimand="proportion",
            values=f"p = {chance:g}",
            metrics='hit = "1"',
            draw=_hits(chance),
            prediction='experiment = "e"\nquantity = "hit"\nstatistic = "proportion"',
            truth=chance,
            standard=Standard.AT_MOST,
        )


TRIALS = 20


def clustered_proportion() -> Iterator[Case]:
    """Korn and Graubard's: trials of one repeat are alike (beta-binomial)."""
    for chance, correlation in ((0.5, 0.2), (0.9, 0.0), (0.9, 0.05), (0.9, 0.2), (0.99, 0.05)):
        yield Case(
            estimand=f"proportion of {TRIALS} trials a repeat",
            values=f"p = {chance:g}, correlation {correlation:g}",
            metrics='k = { unit = "1", exact = true }, m = { unit = "1", exact = true }',
            draw=_clustered_hits(chance, correlation),
            prediction='experiment = "e"\nsuccesses = "k"\ntrials = "m"',
            truth=chance,
        )


def difference(pairing: str) -> Iterator[Case]:
    """t on the differences of blocks, or Welch's t; against a narrow normal arm."""
    other = normal(0.01)
    for population in POPULATIONS:
        yield two_arms(
            "difference",
            population,
            other,
            "a - b",
            truth=population.mean - other.mean,
            pairing=pairing,
            shared=np.add,
            standard=exact_for(population, "normal", pairing),
        )


def geometric_ratio(pairing: str) -> Iterator[Case]:
    """t on the log ratios of blocks, or Welch's t on logarithms; against a narrow log-normal arm."""
    other = lognormal(0.01)
    for population in POPULATIONS:
        yield two_arms(
            "ratio of geometric means",
            population,
            other,
            "a / b",
            truth=population.geometric_mean,
            pairing=pairing,
            shared=lambda values, common: values * np.exp(common),
            standard=exact_for(population, "log-normal", pairing),
        )


def mean_ratio(pairing: str) -> Iterator[Case]:
    """Fieller's; over a normal arm of 10 %, so that the denominator matters."""
    other = normal(0.1)
    for population in POPULATIONS:
        yield two_arms(
            "ratio of means",
            population,
            other,
            'a / b"\nstatistic = "mean',
            truth=population.mean,
            pairing=pairing,
            standard=exact_for(population, "normal", pairing),
        )


def ratio_of_sums() -> Iterator[Case]:
    """Fieller's; times of requests that vary by 10 %, and times that grow with what was requested."""
    for population in SCALARS:
        yield _sums(population, population.name, normal(0.1), grows=False, family="normal")
    yield _sums(NARROW, "log-normal, 0.3, per token", lognormal(0.3), grows=True)


def _hits(chance: float) -> Callable[[Generator, int, int], Data]:
    def draw(rng: Generator, studies: int, n: int) -> Data:
        return {ONLY: {"hit": (rng.random((studies, n)) < chance).astype(float)}}

    return draw


def _clustered_hits(chance: float, correlation: float) -> Callable[[Generator, int, int], Data]:
    def draw(rng: Generator, studies: int, n: int) -> Data:
        chances = np.full((studies, n), chance)
        if correlation:
            size = 1 / correlation - 1
            chances = rng.beta(chance * size, (1 - chance) * size, (studies, n))
        hits = rng.binomial(TRIALS, chances).astype(float)
        return {ONLY: {"k": hits, "m": np.full_like(hits, TRIALS)}}

    return draw


def _sums(times: Population, name: str, requests: Population, *, grows: bool, family: str = "none") -> Case:
    def draw(rng: Generator, studies: int, n: int) -> Data:
        x, y = times.draw(rng, (studies, n)), requests.draw(rng, (studies, n))
        return {ONLY: {"t": x * y if grows else x, "tokens": y}}

    return Case(
        estimand="ratio of sums",
        values=name,
        metrics=f'{times.metric}, tokens = "token"',
        draw=draw,
        prediction='experiment = "e"\nnumerator = "t"\ndenominator = "tokens"',
        truth=times.mean if grows else times.mean / requests.mean,
        standard=exact_for(times, family),
    )


TABLES: dict[str, tuple[Case, ...]] = {
    "mean": (*mean(),),
    "geometric-mean": (*geometric_mean(),),
    "median": (*median(),),
    "quantile": (*quantile(),),
    "sd": (*spread(),),
    "proportion": (*proportion(), *clustered_proportion()),
    "difference": (*difference("block"), *difference("none")),
    "geometric-ratio": (*geometric_ratio("block"), *geometric_ratio("none")),
    "mean-ratio": (*mean_ratio("block"), *mean_ratio("none"), *ratio_of_sums()),
    "several": (
        *plateau("block"),
        *plateau("none"),
        *increasing("block"),
        *increasing("none"),
        *exponent(),
    ),
    "sweep": (*swept(),),
    "formula": (*formula(),),
}
