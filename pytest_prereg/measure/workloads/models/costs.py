"""What the barrier costs a trainer, exactly: shares of idle time, smaller batches, barriers per group."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from pytest_prereg.measure.workloads.models.checks import check_count, check_seconds
from pytest_prereg.measure.workloads.models.laws import (
    REACH,
    check_law,
    expected_wait,
    hit_probability,
    mean_over_waits,
    panels,
    wait_cdf,
    wait_quantile,
)

if TYPE_CHECKING:
    from pytest_prereg.measure.workloads.models.blocks import Array

WORKLOAD_VERSION = "1"

MOST_GROUPS = 10**6
MOST_SPREAD_GROUPS = 170
"""Beyond it the factorial of their number is no float64."""


class IdleShares(msgspec.Struct, frozen=True, kw_only=True):
    """Three answers to "which share of the time is idle", from 0 to 1; only the second prices a run."""

    median_step: float
    """Of the median step: its wait over its length."""
    ratio_of_sums: float
    """Of a long run: all waits over all time."""
    mean_of_ratios: float
    """The share of each step by itself, averaged over steps."""


class BatchCost(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch of one size costs on average."""

    completions: int
    hit_probability: float
    wait: float
    """Seconds a step."""
    wait_per_completion: float
    seconds_per_completion: float
    """Waiting and busy."""
    hit_step_per_completion: float
    """The same of a step that is hit."""


def idle_shares(
    rate: float, completions: int, *, busy: float, reward: float, deadline: float, spread: float = 0.0
) -> IdleShares:
    """Return the shares of time idle at the barrier of a whole batch, for ``busy`` seconds a step.

    Raises:
        ValueError: The law's parameters make none, or a time is negative or not finite.
    """
    check_seconds(busy=busy)
    law = {"reward": reward, "deadline": deadline, "spread": spread}
    median = float(wait_quantile(0.5, rate, completions, **law))
    mean = expected_wait(rate, completions, **law)
    return IdleShares(
        median_step=median / (median + busy),
        ratio_of_sums=mean / (mean + busy),
        mean_of_ratios=mean_over_waits(lambda wait: wait / (wait + busy), rate, completions, **law),
    )


def median_hit_probability(rate: float, completions: int, repeats: int) -> float:
    """Return the probability that the median of ``repeats`` steps is a hit one: most of them are.

    Binomial, through the incomplete beta function. Of an even number exactly one half may be hit, and the
    median lies between; that counts as not hit.

    Raises:
        ValueError: ``rate`` is no probability, or there is no completion or repeat.
    """
    from scipy.special import betainc  # noqa: PLC0415

    check_count(repeats=repeats)
    most = repeats // 2 + 1
    return float(betainc(most, repeats - most + 1, hit_probability(rate, completions)))


def batch_cost(
    rate: float,
    completions: int,
    *,
    busy_per_completion: float,
    reward: float,
    deadline: float,
    spread: float = 0.0,
) -> BatchCost:
    """Return what steps of that many completions cost; compare two sizes by the quotients of their fields.

    Busy time shrinks with the batch, the deadline does not: a smaller batch is hit less often, and pays
    more for each of its completions.

    Raises:
        ValueError: The law's parameters make none, or a time is negative or not finite.
    """
    check_seconds(busy=busy_per_completion)
    wait = expected_wait(rate, completions, reward=reward, deadline=deadline, spread=spread)
    return BatchCost(
        completions=completions,
        hit_probability=hit_probability(rate, completions),
        wait=wait,
        wait_per_completion=wait / completions,
        seconds_per_completion=busy_per_completion + wait / completions,
        hit_step_per_completion=busy_per_completion + deadline / completions,
    )


def expected_grouped_step(
    rate: float,
    completions: int,
    *,
    group: int,
    generation: float,
    training: float,
    reward: float,
    deadline: float,
    spread: float = 0.0,
) -> float:
    """Return the mean seconds of a step whose groups train as their rewards come in.

    The model of `grouped_steps`. Without spread a binomial number of groups is hit, and trains after the
    deadline while the others have trained before. With spread it is the integral of the probability that
    the step lasts longer, which is one about the order statistics of the groups' waits.

    Raises:
        ValueError: ``group`` does not divide the completions, there are more groups than are computed
            exactly (170 with spread, a million without), the law's parameters make none, or a time is
            negative or not finite.
    """
    check_law(rate, reward=reward, deadline=deadline, spread=spread)
    check_count(group=group, completions=completions)
    check_seconds(generation=generation, training=training)
    groups, left = divmod(completions, group)
    if left:
        raise ValueError(f"groups of {group} do not divide {completions} completions: give a divisor")
    if groups > (MOST_SPREAD_GROUPS if spread else MOST_GROUPS):
        raise ValueError(f"{groups} groups are beyond what is computed exactly: simulate with grouped_steps")
    if spread == 0:
        lasts = _two_valued_steps(groups, training, reward, deadline)
        return generation + float(_binomial(groups, hit_probability(rate, group)) @ lasts)
    law = {"reward": reward, "deadline": deadline, "spread": spread}
    yet_to_train = training * np.arange(groups, 0, -1) / groups
    at, weights = panels(_edges(yet_to_train, **law), order=8)
    in_time = wait_cdf(at[:, None] - yet_to_train, rate, group, **law)
    return generation + training + float(weights @ (1 - _none_exceeded(in_time)))


def _two_valued_steps(groups: int, training: float, reward: float, deadline: float) -> Array:
    """Seconds after generation if 0, 1, … all groups are hit: the others train first, then those."""
    hit = np.arange(groups + 1)
    others = np.where(hit < groups, reward + training, 0)
    late = np.where(hit > 0, deadline + training * hit / groups, 0)
    return np.maximum(others, late)


def _binomial(trials: int, probability: float) -> Array:
    """Return the probabilities of 0, 1, … all successes.

    As products of what one takes to the next, away from the likeliest number: none of them overflows.
    """
    likeliest = min(int((trials + 1) * probability), trials)
    more, fewer = np.arange(likeliest, trials), np.arange(likeliest, 0, -1)
    up = np.cumprod((trials - more) * probability / ((more + 1) * (1 - probability)))
    down = np.cumprod(fewer * (1 - probability) / ((trials - fewer + 1) * probability))
    odds = np.concatenate([down[::-1], [1.0], up])
    found: Array = odds / math.fsum(odds)
    return found


def _edges(yet_to_train: Array, *, reward: float, deadline: float, spread: float) -> Array:
    """Where to part the integral over a step's length: dense where any group's law moves, at every jump."""
    with np.errstate(over="ignore"):
        moving = np.minimum(reward * np.exp(spread * np.linspace(-REACH, REACH, 41)), deadline)
    sums = yet_to_train[:, None] + np.append(moving, deadline)
    least = yet_to_train[0]
    return np.unique(np.append(sums[sums > least], least))


def _none_exceeded(in_time: Array) -> Array:
    """Return the probability that the j-th smallest of n uniform values is at most the j-th bound, for all j.

    ``in_time`` [points, n] holds the bounds, ascending. Goes from bound to bound with how many values lie
    below it, at least j below the j-th (after Noé, *Annals of Mathematical Statistics* 43, 1972): sums of
    positive terms.
    """
    points, n = in_time.shape
    steps = np.diff(in_time, axis=1, prepend=0).T
    placed = np.zeros((n + 1, points))
    placed[0] = 1
    for j, step in enumerate(steps):
        more, term = placed.copy(), np.ones(points)
        for k in range(1, n - j + 1):
            term = term * step / k
            more[j + k :] += placed[j : n + 1 - k] * term
        placed = more
    return placed[n] * math.factorial(n)
