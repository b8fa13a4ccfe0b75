"""Process starts in bursts: whether one burst, of however many starts, says what the next comes to."""

from __future__ import annotations

import os
import shutil
import time
from itertools import permutations
from math import sqrt
from statistics import fmean, stdev
from time import perf_counter
from typing import TYPE_CHECKING

from pytest_prereg import experiment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_prereg import Repeat

TRUE = shutil.which("true") or "/bin/true"


@experiment(
    metrics={
        "caught": {"unit": "pair", "exact": True},
        "pairs": {"unit": "pair", "exact": True},
        "understated": {"unit": "1", "instrument": "stopwatch"},
    },
)
def bursts(repeat: Repeat, *, bursts: int = 8, starts: int = 64, pause: float = 0.0) -> None:
    """Start and await ``starts`` processes in each of ``bursts`` bursts, with ``pause`` seconds in between.

    Of the ordered ``pairs`` of bursts those are ``caught`` in which the mean of the second lies in the 95 %
    interval (Student's t) that the starts of the first give alone. ``understated`` is the standard deviation
    of the bursts' means divided by the standard error that a burst claims, the root of the mean square of
    all; about 1 if starts are independent, whatever their distribution.
    """
    start_one()  # the first finds the program on the disk
    times = []
    for number in range(bursts):
        time.sleep(pause if number else 0.0)
        times.append([start_one() for _ in range(starts)])
    repeat.record("caught", caught(times))
    repeat.record("pairs", bursts * (bursts - 1))
    repeat.instrument("stopwatch").record("understated", understated(times))


def start_one() -> float:
    """Return the seconds that a process takes that does nothing, from its creation to its end."""
    began = perf_counter()
    os.waitpid(os.posix_spawn(TRUE, [TRUE], {}), 0)
    return perf_counter() - began


def caught(times: Sequence[Sequence[float]]) -> int:
    """Count the ordered pairs of bursts in which the second's mean lies in the interval of the first."""
    from scipy.special import stdtrit  # noqa: PLC0415  # heavy, and not to be there while it is measured

    spans = [float(stdtrit(len(burst) - 1, 0.975)) * standard_error(burst) for burst in times]
    means = [fmean(burst) for burst in times]
    pairs = permutations(range(len(times)), 2)
    return sum(abs(means[one] - means[other]) <= spans[one] for one, other in pairs)


def understated(times: Sequence[Sequence[float]]) -> float:
    """Return by what factor the means of bursts scatter more than a burst claims."""
    claimed = sqrt(fmean(standard_error(burst) ** 2 for burst in times))
    return stdev(map(fmean, times)) / claimed


def standard_error(burst: Sequence[float]) -> float:
    """Return the standard error of a mean of independent values."""
    return stdev(burst) / sqrt(len(burst))
