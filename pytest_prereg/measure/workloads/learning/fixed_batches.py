"""Training on completions that nobody sampled: a drawn mini-batch, and what makes an update fit to be timed.

What an update costs does not depend on which tokens it is made from, only on how many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from pytest_prereg.measure.workloads.language.completions import Kind
from pytest_prereg.measure.workloads.learning.policy_loss import group_advantages, token_weights
from pytest_prereg.measure.workloads.learning.training_setting import ALIKE
from pytest_prereg.measure.workloads.learning.updates import MiniBatch

if TYPE_CHECKING:
    from collections.abc import Callable

    from transformers import PreTrainedModel

    from pytest_prereg.measure.workloads.language.causal_lm import CausalLM
    from pytest_prereg.measure.workloads.learning.training_setting import TrainingSetting
    from pytest_prereg.measure.workloads.learning.updates import Update

WORKLOAD_VERSION = "1"

_STRIDE = 997
"""One weight of so many is looked at."""


def drawn_batch(model: CausalLM, setting: TrainingSetting, *, seed: int) -> MiniBatch:
    """Return a mini-batch of random tokens; equal seeds give equal ones, on every device.

    Prompts are all of one length. Completions are too, or of lengths drawn evenly from 1 to ``new_tokens``
    and padded on the right. The sequences are one group, with rewards drawn evenly from 0 to 1. The old
    log-probabilities are left out.
    """
    generator = torch.Generator().manual_seed(seed % 2**63)
    count, new = setting.sequences, setting.new_tokens
    ids = torch.randint(model.vocabulary, (count, setting.prompt_tokens + new), generator=generator)
    rewards = torch.rand(count, generator=generator)
    lengths = torch.randint(1, new + 1, (count, 1), generator=generator)
    if setting.lengths == ALIKE:
        lengths.fill_(new)
    kinds = torch.full_like(ids, Kind.PROMPT, dtype=torch.uint8)
    kinds[:, setting.prompt_tokens :] = torch.where(torch.arange(new) < lengths, Kind.RESPONSE, Kind.PAD)
    return MiniBatch(
        ids=ids.masked_fill(kinds == Kind.PAD, model.pad).to(model.device),
        kinds=kinds.to(model.device),
        old=None,
        advantages=group_advantages(rewards, count).values.to(model.device),
        weights=token_weights((kinds == Kind.RESPONSE).to(model.device), setting.loss),
    )


def some_states(model: CausalLM, batch: MiniBatch, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return hidden states (tokens, hidden) of the first ``count`` response tokens or less, and those ids."""
    rows = slice(0, 1 + int((batch.weights.bear_loss.sum(1).cumsum(0) < count).sum()))
    ids, kinds = batch.ids[rows], batch.kinds[rows]
    with torch.no_grad():
        states = model.hidden_states(ids[:, :-1], kinds[:, :-1] != Kind.PAD)
    scored = kinds == Kind.RESPONSE
    return states[scored[:, 1:]][:count], ids[scored][:count]


def recompute_layers(network: PreTrainedModel) -> None:
    """Let every layer keep only what it was given, and compute the rest again in the backward pass.

    Transformers does so in training mode alone, which would bring dropout with it; here only the layers
    themselves are told that they train.

    Raises:
        ValueError: The model can't do that.
    """
    if not network.supports_gradient_checkpointing:
        raise ValueError(
            f"checkpointing = true, and {type(network).__name__} has no layers that can be computed again: "
            "give checkpointing = false"
        )
    # What transformers 4 calls gradients, 5 calls activations, and is dropping the other name.
    enable = getattr(network, "activation_checkpointing_enable", None)
    (enable or network.gradient_checkpointing_enable)({"use_reentrant": False})
    for module in network.modules():
        if getattr(module, "gradient_checkpointing", False):
            module.training = True


def warm_up(optimiser: torch.optim.Optimizer, update: Callable[[], Update]) -> Update:
    """Make and return an update that changes no weight, so that no later one pays for what is done once.

    The optimiser has its moments afterwards, all 0, and has counted no step.
    """
    rates = [group["lr"] for group in optimiser.param_groups]
    for group in optimiser.param_groups:
        group["lr"] = 0.0
    done = update()
    for group, rate in zip(optimiser.param_groups, rates, strict=True):
        group["lr"] = rate
    for state in optimiser.state.values():
        for value in state.values():
            value.zero_()
    return done


def some_weights(network: torch.nn.Module) -> list[torch.Tensor]:
    """Return copies of some weights of each parameter, to tell later whether they moved."""
    return [parameter.detach().flatten()[::_STRIDE].clone() for parameter in network.parameters()]


def share_moved(before: list[torch.Tensor], network: torch.nn.Module) -> float:
    """Return the share of those weights that are no longer what they were."""
    after = torch.cat(some_weights(network))
    return float((after != torch.cat(before)).float().mean())
