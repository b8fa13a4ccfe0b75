"""Whether a model is what its parts make of it: its logits are the last hidden states times its head.

Everything here that avoids the matrix of logits rests on that. A model that bends its logits afterwards, or
counts positions in its own way, would give plausible numbers that are not its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from pytest_prereg.measure.workloads.language.pretrained import ModelError
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.measure.workloads.language.causal_lm import CausalLM

WORKLOAD_VERSION = "1"

_TOKENS = 4
_AMPLIFIED = 100.0
"""So much are hidden states enlarged: logits near 0 would pass a soft cap as they are."""
_BENDS = (
    "final_logit_softcapping",
    "logit_scale",
    "logits_scaling",
    "lm_head_multiplier",
    "output_multiplier",
)
"""What models call that by which their logits are no plain product."""


def check_parts(model: CausalLM) -> None:
    """Run a few tokens through the whole model and through its parts.

    Raises:
        ModelError: The logits differ, or do once tokens are read in pieces and behind padding.
    """
    ids = torch.arange(_TOKENS, device=model.device)[None] % model.vocabulary
    with torch.no_grad():
        for factor in (1.0, _AMPLIFIED):
            _check_product(model, ids, factor)
        _check_pieces(model, ids)


def _check_product(model: CausalLM, ids: torch.Tensor, factor: float) -> None:
    with _amplified(model, factor):
        logits = model.network(input_ids=ids).logits.float()
        product = (model.hidden_states(ids) @ model.head.T).float()
    if not _close(product, logits, 1e-4 if model.head.dtype == torch.float32 else 1e-2):
        raise ModelError(_bent(model, product, logits))


def _check_pieces(model: CausalLM, ids: torch.Tensor) -> None:
    whole = model.network(input_ids=ids).logits.float()
    try:
        last = (_last_state(model, ids) @ model.head.T).float()
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise ModelError(
            f"model = {quoted(model.name)} can't be read token by token with a cache of keys and values "
            f"by this release of transformers: {type(error).__name__}: {error}"
        ) from None
    if not _close(last, whole[:, -1], 1e-3 if model.head.dtype == torch.float32 else 0.1):
        raise ModelError(
            f"model = {quoted(model.name)}: read token by token behind padding, its logits are others than "
            "read at once; its cache or its positions are not those of a plain transformer"
        )


def _last_state(model: CausalLM, ids: torch.Tensor) -> torch.Tensor:
    """Return the state at the last of some tokens, read behind padding, and from a cache of those before."""
    padded = torch.cat((torch.full_like(ids, model.pad)[:, :2], ids), 1)
    mask = torch.tensor([[False] * 2 + [True] * _TOKENS], device=ids.device)
    cache, cut = model.new_cache(), 2 + _TOKENS - 1
    model.hidden_states(padded[:, :cut], mask[:, :cut], cache)
    return model.hidden_states(padded[:, cut:], mask, cache)[:, -1]


class _amplified:  # noqa: N801  # reads as a function
    """Enlarges the last hidden states by a factor, inside the whole model as well as outside of it."""

    def __init__(self, model: CausalLM, factor: float) -> None:
        self._decoder, self._factor = model.decoder, factor

    def __enter__(self) -> None:
        self._hook = self._decoder.register_forward_hook(self._enlarge)

    def __exit__(self, *_: object) -> None:
        self._hook.remove()

    def _enlarge(self, _module: object, _arguments: object, out: Any) -> Any:
        out.last_hidden_state = out.last_hidden_state * self._factor
        return out


def _close(found: torch.Tensor, expected: torch.Tensor, share: float) -> bool:
    # Written so that what is no number is not close.
    return bool((found - expected).norm() <= share * expected.norm())


def _bent(model: CausalLM, product: torch.Tensor, logits: torch.Tensor) -> str:
    why = ", ".join(_bends(model)) or "nothing in its configuration says why"
    apart, largest = float((product - logits).abs().max()), float(logits.abs().max())
    return (
        f"model = {quoted(model.name)}: its logits are not its last hidden states times its head; they "
        f"differ by up to {apart:.3g} of {largest:.3g} ({why}), and no log-probability would be right"
    )


def _bends(model: CausalLM) -> Iterator[str]:
    if getattr(model.network.get_output_embeddings(), "bias", None) is not None:
        yield "its head has a bias"
    config = model.network.config
    for name in _BENDS:
        if (value := getattr(config, name, None)) is not None:
            yield f"{name} = {value}"
