"""Exact laws of the reward barrier: the odds that a step is hit, and how long it waits.

A completion's reward takes ``reward`` seconds, times a log-normal factor with median 1 and ``spread`` as
the standard deviation of its logarithm; nothing takes longer than ``deadline``, and with probability
``rate`` a completion runs into it, whatever its program. Completions are independent. A batch waits for
its slowest, so the law of its wait is that of one completion to the power of their number.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from pytest_prereg.measure.workloads.models.checks import (
    check_amount,
    check_count,
    check_seconds,
    check_share,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_prereg.measure.workloads.models.blocks import Array

WORKLOAD_VERSION = "1"

REACH = 10.0
"""Standard deviations beyond which nothing is integrated; ``1e23`` completions would get that far."""


def check_law(rate: float, *, reward: float, deadline: float, spread: float) -> None:
    """Refuse what is no law of a reward's duration.

    Raises:
        ValueError: With the offending value.
    """
    check_share(timeout_rate=rate)
    check_seconds(reward=reward, deadline=deadline)
    if not 0 < reward <= deadline:
        raise ValueError(
            f"a usual reward of {reward!r} s, a deadline of {deadline!r} s: give a reward above 0 and by then"
        )
    check_amount(spread=spread)


def hit_probability(rate: float, completions: int) -> float:
    """Return the probability that at least one of ``completions`` times out: ``1 - (1 - rate)**completions``.

    Computed in logarithms, to the last digit also where the rate is tiny.

    Raises:
        ValueError: ``rate`` is no probability, or there is no completion.
    """
    check_law(rate, reward=1.0, deadline=1.0, spread=0.0)
    check_count(completions=completions)
    return 1.0 if rate == 1 else -math.expm1(completions * math.log1p(-rate))


def knee(completions: int, share: float = 0.5) -> float:
    """Return the rate of timeouts at which that share of the steps is hit; the inverse of `hit_probability`.

    At a share of one half it is where the median step jumps from the usual reward to the deadline.

    Raises:
        ValueError: ``share`` is no probability, or there is no completion.
    """
    check_count(completions=completions)
    check_share(share=share)
    return 1.0 if share == 1 else -math.expm1(math.log1p(-share) / completions)


def wait_cdf(
    seconds: float | Array,
    rate: float,
    completions: int,
    *,
    reward: float,
    deadline: float,
    spread: float = 0.0,
) -> Array:
    """Return the probability that a batch waits at most ``seconds``, in their shape.

    Raises:
        ValueError: A time is NaN, or the law's parameters make none.
    """
    from scipy.special import ndtr  # noqa: PLC0415

    check_law(rate, reward=reward, deadline=deadline, spread=spread)
    check_count(completions=completions)
    at = np.asarray(seconds, dtype=np.float64)
    if np.isnan(at).any():
        raise ValueError(f"seconds = {seconds!r}: nothing is earlier or later than NaN, give times")
    with np.errstate(divide="ignore", over="ignore"):
        usual_is_later = (
            ndtr(-np.log(np.maximum(at, 0) / reward) / spread) if spread else (at < reward).astype(np.float64)
        )
        below = np.exp(completions * np.log1p(-(rate + (1 - rate) * usual_is_later)))
    found: Array = np.where(at >= deadline, 1.0, below)
    return found


def wait_quantile(
    share: float | Array,
    rate: float,
    completions: int,
    *,
    reward: float,
    deadline: float,
    spread: float = 0.0,
) -> Array:
    """Return the least seconds within which that share of the batches has all rewards, in the shares' shape.

    Raises:
        ValueError: A share is none, or the law's parameters make none.
    """
    shares = np.asarray(share, dtype=np.float64)
    if not np.all((shares >= 0) & (shares <= 1)):
        raise ValueError(f"share = {share!r} of the steps: give probabilities, from 0 to 1")
    check_law(rate, reward=reward, deadline=deadline, spread=spread)
    check_count(completions=completions)
    with np.errstate(divide="ignore"):
        logs = np.log(shares)
    return wait_at(logs, rate, completions, reward=reward, deadline=deadline, spread=spread)


def wait_at(
    log_share: Array, rate: float, completions: int, *, reward: float, deadline: float, spread: float
) -> Array:
    """Return the quantiles of a batch's wait, given the logarithms of their shares.

    Of ``F**N = share`` one completion is later than the quantile with probability ``1 - share**(1/N)``,
    which keeps its digits in this form however near to 1 the share is.
    """
    later = -np.expm1(log_share / completions)
    if rate == 1:
        return np.full_like(later, deadline)
    if spread == 0:
        return np.where(later < rate, deadline, reward)
    from scipy.special import ndtri  # noqa: PLC0415

    usual_is_later = np.clip((later - rate) / (1 - rate), 0, 1)
    with np.errstate(over="ignore"):
        waits: Array = np.minimum(reward * np.exp(-spread * ndtri(usual_is_later)), deadline)
    return waits


def expected_wait(
    rate: float, completions: int, *, reward: float, deadline: float, spread: float = 0.0
) -> float:
    """Return the seconds that a batch waits on average.

    Raises:
        ValueError: The law's parameters make none.
    """
    return mean_over_waits(
        lambda wait: wait, rate, completions, reward=reward, deadline=deadline, spread=spread
    )


def mean_over_waits(
    of: Callable[[Array], Array],
    rate: float,
    completions: int,
    *,
    reward: float,
    deadline: float,
    spread: float = 0.0,
) -> float:
    """Return the mean of a smooth function of a batch's wait.

    With no spread the wait has two values. With one, the part below the deadline has the density
    ``(1 - rate)**N`` times that of the greatest of N normal values, which Gauss-Legendre panels integrate
    to about twelve digits up to a spread of 20; the rest sits on the deadline.

    Raises:
        ValueError: The law's parameters make none.
    """
    check_law(rate, reward=reward, deadline=deadline, spread=spread)
    hit = hit_probability(rate, completions)
    if spread == 0:
        usual, late = of(np.array([reward, deadline])).tolist()
        return float((1 - hit) * usual + hit * late)
    from scipy.special import log_ndtr  # noqa: PLC0415

    top = min(math.log(deadline / reward) / spread, REACH)
    at, weights = panels(np.linspace(-REACH, top, 41))
    density = completions * np.exp((completions - 1) * log_ndtr(at) - at**2 / 2) / math.sqrt(2 * math.pi)
    in_time = (1 - hit) * math.exp(completions * float(log_ndtr(top)))
    late = float(of(np.array([deadline]))[0])
    below = float(weights @ (density * of(reward * np.exp(spread * at))))
    return (1 - hit) * below + (1 - in_time) * late


def panels(edges: Array, order: int = 16) -> tuple[Array, Array]:
    """Return points and weights of Gauss-Legendre quadrature of that order between each two edges."""
    points, weights = np.polynomial.legendre.leggauss(order)
    half = np.diff(edges)[:, None] / 2
    middle = (edges[:-1] + edges[1:])[:, None] / 2
    return (middle + half * points).ravel(), (half * weights).ravel()
