"""Reading tokens one after another: the hidden state behind the last, from a cache of those before."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from transformers import StaticCache

if TYPE_CHECKING:
    from transformers import Cache

    from pytest_prereg.measure.workloads.language.causal_lm import CausalLM

WORKLOAD_VERSION = "1"


class Reader:
    """Keeps what it has read in a cache that grows."""

    def __init__(self, model: CausalLM) -> None:
        self._model = model
        self._cache: Cache = model.new_cache()
        self._read = 0

    @property
    def head(self) -> torch.Tensor:
        """The model's."""
        return self._model.head

    def last_states(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the hidden state at the last position (batch, hidden), reading those that are new.

        Args:
            ids: All tokens so far (batch, positions), those read before included.
            mask: Which of them are tokens (batch, positions).
        """
        new, self._read = ids[:, self._read :], ids.shape[1]
        return self._states(new, mask)[:, -1]

    def _states(self, new: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self._model.hidden_states(new, mask, self._cache)


class StaticReader(Reader):
    """Keeps it in a cache of fixed size: nothing a single token needs has another shape at another position.

    So the compiler is called once for a batch and a size, and not by what is read here again.
    """

    def __init__(self, model: CausalLM, batch: int, positions: int) -> None:
        self._model = model
        if (batch, positions) not in model.compiled:
            model.compiled[batch, positions] = _compiled(model, positions)
        self._single, self._cache = model.compiled[batch, positions]
        with torch.inference_mode():
            self._cache.reset()
        self._read = 0
        self._mask = torch.zeros(batch, positions, dtype=torch.bool, device=model.device)

    def _states(self, new: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        positions = (mask.long().cumsum(1) - 1).clamp_(min=0)[:, -new.shape[1] :]
        self._mask[:, : mask.shape[1]] = mask
        first = mask.shape[1] == new.shape[1]
        model = self._model if first else self._single
        return model.hidden_states(_afresh(new), self._mask, self._cache, _afresh(positions))


def _afresh(view: torch.Tensor) -> torch.Tensor:
    """Return a copy whose strides are of its shape alone: the compiler tells views of longer rows apart."""
    return view.clone(memory_format=torch.contiguous_format)


def _compiled(model: CausalLM, positions: int) -> tuple[CausalLM, Cache]:
    single = replace(model, decoder=torch.compile(model.decoder, dynamic=False, fullgraph=True))
    return single, StaticCache(config=model.network.config, max_cache_len=positions)
