"""Pseudo-replication: intervals over the repeats beside intervals over all of their samples."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from calibration_cases import ONLY, Case
from calibration_studies import Registered, generator, in_studies, text_of
from calibration_tables import Claim, Page, markdown
from scipy.special import stdtrit

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

SIZES = (3, 5, 7, 10, 20)
SAMPLES = 1000
BETWEEN, WITHIN = 0.02, 0.05
BATCH = 50
RESAMPLES = 399
BOOTSTRAPPED = 50
"""One study in so many is bootstrapped as well: it takes as long as all the rest."""

OURS, POOLED = (0.93, 0.97), (0.11, 0.14)
"""What the shares of intervals that hold the truth have to lie between."""


class Held(NamedTuple):
    """Shares of studies whose 95 % interval holds the true value."""

    n: int
    ours: float
    pooled: float
    bootstrap: float


def draw(rng: Generator, studies: int, n: int) -> NDArray[np.float64]:
    """Samples that scatter by 5 % around repeats that scatter by 2 %."""
    levels = rng.normal(1.0, BETWEEN, (studies, n, 1))
    return rng.normal(levels, WITHIN, (studies, n, SAMPLES))


CASE = Case(
    estimand="pseudo-replication",
    values=f"{SAMPLES:,} samples a repeat",
    metrics='t = "s"',
    draw=lambda rng, studies, n: {ONLY: {"t": draw(rng, studies, n)}},
    prediction='experiment = "e"\nquantity = "mean(t)"\nstatistic = "mean"',
    truth=1.0,
    sizes=SIZES,
)


def held(n: int, studies: int) -> Held:
    """All three at one n, on the same studies."""
    rng, resampling = generator(f"{CASE.key}, n = {n}"), generator(f"{CASE.key}, n = {n}, bootstrap")
    registered = Registered(text_of(CASE, n))
    ours = pooled = bootstrap = bootstrapped = 0
    for first in range(0, studies, BATCH):
        drawn = CASE.draw(rng, BATCH, n)
        some = drawn[ONLY]["t"][: studies - first].reshape(-1, n * SAMPLES)
        pooled += int(pooled_t_holds(some, CASE.truth).sum())
        for values in in_studies(drawn, len(some)):
            low, high = registered.judge(registered.evidence(values)).interval or (math.nan, math.nan)
            ours += low <= CASE.truth <= high
        if first % (BATCH * BOOTSTRAPPED) < BATCH:
            bootstrap += sum(bootstrap_holds(resampling, study, CASE.truth) for study in some)
            bootstrapped += len(some)
    return Held(n, ours / studies, pooled / studies, bootstrap / bootstrapped)


def pooled_t_holds(samples: NDArray[np.float64], truth: float) -> NDArray[np.bool_]:
    """Whether Student's interval over all samples holds the truth; one study a row."""
    count = samples.shape[1]
    half_width = stdtrit(count - 1, 0.975) * samples.std(axis=1, ddof=1) / math.sqrt(count)
    return np.abs(samples.mean(axis=1) - truth) <= half_width


def bootstrap_holds(rng: Generator, samples: NDArray[np.float64], truth: float) -> bool:
    """Whether the percentile bootstrap over all samples holds the truth."""
    chosen = rng.integers(0, len(samples), (RESAMPLES, len(samples)), dtype=np.int32)
    low, high = np.quantile(samples[chosen].mean(axis=1), (0.025, 0.975))
    return bool(low <= truth <= high)


def page(results: list[Held]) -> Page:
    """The table, a row for each n."""
    headings = ("n", "over repeats (the verdict's)", "t over all samples", "bootstrap over all samples")
    lines = [(f"{one.n}", *(f"{share:.3f}" for share in one[1:])) for one in results]
    return Page(
        markdown(headings, lines, left=0),
        (
            _between("the verdict's interval", OURS, results, 1),
            _between("the pooled one", POOLED, results, 2),
        ),
    )


def _between(what: str, ends: tuple[float, float], results: list[Held], column: int) -> Claim:
    low, high = ends
    claim = Claim(f"{what} holds the true value in a share of {low:g} to {high:g}")
    for one in results:
        claim.check(what, f"n = {one.n}", f"{one[column]:.3f}", low <= one[column] <= high)
    return claim
