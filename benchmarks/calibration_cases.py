"""A row of the calibration: an estimand of a population, as TOML and as what is true; how rows are made."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from calibration_populations import Population
    from numpy.random import Generator
    from numpy.typing import NDArray

    Data = dict[str, dict[str, NDArray[np.float64]]]
    """By arm, then metric: values of the shape (studies, n), or (studies, n, samples)."""

SIZES = (3, 5, 7, 10, 20, 30)
TAIL = 0.025
"""The nominal error in each direction."""
ONLY = ""
"""The arm of an experiment that names none."""
BLOCKS = 0.05
"""Standard deviation of what the arms of a block share."""


class Standard(StrEnum):
    """What the shares of wrong verdicts are held to."""

    EXACT = "exact"
    AT_MOST = "at most"
    STATED = "stated"
    """Nothing but that the verdict warns where the table shows more than the nominal share."""


def half_each(_: int) -> tuple[float, float]:
    """The nominal shares of wrong verdicts of a continuous method."""
    return TAIL, TAIL


@dataclass(frozen=True, kw_only=True)
class Case:
    """One estimand of one population, to be simulated at several sizes."""

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
    experiment: str = ""
    """More of the experiment's table: a sweep, and then the arms."""
    sizes: tuple[int, ...] = SIZES
    nominal: Callable[[int], tuple[float, float]] = half_each
    """Shares of false *supported* and false *refuted* that the method allows at that n."""
    limits: Mapping[int, float] = field(default_factory=dict)
    """What neither share may exceed, by n."""

    @property
    def key(self) -> str:
        """The name that its random numbers follow from."""
        return f"{self.estimand}: {self.values}"


def one_arm(estimand: str, population: Population, statistic: str, truth: float, **more: object) -> Case:
    """A statistic of one arm."""
    return Case(
        estimand=estimand,
        values=population.name,
        metrics=population.metric,
        draw=lambda rng, studies, n: {ONLY: {"t": population.draw(rng, (studies, n))}},
        prediction=f'experiment = "e"\nquantity = "{population.quantity}"\n{statistic}',
        truth=truth,
        **more,
    )


def two_arms(
    estimand: str,
    left: Population,
    right: Population,
    contrast: str,
    *,
    pairing: str,
    shared: Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]] | None = None,
    **more: object,
) -> Case:
    """A contrast of two populations; ``shared`` puts what a block has in common on the values of each arm."""

    def draw(rng: Generator, studies: int, n: int) -> Data:
        values = [left.draw(rng, (studies, n)), right.draw(rng, (studies, n))]
        if left.quantity != "t":
            values[1] = values[1][..., None]  # one sample, where the other arm has many
        if pairing == "block" and shared is not None:
            common = rng.normal(0.0, BLOCKS, (studies, n))
            values = [shared(one, common if one.ndim == common.ndim else common[..., None]) for one in values]
        return {arm: {"t": drawn} for arm, drawn in zip("ab", values, strict=True)}

    return Case(
        estimand=f"{estimand}, {'paired' if pairing == 'block' else 'unpaired'}",
        values=left.name,
        metrics=left.metric,
        draw=draw,
        prediction=f'experiment = "e"\nquantity = "{left.quantity}"\ncontrast = "{contrast}"',
        pairing=pairing,
        experiment=arms("ab"),
        **more,
    )


def arms(names: str, **params: tuple[float, ...]) -> str:
    """Tables of arms of one letter each, with a value of each parameter for each arm."""
    lines = []
    for place, name in enumerate(names):
        lines += [f"[experiments.e.arms.{name}]", *(f"{key} = {all_[place]}" for key, all_ in params.items())]
    return "\n".join([*lines, ""])


def exact_for(population: Population, family: str, pairing: str = "block") -> Standard:
    """What t is held to; Welch's is approximate at its best."""
    return Standard.EXACT if population.family == family and pairing == "block" else Standard.STATED


def order_statistics(q: float) -> Callable[[int], tuple[float, float]]:
    """Shares of studies in which the order statistics nearest to the nominal level miss a quantile."""

    def missed(n: int) -> tuple[float, float]:
        chances = [math.comb(n, k) * q**k * (1 - q) ** (n - k) for k in range(n + 1)]
        return _largest_tail(chances[::-1]), _largest_tail(chances)

    return missed


def _largest_tail(chances: list[float]) -> float:
    tails = np.cumsum(chances)
    return float(tails[tails <= TAIL].max(initial=0.0))
