"""What is calibrated: every estimand with the populations that it is asked of, as TOML and as what is true.

A new estimand is a function that yields cases, and an entry in :data:`TABLES`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
from calibration_populations import (
    POPULATIONS,
    TIMEOUTS,
    TWO_COUNTS,
    TWO_VALUED,
    WIDE,
    Population,
    lognormal,
    normal,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.random import Generator
    from numpy.typing import NDArray

    Data = dict[str, dict[str, NDArray[np.float64]]]
    """By arm, then metric: values of the shape (studies, n), or (studies, n, samples)."""

SIZES = (3, 5, 7, 10, 20, 30)
TAIL = 0.025
"""The nominal error in each direction."""
ONLY = ""
"""The arm of an experiment that names none."""


class Standard(StrEnum):
    """What the shares of wrong verdicts are held to."""

    EXACT = "nominal"
    AT_MOST = "at most"
    STATED = "stated"
    """Nothing but that the verdict says ``approximate`` where the table shows more than the nominal share."""


def half_each(_: int) -> tuple[float, float]:
    """The nominal shares of wrong verdicts of a continuous method."""
    return TAIL, TAIL


@dataclass(frozen=True, kw_only=True)
class Case:
    """A row of a table: one estimand of one population, to be simulated at several sizes."""

    estimand: str
    values: str
    metrics: str
    draw: Callable[[Generator, int, int], Data]
    """From a generator, a number of studies, and n."""
    prediction: str
    """Keys of the prediction, but for its regions."""
    truth: float
    """The edge of both regions."""
    standard: Standard = Standard.STATED
    pairing: str = "none"
    sizes: tuple[int, ...] = SIZES
    nominal: Callable[[int], tuple[float, float]] = half_each
    """Shares of false *supported* and false *refuted* that the method allows at that n."""
    limits: Mapping[int, float] = field(default_factory=dict)
    """What neither share may exceed, by n."""

    @property
    def key(self) -> str:
        """The name that its random numbers follow from."""
        return f"{self.estimand}: {self.values}"


def mean() -> Iterator[Case]:
    """Student's t, or its hull with modified Cox."""
    for population in (*POPULATIONS, TWO_COUNTS, TIMEOUTS):
        yield _one_arm(
            "mean",
            population,
            'statistic = "mean"',
            population.mean,
            standard=_exact_for(population, "normal"),
            limits={7: 0.065} if population is WIDE else {},
        )


def geometric_mean() -> Iterator[Case]:
    """Student's t on logarithms."""
    for population in POPULATIONS:
        yield _one_arm(
            "geometric-mean",
            population,
            'statistic = "geometric-mean"',
            population.geometric_mean,
            standard=_exact_for(population, "log-normal"),
        )


def median() -> Iterator[Case]:
    """Order statistics."""
    for population in (*POPULATIONS, TIMEOUTS):
        yield _one_arm(
            "median",
            population,
            'statistic = "median"',
            population.median,
            standard=Standard.AT_MOST if population is TWO_VALUED else Standard.EXACT,
            nominal=order_statistics(0.5),
        )


def proportion() -> Iterator[Case]:
    """Clopper-Pearson. Whatever a threshold cuts, what is counted is binomial."""
    for chance in (0.5, 0.9, 0.99):
        yield Case(
            estimand="proportion",
            values=f"p = {chance:g}",
            metrics='hit = "1"',
            draw=_hits(chance),
            prediction='quantity = "hit"\nstatistic = "proportion"',
            truth=chance,
            standard=Standard.AT_MOST,
        )


def difference(pairing: str) -> Iterator[Case]:
    """t on the differences of blocks, or Welch's t; against a narrow normal arm."""
    other = normal(0.01)
    for population in POPULATIONS:
        yield _two_arms(
            "difference",
            population,
            other,
            'contrast = "a - b"',
            truth=population.mean - other.mean,
            pairing=pairing,
            standard=_exact_for(population, "normal", pairing),
        )


def geometric_ratio(pairing: str) -> Iterator[Case]:
    """t on the log ratios of blocks, or Welch's t on logarithms; against a narrow log-normal arm."""
    other = lognormal(0.01)
    for population in POPULATIONS:
        yield _two_arms(
            "ratio of geometric means",
            population,
            other,
            'contrast = "a / b"',
            truth=population.geometric_mean,
            pairing=pairing,
            standard=_exact_for(population, "log-normal", pairing),
        )


def order_statistics(q: float) -> Callable[[int], tuple[float, float]]:
    """Shares of studies in which the order statistics nearest to the nominal level miss a quantile."""

    def missed(n: int) -> tuple[float, float]:
        chances = [math.comb(n, k) * q**k * (1 - q) ** (n - k) for k in range(n + 1)]
        return _largest_tail(chances[::-1]), _largest_tail(chances)

    return missed


def _largest_tail(chances: list[float]) -> float:
    tails = np.cumsum(chances)
    return float(tails[tails <= TAIL].max(initial=0.0))


def _exact_for(population: Population, family: str, pairing: str = "block") -> Standard:
    """What t is held to; Welch's is approximate at its best."""
    return Standard.EXACT if population.family == family and pairing == "block" else Standard.STATED


def _one_arm(estimand: str, population: Population, statistic: str, truth: float, **more: object) -> Case:
    return Case(
        estimand=estimand,
        values=population.name,
        metrics=population.metric,
        draw=lambda rng, studies, n: {ONLY: {"t": population.draw(rng, (studies, n))}},
        prediction=f'quantity = "{population.quantity}"\n{statistic}',
        truth=truth,
        **more,
    )


def _two_arms(
    estimand: str,
    left: Population,
    right: Population,
    contrast: str,
    *,
    truth: float,
    pairing: str,
    **more: object,
) -> Case:
    def draw(rng: Generator, studies: int, n: int) -> Data:
        values = left.draw(rng, (studies, n)), right.draw(rng, (studies, n))
        if left.quantity != "t":
            values = values[0], values[1][..., None]  # one sample, where the other arm has many
        return {arm: {"t": drawn} for arm, drawn in zip("ab", values, strict=True)}

    return Case(
        estimand=f"{estimand}, {'paired' if pairing == 'block' else 'unpaired'}",
        values=left.name,
        metrics=left.metric,
        draw=draw,
        prediction=f'quantity = "{left.quantity}"\n{contrast}',
        truth=truth,
        pairing=pairing,
        **more,
    )


def _hits(chance: float) -> Callable[[Generator, int, int], Data]:
    def draw(rng: Generator, studies: int, n: int) -> Data:
        return {ONLY: {"hit": (rng.random((studies, n)) < chance).astype(float)}}

    return draw


TABLES: dict[str, tuple[Case, ...]] = {
    "mean": (*mean(),),
    "geometric-mean": (*geometric_mean(),),
    "median": (*median(),),
    "proportion": (*proportion(),),
    "difference": (*difference("block"), *difference("none")),
    "geometric-ratio": (*geometric_ratio("block"), *geometric_ratio("none")),
}
