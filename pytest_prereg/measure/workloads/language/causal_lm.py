"""Causal language models of Hugging Face's, taken apart into the decoder and the head that scores tokens."""

from __future__ import annotations

import inspect
import re
import sys
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from transformers import AutoModelForCausalLM, DynamicCache, Qwen3Config

from pytest_prereg.measure.workloads.language.fidelity import check_parts
from pytest_prereg.measure.workloads.language.pretrained import ModelError, pretrained
from pytest_prereg.measure.workloads.language.settings import (
    DTYPES,
    UNTRAINED,
    device_problem,
    refuse,
    word_problem,
)
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from transformers import Cache, PretrainedConfig, PreTrainedModel

WORKLOAD_VERSION = "1"

VOCABULARY = 151_936
"""Of Qwen3."""

TINY, TOY = UNTRAINED
"""The second has the same body with a vocabulary of 64: it learns something in a minute on a CPU."""

_SHAPES = {TINY: (VOCABULARY, None), TOY: (64, 63)}
"""Of untrained models, vocabulary and the token that ends a completion.

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
    """Positions that the model has at most; of one that states no bound, more than anybody has."""
    origin: str
    """Which weights they are: ``tiny-qwen3, seed N``, ``owner/model@commit`` of the hub, or ``sha256 …`` of a
    folder."""

    @property
    def head(self) -> torch.Tensor:
        """The matrix (vocabulary, hidden) whose product with a hidden state is the logits."""
        return self.network.get_output_embeddings().weight

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.head.device

    @property
    def on_cuda(self) -> bool:
        """Whether they are on a CUDA device."""
        return bool(self.device.type == "cuda")

    def ran(self) -> dict[str, object]:
        """Return what every experiment tells of it: which weights, in what, where, and torch's threads.

        On a CPU the threads decide how many tokens there are a second.
        """
        return {
            "model": self.origin,
            "dtype": str(self.head.dtype).removeprefix("torch."),
            "device": str(self.device),
            "torch_threads": torch.get_num_threads(),
        }

    @property
    def vocabulary(self) -> int:
        """Rows of the head."""
        return len(self.head)

    def hidden_states(
        self,
        ids: torch.Tensor,
        mask: torch.Tensor | None = None,
        cache: Cache | None = None,
        positions: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return the last hidden states (batch, new positions, hidden).

        Args:
            ids: New tokens (batch, new positions).
            mask: Which of all positions hold a token, those in the cache included (batch, all positions);
                all do if it is left out. What is masked is neither attended to nor counted as a position.
            cache: What was read before, which ``ids`` continue; it takes them up.
            positions: How many tokens precede each of ``ids`` (batch, new positions), where the mask is that
                of a cache of a fixed length and so can't tell.
        """
        known: dict[str, Any] = {}
        if mask is not None:
            if positions is None:
                positions = (mask.long().cumsum(1) - 1).clamp_(min=0)[:, -ids.shape[1] :]
            known["attention_mask"] = mask.long()
            if self._takes_positions:
                known["position_ids"] = positions
        if cache is not None:
            known[self._cache_argument] = cache
        out = self.decoder(input_ids=ids, use_cache=cache is not None, **known)
        return out.last_hidden_state

    def new_cache(self) -> Cache:
        """Return an empty cache of keys and values."""
        if "config" in inspect.signature(DynamicCache).parameters:
            return DynamicCache(config=self.network.config)
        return DynamicCache()  # transformers 4 learns of layers as they come

    @cached_property
    def compiled(self) -> dict[tuple[int, int], tuple[CausalLM, Cache]]:
        """Models compiled for one token at a time, and their caches, by batch and positions.

        They are kept, since a compilation takes longer than most completions.
        """
        return {}

    @cached_property
    def _parameters(self) -> frozenset[str]:
        return frozenset(inspect.signature(self.network.base_model.forward).parameters)

    @property
    def _takes_positions(self) -> bool:
        """Whether positions are handed in; some models have them of the mask alone."""
        return "position_ids" in self._parameters

    @property
    def _cache_argument(self) -> str:
        """The parameter's name, which transformers 5 is renaming."""
        return "cache" if "cache" in self._parameters else "past_key_values"


def load(
    name: str = TINY,
    *,
    seed: int = 0,
    dtype: torch.dtype | str = torch.float32,
    device: str = "cpu",
    expect: str = "",
) -> CausalLM:
    """Return a model in evaluation mode: dropout is off, gradients are on.

    Args:
        name: An untrained one's, drawn from ``seed``; else a folder or a name on Hugging Face's hub, as
            :func:`~pytest_prereg.measure.workloads.language.pretrained.pretrained` takes them.
        seed: Equal seeds give equal weights, rounded to ``dtype``.
        dtype: Of the weights, also by name; buffers, such as the frequencies of rotary positions, keep their
            own.
        device: Where they go, as torch names it; ``"auto"`` is CUDA where there is some, else the CPU.
        expect: How the commit on the hub, or the digest of a folder, is to begin; with nothing, any will do.

    Raises:
        ModelError: The model can't be had, is another than was expected, or isn't one whose logits are its
            last hidden states times its head; or the device isn't here.
        ValueError: No such dtype, or no such kind of device.
    """
    where, precision = device_named(device), dtype_named(dtype)
    network, origin = _untrained(name, seed) if name in UNTRAINED else pretrained(name)
    _check_expected(name, origin, expect)
    for parameter in network.parameters():
        parameter.data = parameter.data.to(precision)
    network = network.to(device=where).eval()
    model = CausalLM(
        name=name,
        network=network,
        decoder=network.base_model,
        ends=_ends(network),
        pad=_pad(network),
        context=getattr(network.config, "max_position_embeddings", None) or sys.maxsize,
        origin=origin,
    )
    if name not in UNTRAINED:
        check_parts(model)
    return model


def dtype_named(dtype: torch.dtype | str) -> torch.dtype:
    """Return the dtype of that name; raise ``ValueError`` if weights can't have it."""
    if isinstance(dtype, torch.dtype):
        return dtype
    refuse([word_problem("dtype", dtype, DTYPES)])
    return getattr(torch, dtype)


def device_named(device: str) -> torch.device:
    """Return the device of that name.

    Raises:
        ModelError: It isn't here.
        ValueError: No device is called that.
    """
    refuse([device_problem(device)])
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    found = torch.device(device)
    there = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if found.type == "cuda" and (found.index or 0) >= there:
        has = f"has {there} CUDA device{'s' * (there != 1)}" if there else "has no CUDA device"
        raise ModelError(f'device = "{device}": this machine {has}; give "auto" or "cpu"')
    return found


def _ends(network: PreTrainedModel) -> tuple[int, ...]:
    """Return the ids that end a completion: those that the model generates with, else of its architecture."""
    ends = getattr(network.generation_config, "eos_token_id", None)
    if ends is None:
        ends = network.config.eos_token_id
    return () if ends is None else tuple(ends) if isinstance(ends, list | tuple) else (ends,)


def _pad(network: PreTrainedModel) -> int:
    pad = network.config.pad_token_id
    return pad if pad is not None and 0 <= pad < network.get_output_embeddings().weight.shape[0] else 0


def _check_expected(name: str, origin: str, expect: str) -> None:
    if not re.split("[ @]", origin)[-1].startswith(expect):
        raise ModelError(
            f"expect_model = {quoted(expect)}, and model = {quoted(name)} is {origin}: give how that digest "
            "or commit begins if it is meant; else the model that the other is of"
        )


def _untrained(name: str, seed: int) -> tuple[PreTrainedModel, str]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed % 2**63)
        return AutoModelForCausalLM.from_config(tiny_qwen3(*_SHAPES[name])), f"{name}, seed {seed}"


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
