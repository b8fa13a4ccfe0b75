"""The clipped policy-gradient loss of GRPO: advantages, what each token counts for, how far policies differ.

Advantages are of group-relative policy optimisation (arXiv 2402.03300, section 4.1.2), the clipped ratio is
PPO's (arXiv 1707.06347, equation 7), with a bound for either side (arXiv 2503.14476, section 3.1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from pytest_prereg.registry.refusals import quoted, suggestion

if TYPE_CHECKING:
    from collections.abc import Callable

WORKLOAD_VERSION = "1"

SCALE_FLOOR = 1e-4
"""What is added to a standard deviation that advantages are divided by; TRL's value."""

EXPLAINED = 16
"""Units of rounding, as a share of the spread of log-probabilities, that two ways to them may be apart."""

LEAST_EXPLAINED = 1e-3
"""Such a share, whatever the unit: in float32 sums over the network's width add up more than they round."""

SPREAD_FLOOR = 0.125
"""Nats, about the spread of a model that has learnt nothing."""


@dataclass(frozen=True, kw_only=True)
class Advantages:
    """How much better each sample was than its group."""

    values: torch.Tensor
    """(batch,), constant: no gradient flows through it."""
    zero_variance: tuple[bool, ...]
    """Per group, whether all its rewards are equal, so that nothing is learnt from it."""


@dataclass(frozen=True, kw_only=True)
class Weights:
    """What each token counts for in the loss of a whole mini-batch; kept when that is cut into parts."""

    values: torch.Tensor
    """float32 (batch, positions); above 0 exactly where a token bears loss."""
    denominator: float
    """What the sum over the mini-batch is divided by."""
    denominator_is: str
    """The same in words: what was counted, and the count."""

    def rows(self, rows: slice) -> Weights:
        """Return the weights of some of the sequences, under the denominator of all."""
        return replace(self, values=self.values[rows])

    @property
    def bear_loss(self) -> torch.Tensor:
        """Whether each token bears loss, bool (batch, positions)."""
        return self.values > 0

    @property
    def tokens(self) -> int:
        """How many tokens bear loss."""
        return int(self.bear_loss.sum())


@dataclass(frozen=True, kw_only=True)
class PolicyLoss:
    """A loss, and what its ratios were like; read from the device only when asked for."""

    loss: torch.Tensor
    """Scalar. The losses of the parts of a mini-batch add up to that of the whole."""
    ratios: torch.Tensor
    """p current / p old (batch, positions), unclipped; 1 where no loss is borne."""
    cut: torch.Tensor
    """Whether the clip took a token's gradient, bool (batch, positions)."""
    bear_loss: torch.Tensor
    """bool (batch, positions)."""

    @property
    def tokens(self) -> int:
        """How many tokens bear loss."""
        return int(self.bear_loss.sum())

    @property
    def clipped_tokens(self) -> int:
        """Of how many of them the clip took the gradient."""
        return int(self.cut.sum())

    @property
    def clipped(self) -> float:
        """Share of the loss-bearing tokens whose gradient the clip took; 0 where none bears loss."""
        return self.clipped_tokens / max(self.tokens, 1)

    @property
    def ratio_largest(self) -> float:
        """The largest ratio of a loss-bearing token; 1 where none bears loss."""
        return float(self.ratios[self.bear_loss].max()) if self.tokens else 1.0


@dataclass(frozen=True, kw_only=True)
class Mismatch:
    """How far two log-probabilities of the same tokens are apart."""

    mean_absolute: float
    largest: float
    """Absolute."""
    kl: float
    """Estimate of the Kullback-Leibler divergence, per token, in nats; never negative."""
    tokens: int
    """How many were compared."""
    spread: float
    """Standard deviation, over tokens, of the log-probabilities that others were held against."""

    def explained(self, dtype: torch.dtype) -> float:
        """Return how large the mean absolute difference may be, if the same weights gave both by one rule.

        Two ways through a network add up in another order, and so differ by the rounding of ``dtype``: the
        more, the larger logits are, and with them the spread of log-probabilities. Of that it was 0.7 to 2 %
        in bfloat16 and up to 0.0003 % in float32, over 16 layers of random weights and logits of 1.5 to 9,
        however long the responses; and 30 to 100 % in both where one side did not see two tokens of the
        prompt. :data:`EXPLAINED` units of rounding lie between. Where tokens are few and alike they hardly
        spread, and a floor stands in for that.
        """
        share: float = max(EXPLAINED * torch.finfo(dtype).eps, LEAST_EXPLAINED)
        return share * (self.spread + SPREAD_FLOOR)


def group_advantages(rewards: torch.Tensor, group: int, *, scale: bool = True) -> Advantages:
    """Return (reward - mean) / (standard deviation + 1e-4) within each group (arXiv 2402.03300, 4.1.2).

    The standard deviation is that of a sample. In a group whose rewards are all equal every advantage is
    exactly 0. Equal means the same number as it was handed in: 0.1 + 0.2 is not 0.3 in float64, and such a
    group isn't counted as one without variance; its advantages are its rounding error over 1e-4, which moves
    nothing. A group of 1 equals its mean, and so has no variance.

    Args:
        rewards: (batch,), those of a group beside each other.
        group: How many samples share a prompt.
        scale: Whether to divide; otherwise advantages are in the unit of the reward (arXiv 2503.20783).

    Raises:
        ValueError: The group does not divide the batch, or a reward is not finite.
    """
    if rewards.dim() != 1 or group < 1 or not len(rewards) or len(rewards) % group:
        raise ValueError(
            f"group = {group}, and rewards are of shape {tuple(rewards.shape)}: "
            "give one reward per sample, and a group that divides their number"
        )
    _check_finite("rewards", rewards)
    grouped = rewards.detach().double().view(-1, group)
    equal = (grouped == grouped[:, :1]).all(1)
    values = grouped - grouped.mean(1, keepdim=True)
    if scale and group > 1:
        values = values / (grouped.std(1, keepdim=True) + SCALE_FLOOR)
    # The mean of equal floats need not equal them.
    values = values.masked_fill(equal[:, None], 0.0).flatten()
    return Advantages(
        values=values if rewards.dtype == torch.float64 else values.float(),
        zero_variance=tuple(equal.tolist()),
    )


def token_weights(mask: torch.Tensor, reduction: str) -> Weights:
    """Return what each token counts for in the loss of a mini-batch, which must be given whole.

    ``"token-mean"``: all tokens alike, so a long sequence counts for more. The denominator is the number of
    tokens. ``"sequence-mean"``: all sequences alike, and the tokens of one share its weight. The denominator
    is the number of sequences, those without any token included, as TRL has it: such a sequence adds nothing
    and still dilutes the others. One that was discarded before is not in the mini-batch, and dilutes nothing.
    Where no token bears loss at all, every weight is 0.

    Args:
        mask: Which tokens bear loss, bool (batch, positions).
        reduction: Either name.

    Raises:
        ValueError: No such reduction, or the mask is not boolean or not of two dimensions.
    """
    if reduction not in REDUCTIONS:
        raise ValueError(f"loss = {quoted(reduction)}{suggestion(reduction, REDUCTIONS, 'give')}")
    if mask.dtype != torch.bool or mask.dim() != 2:  # noqa: PLR2004
        raise ValueError(
            f"mask is {mask.dtype} of shape {tuple(mask.shape)}: give booleans (batch, positions)"
        )
    return REDUCTIONS[reduction](mask)


def _token_mean(mask: torch.Tensor) -> Weights:
    tokens = int(mask.sum())
    return Weights(
        values=mask.float() / max(tokens, 1),
        denominator=float(tokens),
        denominator_is=f"tokens that bear loss: {tokens}",
    )


def _sequence_mean(mask: torch.Tensor) -> Weights:
    lengths = mask.sum(1, keepdim=True)
    empty = int((lengths == 0).sum())
    without = f", {empty} of them without a token that bears loss" if empty else ""
    return Weights(
        values=mask.float() / lengths.clamp(min=1) / max(len(mask), 1),
        denominator=float(len(mask)),
        denominator_is=f"sequences: {len(mask)}{without}",
    )


REDUCTIONS: dict[str, Callable[[torch.Tensor], Weights]] = {
    "token-mean": _token_mean,
    "sequence-mean": _sequence_mean,
}


def policy_loss(
    current: torch.Tensor,
    old: torch.Tensor,
    advantages: torch.Tensor,
    weights: Weights,
    *,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> PolicyLoss:
    """Return minus the clipped objective of PPO: min(ratio A, clip(ratio, 1 - low, 1 + high) A), weighted.

    The clip takes a token's gradient where the ratio is below its bound and the advantage negative, or above
    and positive. Nothing flows into ``old`` or ``advantages``, and whatever stands where no loss is borne,
    NaN included, has no effect.

    Args:
        current: Log-probabilities under the policy that is being updated (batch, positions).
        old: Those of the same tokens under the policy that sampled them, as the training side computes them.
        advantages: (batch,).
        weights: Of these sequences, from :func:`token_weights` of the whole mini-batch.
        clip_low: How far below 1 a ratio may go, from 0 to 1.
        clip_high: How far above.

    Raises:
        ValueError: The shapes don't belong together, or a bound is not one.
    """
    _check_loss(current, old, advantages, weights)
    _check_clip(clip_low, clip_high)
    bear_loss = weights.bear_loss
    log_ratios = torch.where(bear_loss, current - old.detach(), 0.0)
    ratios = log_ratios.to(torch.promote_types(log_ratios.dtype, torch.float32)).exp()
    gains = advantages.detach()[:, None].to(ratios.dtype)
    kept = torch.minimum(ratios * gains, ratios.clamp(1 - clip_low, 1 + clip_high) * gains)
    too_low = (ratios < 1 - clip_low) & (gains < 0)
    too_high = (ratios > 1 + clip_high) & (gains > 0)
    return PolicyLoss(
        loss=-(kept * weights.values).sum(),
        ratios=ratios.detach(),
        cut=too_low | too_high,  # where no loss is borne the ratio is 1
        bear_loss=bear_loss,
    )


def mismatch(one: torch.Tensor, other: torch.Tensor, mask: torch.Tensor) -> Mismatch:
    """Return how far ``one`` is from ``other``, which gave the distribution that the tokens were drawn from.

    The divergence of ``other`` from ``one`` is estimated by the mean of (r - 1) - log r, with r the ratio of
    the probabilities, one to other: unbiased, and never negative (John Schulman, "Approximating KL
    Divergence", 2020, where it is k3).

    Args:
        one: Log-probabilities (batch, positions), for example as the training side computes them.
        other: The same tokens', for example as they were recorded while sampling.
        mask: Which tokens to compare, bool (batch, positions).

    Raises:
        ValueError: The shapes differ, no token is to be compared, or a log-probability is not finite.
    """
    if not one.shape == other.shape == mask.shape or mask.dtype != torch.bool:
        raise ValueError(
            f"log-probabilities are of shape {tuple(one.shape)} and {tuple(other.shape)}, the mask is "
            f"{mask.dtype} of {tuple(mask.shape)}: give one shape, and a mask of booleans"
        )
    differences = one.detach()[mask].double() - other.detach()[mask].double()
    if not len(differences):
        raise ValueError("the mask leaves no token to compare: a mismatch of none is not 0")
    _check_finite("differences of log-probabilities", differences)
    return Mismatch(
        mean_absolute=float(differences.abs().mean()),
        largest=float(differences.abs().max()),
        kl=float((differences.expm1() - differences).mean()),
        tokens=len(differences),
        spread=float(other.detach()[mask].double().std(correction=0)),
    )


def _check_loss(current: torch.Tensor, old: torch.Tensor, advantages: torch.Tensor, weights: Weights) -> None:
    shapes = {
        "current": current.shape,
        "old": old.shape,
        "weights": weights.values.shape,
    }
    # A (batch, 1) or (positions,) would broadcast, and give each token another sample's advantage.
    if len({*shapes.values()}) > 1 or advantages.shape != current.shape[:1] or current.dim() != 2:  # noqa: PLR2004
        found = ", ".join(f"{name} {tuple(shape)}" for name, shape in shapes.items())
        raise ValueError(
            f"shapes are {found}, advantages {tuple(advantages.shape)}: "
            "give (batch, positions), and advantages (batch,)"
        )


def _check_clip(low: float, high: float) -> None:
    if not 0 <= low <= 1:
        raise ValueError(f"clip_low = {low!r}: give a number from 0 to 1")
    if not 0 <= high < math.inf:
        raise ValueError(f"clip_high = {high!r}: give a finite number of at least 0")


def _check_finite(what: str, values: torch.Tensor) -> None:
    wrong = (~values.isfinite()).nonzero().flatten().tolist()
    if wrong:
        first = float(values[wrong[0]])
        raise ValueError(
            f"{what}: {len(wrong)} of {len(values)} are not finite, the first {first} at {wrong[0]}: "
            "settle what has no number before it is used"
        )
