"""The two things that a GRPO step does with a policy: sample completions from it, and train it on them."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from pytest_prereg.measure.workloads.language.log_probs import selective_log_probs
from pytest_prereg.measure.workloads.qwen3_shape import Cache, Decoder, Shape, hidden_states, random_decoder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

WORKLOAD_VERSION = "1"


@dataclass(frozen=True, kw_only=True)
class Policy:
    """A decoder with its optimiser and the generator that all draws come from."""

    decoder: Decoder
    optimiser: torch.optim.Optimizer
    generator: torch.Generator


def random_policy(seed: int, shape: Shape | None = None, *, learning_rate: float = 1e-4) -> Policy:
    """Return an untrained policy; equal seeds give equal weights and equal draws."""
    generator = torch.Generator().manual_seed(seed % 2**63)
    decoder = random_decoder(shape or Shape(), generator)
    optimiser = torch.optim.AdamW(decoder.parameters(), lr=learning_rate)
    return Policy(decoder=decoder, optimiser=optimiser, generator=generator)


def warm_up() -> None:
    """Sample from a policy of 64 tokens and train it: torch imports and sets up much on its first calls."""
    policy = random_policy(0, Shape(vocabulary=64))
    prompts = random_prompts(policy, prompts=1, group=2, length=2)
    completions = sample(policy, prompts, 2, nullcontext)
    train(policy, prompts, completions, group_advantages([0.0, 1.0], 2))


def random_prompts(policy: Policy, *, prompts: int, group: int, length: int) -> torch.Tensor:
    """Return prompts of random tokens (prompts x group, length), each repeated for its whole group."""
    size = (prompts, length)
    ids = torch.randint(policy.decoder.shape.vocabulary, size, generator=policy.generator)
    return ids.repeat_interleave(group, 0)


def sample(
    policy: Policy,
    prompts: torch.Tensor,
    new_tokens: int,
    drawing: Callable[[], AbstractContextManager[object]],
) -> torch.Tensor:
    """Return completions (batch, new_tokens), drawn at temperature 1 from the whole vocabulary.

    ``drawing`` is entered once per position, around the draw alone: softmax and multinomial, not the network.
    """
    cache, ids, drawn = Cache(), prompts, []
    with torch.inference_mode():
        for _ in range(new_tokens):
            logits = hidden_states(policy.decoder, ids, cache)[:, -1] @ policy.decoder.embedding.T
            with drawing():
                ids = torch.multinomial(logits.softmax(-1), 1, generator=policy.generator)
            drawn.append(ids)
    # Inference tensors may not enter autograd; a clone made outside may.
    return torch.cat(drawn, 1).clone()


def group_advantages(rewards: Sequence[float], group: int) -> torch.Tensor:
    """Return (reward - group mean) / group deviation; all zero in a group of equal rewards.

    Source: GRPO, arXiv 2402.03300, section 4.1.2.
    """
    table = torch.tensor(rewards, dtype=torch.float32).view(-1, group)
    centred = table - table.mean(1, keepdim=True)
    return (centred / (table.std(1, keepdim=True) + 1e-4)).view(-1)


def completion_log_probs(policy: Policy, prompts: torch.Tensor, completions: torch.Tensor) -> torch.Tensor:
    """Return the log-probability of every completion token (batch, new_tokens), differentiable."""
    ids = torch.cat((prompts, completions), 1)
    # The state at one position predicts the next token, so the last token is never read.
    states = hidden_states(policy.decoder, ids[:, :-1])[:, prompts.shape[1] - 1 :]
    chosen = selective_log_probs(states.flatten(0, 1), policy.decoder.embedding, completions.flatten())
    return chosen.view(completions.shape)


def train(policy: Policy, prompts: torch.Tensor, completions: torch.Tensor, advantages: torch.Tensor) -> int:
    """Take one policy-gradient step over all completion tokens alike; return how many tokens bore loss.

    The samples are the policy's own and are used once, so the importance ratio is one and clipping has no
    part.
    """
    log_probs = completion_log_probs(policy, prompts, completions)
    loss = -(advantages[:, None] * log_probs).mean()
    policy.optimiser.zero_grad(set_to_none=True)
    loss.backward()
    policy.optimiser.step()
    return len(completions) * len(completions[0])
