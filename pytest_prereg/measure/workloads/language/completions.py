"""Completions as they were sampled: every token with its kind, its log-probability then, and why it ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from itertools import accumulate
from typing import TYPE_CHECKING

from pytest_prereg.measure.workloads.language.settings import refuse, sampling_problems

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
    """How a token is drawn from the logits.

    Raises:
        ValueError: A number is out of range, or without effect at temperature 0.
    """

    temperature: float = 1.0
    """0: the likeliest token."""
    top_k: int = 0
    """Only the likeliest so many; 0: all."""
    top_p: float = 1.0
    """Only the likeliest that together reach this probability."""

    def __post_init__(self) -> None:
        refuse(sampling_problems(self.temperature, self.top_k, self.top_p))


@dataclass(frozen=True, kw_only=True)
class Turn:
    """What the batch did between two answers of a tool."""

    began: float
    """Seconds from the start of the prefill until what this turn begins with was handed to the model."""
    positions: int
    """Response positions, of the sequence that had most."""


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
    turns: tuple[Turn, ...] = ()
    """How those times divide into turns."""

    def count(self, kind: Kind) -> int:
        """Return how many tokens are of a kind."""
        return int((self.kinds == kind).sum())

    def times_to_first(self) -> list[float]:
        """Return, per turn, the seconds from its beginning until its first token was on the host."""
        return [
            self.token_times[first] - turn.began
            for turn, first in zip(self.turns, self._firsts(), strict=True)
        ]

    def times_to_next(self) -> list[float]:
        """Return the seconds between each two neighbouring response positions of one turn."""
        firsts = set(self._firsts())
        return [
            self.token_times[place] - self.token_times[place - 1]
            for place in range(len(self.token_times))
            if place not in firsts
        ]

    def _firsts(self) -> list[int]:
        """Return the places in ``token_times`` at which turns begin."""
        return list(accumulate((turn.positions for turn in self.turns[:-1]), initial=0)) if self.turns else []

    def counted(self, stop: Stop) -> int:
        """Return how many completions ended that way."""
        return self.stops.count(stop)
