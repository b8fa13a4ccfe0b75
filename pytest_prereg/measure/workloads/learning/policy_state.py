"""A policy in training: the model with its optimiser and its draws, and the weights that sample."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from pytest_prereg.measure.workloads.language.causal_lm import dtype_named
from pytest_prereg.measure.workloads.learning.updates import adamw

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_prereg.measure.workloads.language.causal_lm import CausalLM

WORKLOAD_VERSION = "1"


class Policy:
    """What samples and is updated.

    Args:
        model: The weights that are trained.
        seed: Of all draws.
        learning_rate: Of AdamW.
        rollout_dtype: Of the weights that sample, by name; where it is the model's own, those of the model
            do, else a copy that :meth:`sync` refreshes.
    """

    def __init__(
        self, model: CausalLM, *, seed: int, learning_rate: float = 1e-4, rollout_dtype: str = ""
    ) -> None:
        self.model = model
        self.optimiser = adamw(model.network.parameters(), learning_rate=learning_rate)
        self.generator = torch.Generator(model.device).manual_seed(seed % 2**63)
        self.version = 0
        """How many updates it has had."""
        wanted = dtype_named(rollout_dtype) if rollout_dtype else model.head.dtype
        self.sampler = model if wanted == model.head.dtype else _copied(model, wanted)
        """What samples."""

    @property
    def has_own_rollout_weights(self) -> bool:
        """Whether the weights that sample are a copy."""
        return self.sampler is not self.model

    def identity(self) -> dict[str, object]:
        """Return what its numbers depend on to the last bit, beside how it is trained."""
        on_cuda = self.model.device.type == "cuda"
        return {
            "model_origin": self.model.origin,
            "torch": torch.__version__,
            "threads": torch.get_num_threads(),
            "device_name": torch.cuda.get_device_name(self.model.device) if on_cuda else "cpu",
        }

    def warm_up(self) -> None:
        """Have all that a first step would make: AdamW's moments, all 0 with no step counted; move nothing.

        Called after a backward pass, whose gradients are taken for 0 and dropped. A restored policy has its
        moments and keeps them; a weight of no concern is stepped in its stead.
        """
        spare = torch.nn.Parameter(torch.zeros(1, device=self.model.device))
        optimiser = adamw([spare]) if self.optimiser.state else self.optimiser
        spare.grad = torch.zeros_like(spare)
        for parameter in self.model.network.parameters():
            if parameter.grad is not None:
                parameter.grad.zero_()
        optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        if optimiser is self.optimiser:
            for state in optimiser.state.values():
                for value in state.values():
                    value.zero_()
        self.sync()

    def sync(self) -> None:
        """Give what samples the weights as they are now; nothing to do where they are the same."""
        if not self.has_own_rollout_weights:
            return
        pairs = zip(self.sampler.network.parameters(), self.model.network.parameters(), strict=True)
        with torch.no_grad():
            for mine, trained in pairs:
                mine.copy_(trained)

    def tensors(self) -> dict[str, Any]:
        """Return all of its state but the version: weights, optimiser, and every generator of draws."""
        on_cuda = self.model.device.type == "cuda"
        return {
            "weights": self.model.network.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "generator": self.generator.get_state(),
            "torch": torch.get_rng_state(),
            "cuda": torch.cuda.get_rng_state(self.model.device) if on_cuda else None,
        }

    def restore(self, tensors: Mapping[str, Any], version: int) -> None:
        """Be in a state that :meth:`tensors` returned."""
        self.model.network.load_state_dict(tensors["weights"])
        self.optimiser.load_state_dict(tensors["optimiser"])
        self.generator.set_state(tensors["generator"])
        torch.set_rng_state(tensors["torch"])
        if tensors["cuda"] is not None:
            torch.cuda.set_rng_state(tensors["cuda"], self.model.device)
        self.version = version
        self.sync()


def _copied(model: CausalLM, dtype: torch.dtype) -> CausalLM:
    """Return the model with weights of their own; buffers keep their precision."""
    network = copy.deepcopy(model.network).requires_grad_(requires_grad=False)
    for parameter in network.parameters():
        parameter.data = parameter.data.to(dtype)
    return replace(model, network=network, decoder=network.base_model)
