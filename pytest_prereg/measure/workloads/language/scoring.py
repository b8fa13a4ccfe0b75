"""Log-probabilities of the response tokens of completions under a model, differentiable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import torch

from pytest_prereg.measure.workloads.language.completions import Kind
from pytest_prereg.measure.workloads.language.log_probs import selective_log_probs

if TYPE_CHECKING:
    from pytest_prereg.measure.workloads.language.causal_lm import CausalLM

WORKLOAD_VERSION = "1"


class Path(Protocol):
    """A way from hidden states to log-probabilities; :func:`selective_log_probs` is one."""

    def __call__(
        self, states: torch.Tensor, head: torch.Tensor, chosen: torch.Tensor, *, temperature: float
    ) -> torch.Tensor:
        """Return log p(chosen), float32 (tokens,); states (tokens, hidden), head (vocabulary, hidden)."""


def response_log_probs(
    model: CausalLM,
    ids: torch.Tensor,
    kinds: torch.Tensor,
    *,
    temperature: float = 1.0,
    path: Path = selective_log_probs,
) -> torch.Tensor:
    """Return the log-probability of every response token, float32 (batch, positions); 0 elsewhere.

    Args:
        model: What scores them.
        ids: Token ids (batch, positions).
        kinds: Their :class:`Kind`; what is padding is masked, and only responses are scored.
        temperature: What the logits are divided by.
        path: How log-probabilities are had from hidden states.
    """
    # The state at one position predicts the next token, so the last token is never read.
    states = model.hidden_states(ids[:, :-1], kinds[:, :-1] != Kind.PAD)
    scored = kinds == Kind.RESPONSE
    found = path(states[scored[:, 1:]], model.head, ids[scored], temperature=temperature)
    return torch.zeros(ids.shape, dtype=found.dtype, device=ids.device).masked_scatter(scored, found)
