"""Estimands of several arms: of three, of a parameter's values, of the points of a sweep."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from calibration_cases import Case, Standard, arms, exact_for
from calibration_populations import FLOOR, NARROW, NORMAL, SCALARS, WIDE, Population, lognormal, normal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from calibration_cases import Data
    from numpy.random import Generator

LEVELS, EXPONENT = (1, 2, 4), 1.5
POINTS = (1, 2, 4)
LEAST_OF_THREE = -1.5 / math.sqrt(math.pi)
"""Mean of the least of three standard normal values."""
OTHER = 0.01
"""Spread of the right arm, on logarithms."""


def plateau(pairing: str) -> Iterator[Case]:
    """The largest difference of three arms, of which two are alike."""
    for population in SCALARS:
        yield _shifted("plateau", population, (0, 0, 1), pairing)
    yield _shifted("plateau", NORMAL, (0, 0.5, 1), pairing, "normal, 2 %, evenly apart")


def increasing(pairing: str) -> Iterator[Case]:
    """The smallest step of three arms, both of which are as large."""
    for population in SCALARS:
        yield _shifted("increasing", population, (0, 1, 2), pairing)
    yield _shifted("increasing", NORMAL, (0, 1, 4), pairing, "normal, 2 %, one step larger")


def exponent() -> Iterator[Case]:
    """t on the slopes of blocks."""
    for population in SCALARS:
        yield Case(
            estimand="exponent",
            values=population.name,
            metrics=population.metric,
            draw=_powers(population),
            prediction='experiment = "e"\nquantity = "t"\ncontrast = "exponent(size)"',
            truth=EXPONENT,
            pairing="block",
            experiment=arms("abc", size=LEVELS),
            standard=exact_for(population, "log-normal"),
        )


def swept() -> Iterator[Case]:
    """t on one number a block, or one verdict of three points."""
    ratio = 'contrast = "a / b"\nover = "size"\nstatistic = '
    for population in SCALARS:
        yield _sweep(
            "geometric mean of 3 points",
            population,
            f'{ratio}"geometric-mean"',
            population.geometric_mean * 2,
            factors=POINTS,
            standard=exact_for(population, "log-normal"),
        )
    for sigma, population in ((0.3, NARROW), (1.0, WIDE)):
        least = LEAST_OF_THREE * math.hypot(sigma, OTHER)
        yield _sweep("least of 3 points", population, f'{ratio}"min"', math.exp(least))
    for factors, name in (((1, 0.1, 0.1), "one on the edge"), ((1, 1, 1), "each on the edge")):
        yield _sweep(
            "all of 3 points",
            NARROW,
            f'{ratio}"all"',
            1.0,
            factors=factors,
            name=name,
            standard=Standard.AT_MOST,
        )


def formula() -> Iterator[Case]:
    """Linear propagation: of arms of one experiment, with blocks and without, and of two experiments."""
    for population in SCALARS:
        yield _formula(population, "x - 2 * y", population.mean - 2, "block", exact_for(population, "normal"))
    share = "x / (x + y)"
    few = (NORMAL, NARROW, FLOOR)
    for pairing, populations in (("block", few), ("none", SCALARS), ("apart", few)):
        for population in populations:
            yield _formula(population, share, population.mean / (population.mean + 1), pairing)


def _formula(
    population: Population,
    text: str,
    truth: float,
    pairing: str,
    standard: Standard = Standard.STATED,
) -> Case:
    """A formula of x, of the population, and y, normal; ``apart`` in experiments of their own."""
    other, apart = normal(0.02), pairing == "apart"
    right = "f" if apart else "b"

    def draw(rng: Generator, studies: int, n: int) -> Data:
        shape = (studies, n)
        return {"a": {"t": population.draw(rng, shape)}, right: {"t": other.draw(rng, shape)}}

    where = {"block": "paired", "none": "unpaired", "apart": "two experiments"}[pairing]
    second = '[experiments.f]\nrepeats = {repeats}\nmetrics = { t = "s" }\n'
    y = "f:t" if apart else "e[b]:t"
    return Case(
        estimand=f"`{text}`, {where}",
        values=population.name,
        metrics=population.metric,
        draw=draw,
        prediction=f'inputs = {{ x = "e[a]:t", y = "{y}" }}\nformula = "{text}"',
        truth=truth,
        standard=standard,
        pairing="none" if apart else pairing,
        experiment=arms("a") + second if apart else arms("ab"),
    )


def _shifted(
    contrast: str, population: Population, steps: tuple[float, ...], pairing: str, name: str = ""
) -> Case:
    """Three arms apart by multiples of the population's standard deviation, of which one is asked about."""

    def draw(rng: Generator, studies: int, n: int) -> Data:
        return {
            arm: {"t": population.draw(rng, (studies, n)) + step * population.sd}
            for arm, step in zip("abc", steps, strict=True)
        }

    return Case(
        estimand=f"{contrast}, {'paired' if pairing == 'block' else 'unpaired'}",
        values=name or population.name,
        metrics=population.metric,
        draw=draw,
        prediction=f'experiment = "e"\nquantity = "t"\ncontrast = "{contrast}(a, b, c)"',
        truth=population.sd,
        pairing=pairing,
        experiment=arms("abc"),
        standard=Standard.AT_MOST
        if exact_for(population, "normal", pairing) is Standard.EXACT
        else Standard.STATED,
    )


def _powers(population: Population) -> Callable[[Generator, int, int], Data]:
    def draw(rng: Generator, studies: int, n: int) -> Data:
        return {
            arm: {"t": population.draw(rng, (studies, n)) * level**EXPONENT}
            for arm, level in zip("abc", LEVELS, strict=True)
        }

    return draw


def _sweep(
    estimand: str,
    population: Population,
    keys: str,
    truth: float,
    *,
    factors: tuple[float, ...] = (1, 1, 1),
    name: str = "",
    **more: object,
) -> Case:
    """Two arms at each of three points; the left one is larger by a factor of its own at each."""
    other = lognormal(OTHER)

    def draw(rng: Generator, studies: int, n: int) -> Data:
        shape, data = (studies, n), {}
        for size, factor in zip(POINTS, factors, strict=True):
            data[f"a[size={size}]"] = {"t": population.draw(rng, shape) * factor}
            data[f"b[size={size}]"] = {"t": other.draw(rng, shape)}
        return data

    return Case(
        estimand=estimand,
        values=f"{population.name}, {name}" if name else population.name,
        metrics=population.metric,
        draw=draw,
        prediction=f'experiment = "e"\nquantity = "t"\n{keys}',
        truth=truth,
        pairing="block",
        experiment=f"sweep = {{ size = {list(POINTS)} }}\n{arms('ab')}",
        **more,
    )
