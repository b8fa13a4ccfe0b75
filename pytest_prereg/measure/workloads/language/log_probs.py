"""Log-probabilities of chosen tokens without ever holding the whole (tokens, vocabulary) matrix.

``log_softmax`` over Qwen3's vocabulary keeps several float32 copies of it, 2.9 GiB each at 4 x 1280 tokens.
Only one number per token is wanted, so rows are worked off in chunks and recomputed in the backward pass
(selective log-softmax with checkpoints, arXiv 1604.06174).
"""

from __future__ import annotations

from typing import cast

import torch
from torch.utils.checkpoint import checkpoint

WORKLOAD_VERSION = "1"

ROWS = 32
"""Rows per chunk: 19 MB over Qwen3's vocabulary; glibc maps anew, page by page, whatever exceeds 32 MB."""


def selective_log_probs(
    states: torch.Tensor,
    head: torch.Tensor,
    chosen: torch.Tensor,
    *,
    temperature: float = 1.0,
    rows: int = ROWS,
) -> torch.Tensor:
    """Return log p(chosen), (tokens,), from states (tokens, hidden) and a head (vocabulary, hidden)."""
    states = states / temperature
    chunks = [slice(start, start + rows) for start in range(0, len(chosen), rows)]
    return torch.cat([_recomputed(states[chunk], head, chosen[chunk]) for chunk in chunks])


def _recomputed(states: torch.Tensor, head: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    return cast(
        "torch.Tensor",
        checkpoint(_chunk, states, head, chosen, use_reentrant=False, preserve_rng_state=False),
    )


def _chunk(states: torch.Tensor, head: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    logits = states @ head.T
    return logits.gather(1, chosen[:, None]).squeeze(1) - logits.logsumexp(1)
