"""What catches wrong numbers around a path: padding that is read, a token scored by another one's state.

Some sequences of a batch are read again, on their own and without padding, by the model's own forward pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from pytest_prereg.measure.workloads.language.completions import Kind

if TYPE_CHECKING:
    from pytest_prereg.measure.workloads.language.causal_lm import CausalLM

WORKLOAD_VERSION = "1"

TOKENS = 16
"""Of a sequence, at most."""

ALLOWED = 1e-3
ALLOWED_HALF = 0.1
"""By how much log-probabilities may be off, as :attr:`ReadAlone.error` has it, in half precision."""


@dataclass(frozen=True, kw_only=True)
class ReadAlone:
    """Log-probabilities of some response tokens, each by its sequence alone; the temperature is 1."""

    rows: torch.Tensor
    """Which sequences they are of, int64 (tokens,)."""
    positions: torch.Tensor
    """Where they are in those, int64 (tokens,)."""
    log_probs: torch.Tensor
    """float64 (tokens,)."""
    spread: float
    """Standard deviation of their logits over the vocabulary."""
    allowed: float

    def error(self, log_probs: torch.Tensor) -> float:
        """Return how far those of the whole batch, (batch, positions), are off: root mean square per spread.

        What all logits have in common changes no log-probability, so that they count by what they spread.
        """
        apart = log_probs[self.rows, self.positions].double() - self.log_probs
        return float(apart.square().mean().sqrt()) / self.spread

    def problems(self, log_probs: torch.Tensor) -> list[str]:
        """Return what is wrong with those of the whole batch, (batch, positions), in a sentence."""
        error = self.error(log_probs)
        problem = (
            f"the log-probabilities of the batch are {error:.2g} of what logits spread by from those of its "
            f"sequences on their own; with this dtype it may be {self.allowed:.2g}"
        )
        # Written so that what is not a number is a problem.
        return [] if error <= self.allowed else [problem]


def read_alone(model: CausalLM, ids: torch.Tensor, kinds: torch.Tensor) -> ReadAlone:
    """Read alone what has the fewest response tokens, what has the most, and the last of the batch.

    Args:
        model: What reads them.
        ids: Token ids (batch, positions).
        kinds: Their ``Kind``; a response is no
            sequence's first token.
    """
    lengths = (kinds == Kind.RESPONSE).sum(1)
    rows = sorted({int(lengths.argmin()), int(lengths.argmax()), len(ids) - 1})
    positions = [_some_of_a_response(kinds[row]) for row in rows]
    logits = torch.cat(
        [_logits(model, ids[row], kinds[row], each) for row, each in zip(rows, positions, strict=True)]
    )
    counts = torch.tensor([len(each) for each in positions])
    at = torch.tensor(rows).repeat_interleave(counts).to(ids.device), torch.cat(positions)
    return ReadAlone(
        rows=at[0],
        positions=at[1],
        log_probs=logits.log_softmax(-1).gather(1, ids[at][:, None]).squeeze(1),
        spread=float(logits.var(1).mean().sqrt()),
        allowed=ALLOWED if model.head.dtype.itemsize > 2 else ALLOWED_HALF,  # noqa: PLR2004  # bytes
    )


def _some_of_a_response(kinds: torch.Tensor) -> torch.Tensor:
    positions = (kinds == Kind.RESPONSE).nonzero().flatten()
    count = min(TOKENS, len(positions))
    return positions[torch.linspace(0, len(positions) - 1, count, device=kinds.device).round().long()]


def _logits(model: CausalLM, ids: torch.Tensor, kinds: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """Return logits of the tokens at some positions, float64 (tokens, vocabulary)."""
    real = kinds != Kind.PAD
    before = real.cumsum(0)[positions] - 2
    with torch.no_grad():
        # Of no others: those of a long sequence may not fit.
        logits = model.network(input_ids=ids[real][None], logits_to_keep=before, use_cache=False).logits[0]
    return logits.double()
