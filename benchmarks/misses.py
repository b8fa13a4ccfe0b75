"""How often the intervals miss, by direction; the nominal rate is 2.5 % each.

``python benchmarks/misses.py > docs/tables/misses.md`` writes the documentation's table. Samples come from
the standard library's generator, whose streams don't change, so the table is the same everywhere.
"""

from __future__ import annotations

import math
import random
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_prereg.judge import intervals

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_prereg.judge.intervals import Interval

STUDIES = 10_000
SIZES = (5, 7, 10, 20)
SPREAD = 0.2
"""Coefficient of variation above which a mean of one sign is judged by the hull."""


@dataclass(frozen=True)
class Case:
    """An estimand, a population with its true value, and one study of n repeats."""

    estimand: str
    values: str
    truth: float
    study: Callable[[random.Random, int], Interval]


def judged_mean(values: list[float]) -> Interval:
    """The interval that judges a mean: Student's, or its hull with modified Cox."""
    student = intervals.student_t(values)
    one_sign = min(values) > 0
    if not one_sign or statistics.stdev(values) <= SPREAD * student.estimate:
        return student
    return intervals.hull(student, intervals.modified_cox(values))


def sample(draw: Callable[[random.Random], float], rng: random.Random, n: int) -> list[float]:
    """Independent draws."""
    return [draw(rng) for _ in range(n)]


def lognormal(sigma: float) -> Callable[[random.Random], float]:
    """Log-normal values with median 1 and that standard deviation of their logarithms."""
    return lambda rng: rng.lognormvariate(0.0, sigma)


def floor_and_tail(rng: random.Random) -> float:
    """A constant time and an exponential delay of a tenth of it: skewed, with a small spread."""
    return 1.0 + rng.expovariate(10.0)


def timeouts(rng: random.Random) -> float:
    """Two per cent of noise, and one value in a hundred thirty times as large."""
    return 30.0 if rng.random() < 0.01 else rng.gauss(1.0, 0.02)


def of_one(
    method: Callable[[list[float]], Interval], draw: Callable[[random.Random], float]
) -> Callable[[random.Random, int], Interval]:
    """A study of one arm."""
    return lambda rng, n: method(sample(draw, rng, n))


def of_two(
    method: Callable[[list[float], list[float]], Interval],
    left: Callable[[random.Random], float],
    right: Callable[[random.Random], float],
) -> Callable[[random.Random, int], Interval]:
    """A study of two arms."""
    return lambda rng, n: method(sample(left, rng, n), sample(right, rng, n))


def proportion(p: float) -> Callable[[random.Random, int], Interval]:
    """A study of n successes or failures."""
    return lambda rng, n: intervals.clopper_pearson(sum(rng.random() < p for _ in range(n)), n)


def normal(mean: float, sd: float) -> Callable[[random.Random], float]:
    """Normal values."""
    return lambda rng: rng.gauss(mean, sd)


CASES = (
    Case("mean", "normal, 2 %", 1.0, of_one(judged_mean, normal(1.0, 0.02))),
    Case("mean", "log-normal, sd of logs 0.3", math.exp(0.045), of_one(judged_mean, lognormal(0.3))),
    Case("mean", "log-normal, sd of logs 1", math.exp(0.5), of_one(judged_mean, lognormal(1.0))),
    Case("mean", "floor + exponential tail, 9 %", 1.1, of_one(judged_mean, floor_and_tail)),
    Case("mean", "1 % timeouts at 30 ×, uncapped", 0.99 + 0.3, of_one(judged_mean, timeouts)),
    Case("geometric mean", "log-normal, sd of logs 1", 1.0, of_one(intervals.log_t, lognormal(1.0))),
    Case(
        "a / b, paired",
        "log-normal, sd of logs 0.5",
        1.0,
        of_two(intervals.paired_log_t, lognormal(0.5), lognormal(0.5)),
    ),
    Case(
        "a / b, unpaired",
        "log-normal, sd of logs 0.5 and 0.1",
        1.0,
        of_two(intervals.log_welch, lognormal(0.5), lognormal(0.1)),
    ),
    Case(
        "a - b, paired",
        "normal, sd 1 and 3",
        0.0,
        of_two(intervals.paired_t, normal(0.0, 1.0), normal(0.0, 3.0)),
    ),
    Case(
        "a - b, unpaired",
        "normal, sd 1 and 3",
        0.0,
        of_two(intervals.welch, normal(0.0, 1.0), normal(0.0, 3.0)),
    ),
    Case("median", "log-normal, sd of logs 1", 1.0, of_one(intervals.order_statistic_median, lognormal(1.0))),
    Case("proportion", "p = 0.9", 0.9, proportion(0.9)),
)


def misses(case: Case, n: int, studies: int = STUDIES) -> tuple[float, float] | None:
    """Shares of studies whose interval lies below the truth, and above it; ``None`` where n is too small."""
    rng = random.Random(f"{case.estimand} {case.values} {n}")
    below = above = 0
    for _ in range(studies):
        interval = case.study(rng, n)
        if math.isinf(interval.low) or math.isinf(interval.high):
            return None
        below += interval.high < case.truth
        above += interval.low > case.truth
    return below / studies, above / studies


def line(case: Case) -> str:
    """A row of the table, in per cent: interval below the truth / above it."""
    cells = [
        "–" if rates is None else " / ".join(f"{100 * rate:.1f}" for rate in rates)
        for rates in (misses(case, n) for n in SIZES)
    ]
    return f"| {case.estimand} | {case.values} | {' | '.join(cells)} |"


def main() -> None:
    """Print the table as Markdown."""
    print("| estimand | values | " + " | ".join(f"n = {n}" for n in SIZES) + " |")
    print("|---|---|" + "--:|" * len(SIZES))
    for case in CASES:
        print(line(case), flush=True)


if __name__ == "__main__":
    main()
