"""The largest tensors that came to be while some code ran, by their elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

WORKLOAD_VERSION = "1"


class Allocations(TorchDispatchMode):  # type: ignore[misc]
    """Sees the tensors that operators return within a ``with`` block, in custom and backward functions too.

    The backward pass inherits it, on whatever thread autograd runs it. It does not see what an operator holds
    while it runs and frees before it returns, nor threads that the code starts itself.

    Args:
        known: Tensors that were there before.
        width: Tensors that have a dimension of this size do not count, as a gradient does not.
    """

    def __init__(self, known: Collection[torch.Tensor], width: int) -> None:
        super().__init__()
        self.largest = 0
        """Elements of the largest one."""
        self.held = 0
        """Elements of all that there were at a time, at the most."""
        self._known = {tensor.untyped_storage()._cdata for tensor in known}  # noqa: SLF001
        self._width = width
        self._alive: dict[int, tuple[StorageWeakRef, int]] = {}

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run an operator and look at what it returned."""
        returned = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(returned):
            if isinstance(leaf, torch.Tensor):
                self._see(leaf)
        return returned

    def _see(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        address = storage._cdata  # noqa: SLF001
        if address in self._known or address in self._alive:
            return
        # What a weak reference points to keeps its address, so an address in the table is that storage's.
        self._alive = {key: kept for key, kept in self._alive.items() if not kept[0].expired()}
        elements = 0 if self._width in tensor.shape else storage.nbytes() // tensor.itemsize
        self._alive[address] = (StorageWeakRef(storage), elements)
        self.largest = max(self.largest, elements)
        self.held = max(self.held, sum(count for _, count in self._alive.values()))
