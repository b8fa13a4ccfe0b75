"""One update of a policy: the gradient of a mini-batch, worked off in micro-batches, and a step of AdamW.

The logits of a micro-batch are never held; its log-probabilities come from the path that is given.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from pytest_prereg.measure.workloads.language.log_probs import selective_log_probs
from pytest_prereg.measure.workloads.language.scoring import response_log_probs
from pytest_prereg.measure.workloads.learning.policy_loss import policy_loss

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pytest_prereg.measure.workloads.language.causal_lm import CausalLM
    from pytest_prereg.measure.workloads.language.scoring import Path
    from pytest_prereg.measure.workloads.learning.policy_loss import PolicyLoss, Weights

    Stage = Callable[[str], AbstractContextManager[object]]
    """Makes what is entered around a stage, from its name."""

WORKLOAD_VERSION = "1"

FORWARD, BACKWARD, OPTIMISER = "forward", "backward", "optimiser"
"""The stages of an update, by name."""


@dataclass(frozen=True, kw_only=True)
class MiniBatch:
    """What one update is made from. All tensors are on the model's device."""

    ids: torch.Tensor
    """Token ids, int64 (batch, positions)."""
    kinds: torch.Tensor
    """:class:`~pytest_prereg.measure.workloads.language.completions.Kind` of each."""
    old: torch.Tensor | None
    """Log-probabilities under the policy that sampled them, (batch, positions), as the training side has
    them; never those that were recorded while sampling. ``None``: the pass of this very update has them,
    which is so in the first update after sampling alone."""
    advantages: torch.Tensor
    """(batch,)."""
    weights: Weights
    """Of the whole mini-batch."""

    def parts(self, size: int) -> Iterator[MiniBatch]:
        """Yield the micro-batches of ``size`` sequences, the last one maybe shorter; 0: the whole."""
        for rows in _rows(len(self.ids), size):
            yield MiniBatch(
                ids=self.ids[rows],
                kinds=self.kinds[rows],
                old=None if self.old is None else self.old[rows],
                advantages=self.advantages[rows],
                weights=self.weights.rows(rows),
            )


@dataclass(frozen=True, kw_only=True)
class Update:
    """What an update did."""

    loss: float
    """Of the mini-batch, before the step."""
    denominator: float
    denominator_is: str
    gradient_norm: float
    """Euclidean norm over all parameters, before it was cut down."""
    clipped: float
    """Share of the loss-bearing tokens whose gradient the clip of the ratio took."""
    ratio_largest: float
    tokens: int
    """How many bore loss."""
    log_probs: torch.Tensor
    """Of the response tokens (batch, positions), as its pass had them: before the step, no gradient."""


def adamw(
    parameters: Iterable[torch.nn.Parameter],
    *,
    learning_rate: float = 1e-6,
    first_decay: float = 0.9,
    second_decay: float = 0.999,
    epsilon: float = 1e-8,
    weight_decay: float = 0.0,
) -> torch.optim.AdamW:
    """Return AdamW (arXiv 1711.05101) with every hyper-parameter named.

    Its moments and its steps are in the type of the weights: those of bfloat16 carry 8 bits, and a step that
    is smaller than half of the last one is lost.

    Args:
        parameters: What it updates.
        learning_rate: Size of a step, about, per parameter.
        first_decay: Of the mean of gradients, per step.
        second_decay: Of the mean of their squares.
        epsilon: What is added to the root of that.
        weight_decay: Decoupled, as a share of the weights per step at a learning rate of 1.

    Raises:
        ValueError: ``epsilon`` is 0 in the type of the weights, which would divide by it.
    """
    weights = list(parameters)
    for dtype in {each.dtype for each in weights}:
        if not torch.tensor(epsilon, dtype=dtype):
            raise ValueError(
                f"AdamW's epsilon = {epsilon!r} is 0 in {dtype}, and the step of a gradient as small is no "
                "number: give weights of bfloat16 or float32"
            )
    return torch.optim.AdamW(
        weights,
        lr=learning_rate,
        betas=(first_decay, second_decay),
        eps=epsilon,
        weight_decay=weight_decay,
    )


def old_log_probs(
    model: CausalLM,
    ids: torch.Tensor,
    kinds: torch.Tensor,
    *,
    micro_batch: int = 0,
    temperature: float = 1.0,
    path: Path = selective_log_probs,
) -> torch.Tensor:
    """Return the log-probabilities of the response tokens as the model gives them now, without a gradient.

    A pass of its own; call it before the first update. Arguments and shapes are those of
    :func:`~pytest_prereg.measure.workloads.language.scoring.response_log_probs`.
    """
    with torch.no_grad():
        return torch.cat(
            [
                response_log_probs(model, ids[rows], kinds[rows], temperature=temperature, path=path)
                for rows in _rows(len(ids), micro_batch)
            ]
        )


def update(
    model: CausalLM,
    optimiser: torch.optim.Optimizer,
    batch: MiniBatch,
    *,
    micro_batch: int = 0,
    temperature: float = 1.0,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    largest_norm: float | None = None,
    path: Path = selective_log_probs,
    stage: Stage = nullcontext,
) -> Update:
    """Update the model once; into how many micro-batches it is cut changes the gradient by rounding alone.

    Args:
        model: The policy.
        optimiser: Of its parameters.
        batch: The mini-batch.
        micro_batch: Sequences that are worked on at a time; 0: all.
        temperature: What they were sampled at, which the logits are divided by.
        clip_low: As in :func:`~pytest_prereg.measure.workloads.learning.policy_loss.policy_loss`.
        clip_high: Likewise.
        largest_norm: The gradient is scaled down to this norm where it is longer; ``None``: left alone.
        path: How log-probabilities are had from hidden states.
        stage: Entered as ``stage(name)`` around the forward and backward pass of each micro-batch, and once
            around what follows them: the norm, the clipping of the gradient, and the optimiser's step.

    Raises:
        ValueError: No token of the mini-batch bears loss.
        FloatingPointError: The gradient is not finite; nothing was updated.
    """
    if not batch.weights.tokens:
        raise ValueError("no token of the mini-batch bears loss: there is nothing to update the policy by")
    optimiser.zero_grad(set_to_none=True)
    losses: list[PolicyLoss] = []
    passed: list[torch.Tensor] = []
    for part in batch.parts(micro_batch):
        with stage(FORWARD):
            current = response_log_probs(model, part.ids, part.kinds, temperature=temperature, path=path)
            found = policy_loss(
                current,
                current.detach() if part.old is None else part.old,
                part.advantages,
                part.weights,
                clip_low=clip_low,
                clip_high=clip_high,
            )
        with stage(BACKWARD):
            found.loss.backward()
        losses.append(replace(found, loss=found.loss.detach()))
        passed.append(current.detach())
    with stage(OPTIMISER):
        norm = _gradient_norm(optimiser, largest_norm)
        optimiser.step()
    return _summary(losses, torch.cat(passed), batch.weights, norm)


def _gradient_norm(optimiser: torch.optim.Optimizer, largest: float | None) -> float:
    """Return the norm of all gradients, and scale them to the largest allowed if it exceeds that."""
    parameters = (each for group in optimiser.param_groups for each in group["params"])
    gradients = [each.grad for each in parameters if each.grad is not None]
    # In bfloat16 a norm would have two digits.
    wide = torch.promote_types(gradients[0].dtype, torch.float32)
    norms = torch.stack([torch.linalg.vector_norm(each, dtype=wide) for each in gradients])
    norm = float(torch.linalg.vector_norm(norms))
    if not math.isfinite(norm):
        raise FloatingPointError(
            f"the gradient's norm is {norm}: a log-probability, a ratio or an advantage is not finite, or "
            "the type of the weights is too narrow; nothing was updated"
        )
    if largest is not None and norm > largest:
        for gradient in gradients:
            gradient.mul_(largest / norm)
    return norm


def _summary(losses: Sequence[PolicyLoss], log_probs: torch.Tensor, weights: Weights, norm: float) -> Update:
    tokens = sum(each.tokens for each in losses)
    return Update(
        loss=float(sum(each.loss for each in losses)),
        denominator=weights.denominator,
        denominator_is=weights.denominator_is,
        gradient_norm=norm,
        clipped=sum(each.clipped_tokens for each in losses) / tokens,
        ratio_largest=max(each.ratio_largest for each in losses if each.tokens),
        tokens=tokens,
        log_probs=log_probs,
    )


def _rows(count: int, size: int) -> Iterator[slice]:
    size = size or count
    for start in range(0, count, size):
        yield slice(start, start + size)
