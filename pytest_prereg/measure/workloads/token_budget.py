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

WORKLOAD_VERSION = "1"

_NEGLIGIBLE = 1e-18
"""Terms below it no longer change a sum of such terms that begins at 1."""
_TERMS = 4096
"""How many terms are computed at a time."""
_HALF = 0.5
_LEAST_GROUP = 2


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
    """Output tokens of so many groups; ``length`` is that of every response, or their mean."""
    return groups * group_size * length


def expected_groups(kept: int, retention: float) -> float:
    """How many groups are sampled on average until ``kept`` of them are kept: ``kept / retention``.

    Raises:
        ValueError: ``kept`` below 1, or a retention rate outside (0, 1].
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
        ValueError: As :func:`expected_groups`.
    """
    _check(kept, retention)
    if budget < kept:
        return 1.0
    from scipy.special import betainc  # noqa: PLC0415

    return float(betainc(budget - kept + 1, kept, 1 - retention))


def groups_quantile(share: float, kept: int, retention: float) -> int:
    """The least budget of groups that is enough with probability ``share``.

    Raises:
        ValueError: A share outside (0, 1), or as :func:`expected_groups`.
    """
    if not 0 < share < 1:
        raise ValueError(
            f"a share of {share!r}: give the probability that the budget is enough, inside (0, 1)"
        )
    too_few, enough = kept - 1, kept
    while 1 - chance_of_more(enough, kept, retention) < share:
        too_few, enough = enough, 2 * enough
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if 1 - chance_of_more(middle, kept, retention) < share:
            too_few = middle
        else:
            enough = middle
    return enough


def expected_batches(kept: int, retention: float, batch: int) -> float:
    """How many batches of ``batch`` groups are sampled on average until ``kept`` groups are kept.

    The sum over m of the probability that m batches are not enough, to the last digit.

    Raises:
        ValueError: ``batch`` below 1, or as :func:`expected_groups`.
    """
    _check(kept, retention)
    if batch < 1:
        raise ValueError(f"a batch of {batch!r} groups: sample at least 1 at a time")
    from scipy.special import betainc  # noqa: PLC0415

    too_few = -(-kept // batch)  # batches from none on that hold less than `kept` groups: never enough
    parts = [float(too_few)]
    for first in count(too_few, _TERMS):
        sampled = batch * np.arange(first, first + _TERMS, dtype=np.float64)
        more = betainc(sampled - kept + 1, kept, 1 - retention)
        parts.append(math.fsum(more))
        if more[-1] < _NEGLIGIBLE:
            break
    return math.fsum(parts)


def filter_once(groups: float, retention: float, *, group_tokens: float = 1.0) -> Account:
    """What becomes of ``groups`` that are filtered and not made up for, in groups or in tokens.

    Raises:
        ValueError: A retention rate outside (0, 1].
    """
    _check(1, retention)
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
        ValueError: As :func:`expected_batches`.
    """
    sampled = (
        expected_groups(kept, retention) if batch == 1 else batch * expected_batches(kept, retention, batch)
    )
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
        ValueError: A negative standard deviation, a correlation outside [0, 1], or as
            :func:`expected_groups`.
    """
    groups, sd = expected_groups(kept, retention), groups_sd(kept, retention)
    if length_sd < 0:
        raise ValueError(f"a standard deviation of {length_sd!r} tokens: give 0 or more")
    if not 0 <= correlation <= 1:
        raise ValueError(f"a correlation of {correlation!r}: give one from 0 to 1")
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
    if not 0 <= success <= 1:
        raise ValueError(f"a success rate of {success!r} is no probability: give one from 0 to 1")
    if success == 1:
        return 0.0
    some_succeed = -math.expm1(group_size * math.log1p(-success))
    return float(some_succeed - success**group_size)


def success_rates(retention: float, group_size: int) -> tuple[float, float]:
    """The two success rates at which a share ``retention`` of groups has a signal: of hard and easy prompts.

    They add up to 1, and meet at one half, where the retention rate is largest.

    Raises:
        ValueError: No success rate gives so much, or a group of less than 2.
    """
    _check_group(group_size)
    most = retention_at(_HALF, group_size)
    if not 0 <= retention <= most:
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
    same one and no signal. The number of successes is beta-binomial, and its ends are products of ratios
    (Johnson, Kemp, Kotz 2005, Univariate Discrete Distributions, 6.2.2). Spread always lowers the retention
    rate, which is concave in the success rate.

    Args:
        mean: Mean success rate, over prompts.
        sd: Standard deviation of the success rate over prompts; below ``sqrt(mean * (1 - mean))``.
        group_size: Responses to a prompt.

    Raises:
        ValueError: No Beta distribution has such a mean and standard deviation, or a group of less than 2.
    """
    _check_group(group_size)
    if not 0 < mean < 1 or not 0 <= sd**2 < mean * (1 - mean):
        raise ValueError(
            f"a mean success rate of {mean!r} with a standard deviation of {sd!r}: give a mean inside (0, 1) "
            "and less than sqrt(mean * (1 - mean)) around it"
        )
    if sd == 0:
        return retention_at(mean, group_size)
    weight = mean * (1 - mean) / sd**2 - 1
    return (
        1
        - _all_alike(mean * weight, weight, group_size)
        - _all_alike((1 - mean) * weight, weight, group_size)
    )


def _all_alike(part: float, weight: float, group_size: int) -> float:
    return math.prod((part + drawn) / (weight + drawn) for drawn in range(group_size))


def _check(kept: int, retention: float) -> None:
    if kept < 1:
        raise ValueError(f"{kept!r} groups to keep: give at least 1")
    if not 0 < retention <= 1:
        raise ValueError(f"a retention rate of {retention!r}: give a share above 0 and up to 1")


def _check_group(group_size: int) -> None:
    if group_size < _LEAST_GROUP:
        raise ValueError(f"a group of {group_size!r}: give at least 2 responses, which can differ")
