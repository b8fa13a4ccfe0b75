"""Drawing tokens from logits, and the log-probability of what was drawn under the distribution drawn from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from pytest_prereg.measure.workloads.language.pretrained import ModelError

if TYPE_CHECKING:
    from pytest_prereg.measure.workloads.language.completions import Sampling

WORKLOAD_VERSION = "1"


def draw(
    logits: torch.Tensor, sampling: Sampling, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return one token per row, int64 (batch,), and its log-probability, float32 (batch,).

    Temperature first, then the likeliest ``top_k``, then of those the fewest that together reach ``top_p``,
    as transformers orders them; what is left is renormalised. Exactly ``top_k`` are kept where more are
    equally likely. Greedily, at temperature 0, log-probabilities are those at temperature 1: those of the
    distribution drawn from would all be 0.

    Args:
        logits: Of any floating dtype (batch, vocabulary); worked on in float32.
        sampling: How to draw.
        generator: Of all that is random, on the device of the logits. What a row draws depends on its place
            in the batch and on how many draws were made before it, and on nothing in other rows.

    Raises:
        ModelError: The logits of a row are not finite, so it has no probabilities.
    """
    logits = logits.float()
    if sampling.temperature == 0:
        ids = logits.argmax(-1, keepdim=True)
        log_probs = logits.gather(1, ids) - logits.logsumexp(-1, keepdim=True)
        _check(log_probs)
        return ids.squeeze(1), log_probs.squeeze(1)
    if sampling.temperature != 1:
        # Less the largest: a temperature near 0 would overflow.
        logits = (logits - logits.amax(-1, keepdim=True)) / sampling.temperature
    probabilities, order = _kept(logits, sampling)
    _check(probabilities[:, 0])  # softmax makes all of a row NaN, or nothing
    chosen = torch.multinomial(probabilities, 1, generator=generator)
    log_probs = probabilities.gather(1, chosen).log().squeeze(1)
    ids = chosen if order is None else order.gather(1, chosen)
    return ids.squeeze(1), log_probs


def _kept(logits: torch.Tensor, sampling: Sampling) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Return probabilities, and the ids that they are of; ``None``: all in order."""
    if sampling.top_k == 0 and sampling.top_p == 1:
        return logits.softmax(-1), None
    size = logits.shape[-1]
    likeliest, order = logits.topk(min(sampling.top_k, size) or size)
    probabilities = likeliest.softmax(-1)
    # One is kept if those before it don't reach the share yet; the first is always.
    before = probabilities.cumsum(-1) - probabilities
    probabilities = probabilities.masked_fill(before >= sampling.top_p, 0)
    return probabilities / probabilities.sum(-1, keepdim=True), order


def _check(found: torch.Tensor) -> None:
    if not found.isfinite().all():
        raise ModelError('the logits of the model are not finite; give dtype = "float32", or other weights')
