"""Causal language models of Hugging Face's, taken apart into the decoder and the head that scores tokens."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from transformers import AutoModelForCausalLM, DynamicCache, Qwen3Config

if TYPE_CHECKING:
    from transformers import Cache, PretrainedConfig, PreTrainedModel

WORKLOAD_VERSION = "1"

VOCABULARY = 151_936
"""Of Qwen3."""

TINY = "tiny-qwen3"
TOY = "toy-qwen3"
"""The same body with a vocabulary of 64, small enough to learn something in a minute on a CPU."""

UNTRAINED = {TINY: (VOCABULARY, None), TOY: (64, 63)}
"""Models that are drawn anew and not fetched: vocabulary, and the token that ends a completion, by name.

What has learned nothing ends nothing: with none, every completion of :data:`TINY` is as long as it may be.
"""


@dataclass(frozen=True, kw_only=True)
class CausalLM:
    """A model, taken apart: what maps tokens to hidden states, and the matrix that maps those to logits."""

    name: str
    network: PreTrainedModel
    decoder: torch.nn.Module
    ends: tuple[int, ...]
    """Ids of the tokens that end a completion."""
    pad: int
    """Id that stands where there is no token; it is masked, so any will do."""
    context: int
    """Positions that the model has at most."""
    origin: str
    """Where the weights are from: ``seed N``, a commit of the hub, or a digest of the files."""

    @property
    def head(self) -> torch.Tensor:
        """The matrix (vocabulary, hidden) whose product with a hidden state is the logits."""
        return self.network.get_output_embeddings().weight

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.head.device

    @property
    def vocabulary(self) -> int:
        """Rows of the head."""
        return len(self.head)

    def hidden_states(
        self, ids: torch.Tensor, mask: torch.Tensor | None = None, cache: Cache | None = None
    ) -> torch.Tensor:
        """Return the last hidden states (batch, new positions, hidden).

        Args:
            ids: New tokens (batch, new positions).
            mask: Which of all positions hold a token, those in the cache included (batch, all positions);
                all do if it is left out. What is masked is neither attended to nor counted as a position.
            cache: What was read before, which ``ids`` continue; it takes them up.
        """
        known: dict[str, Any] = {}
        if mask is not None:
            positions = (mask.long().cumsum(1) - 1).clamp_(min=0)
            known = {"attention_mask": mask.long(), "position_ids": positions[:, -ids.shape[1] :]}
        if cache is not None:
            known[self._cache_argument] = cache
        out = self.decoder(input_ids=ids, use_cache=cache is not None, **known)
        return out.last_hidden_state

    def new_cache(self) -> Cache:
        """Return an empty cache of keys and values."""
        return DynamicCache(config=self.network.config)

    @property
    def _cache_argument(self) -> str:
        """The parameter's name, which transformers 5 is renaming."""
        parameters = inspect.signature(self.decoder.forward).parameters
        return "cache" if "cache" in parameters else "past_key_values"


def load(
    name: str = TINY, *, seed: int = 0, dtype: torch.dtype = torch.float32, device: str = "cpu"
) -> CausalLM:
    """Return a model in evaluation mode: dropout is off, gradients are on.

    Args:
        name: One of :data:`UNTRAINED`, drawn from ``seed``; else a name on Hugging Face's hub or a folder.
        seed: Equal seeds give equal weights.
        dtype: Of the weights.
        device: Where they go, as torch names it.
    """
    network, origin = _untrained(name, seed) if name in UNTRAINED else _pretrained(name)
    network = network.to(device=device, dtype=dtype).eval()
    config = network.config
    ends = config.eos_token_id
    ends = () if ends is None else tuple(ends) if isinstance(ends, list) else (ends,)
    return CausalLM(
        name=name,
        network=network,
        decoder=network.get_decoder(),
        ends=ends,
        pad=config.pad_token_id if config.pad_token_id is not None else 0,
        context=config.max_position_embeddings,
        origin=origin,
    )


def _untrained(name: str, seed: int) -> tuple[PreTrainedModel, str]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed % 2**63)
        return AutoModelForCausalLM.from_config(tiny_qwen3(*UNTRAINED[name])), f"seed {seed}"


def tiny_qwen3(vocabulary: int, end: int | None) -> PretrainedConfig:
    """Return a configuration of Qwen3's proportions (arXiv 2505.09388) at a hidden size of 64."""
    return Qwen3Config(
        vocab_size=vocabulary,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        intermediate_size=192,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        eos_token_id=end,
    )


def _pretrained(name: str) -> tuple[PreTrainedModel, str]:
    network = AutoModelForCausalLM.from_pretrained(name)
    return network, f"{name}@{getattr(network.config, '_commit_hash', None)}"
