"""Completions as they were sampled: every token with its kind, its log-probability then, and why it ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

WORKLOAD_VERSION = "1"


class Kind(IntEnum):
    """Whose a token is."""

    PAD = 0
    """No token: masked."""
    PROMPT = 1
    RESPONSE = 2
    """The policy's own: the only kind that may bear loss."""
    TOOL = 3
    """What a tool answered: read by the policy, and not its doing."""


class Stop(StrEnum):
    """Why a completion ended; three different things."""

    ENDED = "ended"
    """The policy drew a token that ends it."""
    CAPPED = "capped"
    """It had as many new tokens as were allowed."""
    TRUNCATED = "truncated"
    """The model's context was full before that."""


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How a token is drawn from the logits."""

    temperature: float = 1.0
    """0: the likeliest token."""
    top_k: int = 0
    """Only the likeliest so many; 0: all."""
    top_p: float = 1.0
    """Only the likeliest that together reach this probability."""


@dataclass(frozen=True, kw_only=True)
class Completions:
    """A batch of prompts and what followed them. All tensors are (batch, positions), on one device."""

    ids: torch.Tensor
    """Token ids, int64; prompts are padded on the left, what ended early on the right."""
    kinds: torch.Tensor
    """:class:`Kind` of each token, uint8."""
    log_probs: torch.Tensor
    """Behaviour log-probabilities, float32: of each response token under the distribution that it was drawn
    from, temperature and cut-offs included; 0 elsewhere."""
    stops: tuple[Stop, ...]
    """Per sequence."""
    token_times: tuple[float, ...] = ()
    """Seconds from the start of the prefill until each response position of the batch was on the host."""

    def count(self, kind: Kind) -> int:
        """Return how many tokens are of a kind."""
        return int((self.kinds == kind).sum())

    def counted(self, stop: Stop) -> int:
        """Return how many completions ended that way."""
        return self.stops.count(stop)
