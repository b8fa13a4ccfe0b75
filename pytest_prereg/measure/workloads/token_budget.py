"""Exact models of the token budget under filtering: how many groups are sampled until enough are kept.

Each group is taken to be kept on its own, with the same probability: the retention rate. Where that rate
comes from the success rate of the prompts, a group has a signal unless all of its responses fail or all
succeed (DAPO, arXiv 2503.14476, section 3.2). Counts of tokens take all responses for equally long;
:func:`varying_tokens` does not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import count

import numpy as np

from pytest_prereg.measure.workloads.models.checks import MOST, check_amount, check_count, check_share

WORKLOAD_VERSION = "1"

_NEGLIGIBLE = 1e-18
"""Terms below it no longer change a sum of such terms that begins at 1."""
_TERMS = 4096
"""How many terms are computed at a time."""
_MOST_KEPT = 10**9
"""Far beyond it the incomplete beta function has no value left."""
_MOST_BATCHES = 10**6
"""Terms of a sum, of which a million take seconds."""
_HALF = 0.5
_LEAST_GROUP, _MOST_GROUP = 2, 10**6


@dataclass(frozen=True, kw_only=True)
class Account:
    """Where the groups or tokens of a filtered batch go, on average; the last three add up to the first."""

    generated: float
    used: float
    filtered: float
    """Discarded for want of a signal."""
    surplus: float
    """Kept by the filter and left over, since whole batches are sampled."""


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Mean and standard deviation of a random number of tokens."""

    mean: float
    sd: float


def tokens(groups: float, group_size: int, length: float) -> float:
    """Output tokens of so many groups; ``length`` is that of every response, or their mean.

    Raises:
        ValueError: A number is negative or not finite, or the group size is no count.
    """
    check_amount(groups=groups, length=length)
    check_count(group_size=group_size)
    return groups * group_size * length


def expected_groups(kept: int, retention: float) -> float:
    """How many groups are sampled on average until ``kept`` of them are kept: ``kept / retention``.

    Raises:
        ValueError: ``kept`` is no count from 1, or the retention rate outside (0, 1] or below 1e-15.
    """
    _check(kept, retention)
    return kept / retention


def groups_sd(kept: int, retention: float) -> float:
    """Standard deviation of that number, which is negative binomial.

    Raises:
        ValueError: As :func:`expected_groups`.
    """
    _check(kept, retention)
    return math.sqrt(kept * (1 - retention)) / retention


def chance_of_more(budget: int, kept: int, retention: float) -> float:
    """Probability that ``budget`` groups are not enough to keep ``kept``.

    So many trials then have fewer successes: a tail of the binomial, by the incomplete beta function (DLMF
    8.17.5).

    Raises:
        ValueError: The budget is no count, or as :func:`expected_groups`.
    """
    _check(kept, retention)
    check_count(least=0, budget=budget)
    return _chances(budget, kept, retention)[1]


def groups_quantile(share: float, kept: int, retention: float) -> int:
    """The least budget of groups that is enough with probability ``share``.

    Raises:
        ValueError: A share outside (0, 1), or as :func:`expected_groups`.
    """
    _check(kept, retention)
    check_share(share=share)
    if share in {0, 1}:
        raise ValueError(f"share = {share!r}: give the probability that the budget is enough, inside (0, 1)")
    too_few, enough = kept - 1, kept
    while not _is_enough(enough, share, kept, retention):
        too_few, enough = enough, 2 * enough
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if _is_enough(middle, share, kept, retention):
            enough = middle
        else:
            too_few = middle
    return enough


def _is_enough(budget: int, share: float, kept: int, retention: float) -> bool:
    """Compare the smaller of the two chances: next to 1 the other has lost its digits."""
    enough, more = _chances(budget, kept, retention)
    return enough >= share if share < _HALF else more <= 1 - share


def _chances(budget: int, kept: int, retention: float) -> tuple[float, float]:
    """Probabilities that a budget is enough and that it is not, each to its own last digits."""
    if budget < kept:
        return 0.0, 1.0
    from scipy.special import betainc, betaincc  # noqa: PLC0415

    beyond = budget - kept + 1
    return float(betainc(kept, beyond, retention)), float(betaincc(kept, beyond, retention))


def expected_batches(kept: int, retention: float, batch: int) -> float:
    """How many batches of ``batch`` groups are sampled on average until ``kept`` groups are kept.

    The sum over m of the probability that m batches are not enough; of single groups ``kept / retention``.

    Raises:
        ValueError: ``batch`` is no count from 1, the sum has more than about a million terms, or as
            :func:`expected_groups`.
    """
    _check(kept, retention)
    check_count(batch=batch)
    if batch == 1:
        return kept / retention
    if kept / retention > _MOST_BATCHES * batch:
        raise ValueError(
            f"retention = {retention!r} takes some {kept / retention / batch:.3g} batches: take "
            "kept / retention / batch, which lacks less than one of them"
        )
    from scipy.special import betaincc  # noqa: PLC0415

    too_few = -(-kept // batch)  # batches from none on that hold less than `kept` groups: never enough
    parts = [float(too_few)]
    for first in count(too_few, _TERMS):
        sampled = batch * np.arange(first, first + _TERMS, dtype=np.float64)
        more = betaincc(kept, sampled - kept + 1, retention)
        parts.append(math.fsum(more))
        if more[-1] < _NEGLIGIBLE:
            break
    return math.fsum(parts)


def filter_once(groups: float, retention: float, *, group_tokens: float = 1.0) -> Account:
    """What becomes of ``groups`` that are filtered and not made up for, in groups or in tokens.

    Raises:
        ValueError: A retention rate outside (0, 1], or a number that is negative or not finite.
    """
    _check(1, retention)
    check_amount(groups=groups, group_tokens=group_tokens)
    generated = groups * group_tokens
    used = generated * retention
    return Account(generated=generated, used=used, filtered=generated - used, surplus=0.0)


def account(kept: int, retention: float, *, batch: int = 1, group_tokens: float = 1.0) -> Account:
    """Where the groups go, on average, that are sampled in batches until ``kept`` of them are kept.

    Sampling stops at a time that the groups themselves decide, without looking ahead: on average a share
    ``retention`` of what was sampled is kept all the same (Wald's equation).

    Args:
        kept: How many groups the update needs.
        retention: The share of groups that the filter keeps.
        batch: How many groups are sampled at a time; what a batch keeps beyond the need is surplus.
        group_tokens: Tokens of a group; the account is then in tokens, else in groups.

    Raises:
        ValueError: ``group_tokens`` is negative or not finite, or as :func:`expected_batches`.
    """
    check_amount(group_tokens=group_tokens)
    sampled = batch * expected_batches(kept, retention, batch)
    return Account(
        generated=sampled * group_tokens,
        used=kept * group_tokens,
        filtered=sampled * (1 - retention) * group_tokens,
        surplus=max(sampled * retention - kept, 0.0) * group_tokens,
    )


def varying_tokens(
    kept: int,
    retention: float,
    *,
    group_size: int,
    mean_length: float,
    length_sd: float,
    correlation: float = 0.0,
) -> Spread:
    """Tokens that are generated until ``kept`` groups are kept, where the lengths of responses vary.

    Only the mean length counts for the mean, even if long responses are filtered more often (Wald's
    equation). Their variance adds to that of the number of groups (Blackwell and Girshick 1946); this part
    takes lengths and what is kept for independent.

    Args:
        kept: How many groups the update needs.
        retention: The share of groups that the filter keeps.
        group_size: Responses to a prompt.
        mean_length: Mean of the tokens of a response.
        length_sd: Their standard deviation over all responses.
        correlation: Between the lengths of two responses to one prompt.

    Raises:
        ValueError: A negative length or standard deviation, a correlation outside [0, 1], a group size that
            is no count, or as :func:`expected_groups`.
    """
    groups, sd = expected_groups(kept, retention), groups_sd(kept, retention)
    check_count(group_size=group_size)
    check_amount(mean_length=mean_length, length_sd=length_sd)
    check_share(correlation=correlation)
    of_group = group_size * mean_length
    variance_of_group = group_size * length_sd**2 * (1 + (group_size - 1) * correlation)
    return Spread(mean=groups * of_group, sd=math.hypot(math.sqrt(groups * variance_of_group), sd * of_group))


def retention_at(success: float, group_size: int) -> float:
    """Probability that a group has a signal: neither all of its responses succeed nor all fail.

    Args:
        success: The success rate of its prompt, the same for all responses.
        group_size: Responses to the prompt.

    Raises:
        ValueError: A success rate outside [0, 1], or a group of less than 2.
    """
    _check_group(group_size)
    check_share(success=success)
    rarer = min(success, 1 - success)
    not_all_alike = -math.expm1(group_size * math.log1p(-rarer))
    return float(not_all_alike - rarer**group_size)


def success_rates(retention: float, group_size: int) -> tuple[float, float]:
    """The two success rates at which a share ``retention`` of groups has a signal: of hard and easy prompts.

    They add up to 1, and meet at one half, where the retention rate is largest.

    Raises:
        ValueError: No success rate gives so much, or a group of less than 2.
    """
    _check_group(group_size)
    most = retention_at(_HALF, group_size)
    check_share(retention=retention)
    if retention > most:
        raise ValueError(
            f"a retention rate of {retention!r}: give one from 0 to {most:.6g}, the most that groups of "
            f"{group_size} have (at a success rate of 0.5)"
        )
    low, high = 0.0, _HALF
    while low < (middle := (low + high) / 2) < high:
        if retention_at(middle, group_size) < retention:
            low = middle
        else:
            high = middle
    return high, 1 - high


def spread_retention(mean: float, sd: float, group_size: int) -> float:
    """Share of groups with a signal where success rates are Beta distributed over prompts.

    The mean success rate misleads: a mix of prompts that always fail and prompts that always succeed has the
    same one and no signal. Responses are then drawn as from Pólya's urn (Johnson, Kemp, Kotz 2005,
    Univariate Discrete Distributions, 6.2.2): summed is over which of them is the first unlike those before
    it, all terms positive. Spread always lowers the retention rate, which is concave in the success rate.

    Args:
        mean: Mean success rate, over prompts.
        sd: Standard deviation of the success rate over prompts; below ``sqrt(mean * (1 - mean))``.
        group_size: Responses to a prompt.

    Raises:
        ValueError: No Beta distribution has such a mean and standard deviation, or a group of less than 2.
    """
    _check_group(group_size)
    check_share(mean=mean, sd=sd)
    widest = mean * (1 - mean)
    if not sd**2 < widest:
        raise ValueError(
            f"a mean success rate of {mean!r} with a standard deviation of {sd!r}: give a mean inside (0, 1) "
            "and less than sqrt(mean * (1 - mean)) around it"
        )
    added = sd**2 / (widest - sd**2)
    found, all_fail, all_succeed = 0.0, 1 - mean, mean
    for drawn in range(1, group_size):
        put = 1 + drawn * added
        found += (all_fail * mean + all_succeed * (1 - mean)) / put
        all_fail *= (1 - mean + drawn * added) / put
        all_succeed *= (mean + drawn * added) / put
    return found


def _check(kept: int, retention: float) -> None:
    check_count(most=_MOST_KEPT, kept=kept)
    check_share(retention=retention)
    if retention < 1 / MOST:
        raise ValueError(f"retention = {retention!r}: give a share above 0, of at least {1 / MOST:.0e}")


def _check_group(group_size: int) -> None:
    check_count(least=_LEAST_GROUP, most=_MOST_GROUP, group_size=group_size)
