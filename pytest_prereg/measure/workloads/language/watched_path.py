"""A path to log-probabilities that tells afterwards what it held, whatever the size it was run at.

A path may do one thing for a few tokens and another for many. So the pass that warms up what is measured, at
the shapes that are measured, goes through one that is watched.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from pytest_prereg.measure.workloads.language.allocations import Allocations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_prereg.measure.workloads.language.scoring import Path

WORKLOAD_VERSION = "1"


@dataclass(frozen=True, kw_only=True)
class Pass:
    """What a path held at a time in one pass, forward and backward."""

    tokens: int
    vocabulary: int
    largest: int
    """Elements of the largest tensor but for those of hidden width: states, rows of the head, gradients."""
    held: int
    """Elements of all such tensors that there were at a time."""

    @property
    def holds_full_matrix(self) -> bool:
        """Whether there were (tokens, vocabulary) elements at a time, be it in one tensor or in several."""
        return max(self.largest, self.held) >= self.tokens * self.vocabulary

    def wrong_path(self, declared: str) -> Iterator[str]:
        """Yield in a sentence why the path can't be the one declared, "fused" or "naive", if so."""
        full = f"({self.tokens} tokens, {self.vocabulary} of the vocabulary)"
        if declared not in {"fused", "naive"}:
            raise ValueError(f"declared = {declared!r}: give 'fused' or 'naive'")
        if declared == "fused" and self.holds_full_matrix:
            yield (
                f"the path is declared fused, and held a whole matrix {full}: it would have returned a "
                "plausible, too-large training time"
            )
        if declared == "naive" and not self.holds_full_matrix:
            yield f"the path is declared naive, and never held a whole matrix {full}: it took another path"


class WatchedPath:
    """A path itself, with the numbers and gradients of the one that it is given.

    Of a model around it nothing is seen: other layers may hold as much as logits do, and in the same shape.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: list[tuple[int, int, Allocations]] = []

    def __call__(
        self, states: torch.Tensor, head: torch.Tensor, chosen: torch.Tensor, *, temperature: float
    ) -> torch.Tensor:
        """Return log p(chosen), as the path does; ValueError if that isn't one number per token."""
        # A column of zeros changes no logit, and tells states from logits where both have the same shape.
        while head.shape[1] in {len(states), len(head)}:
            states, head = (torch.nn.functional.pad(matrix, (0, 1)) for matrix in (states, head))
        seen = Allocations((states, head, chosen), head.shape[1])
        self._seen.append((len(chosen), len(head), seen))
        path = partial(self._path, temperature=temperature)
        found: torch.Tensor = _Watched.apply(states, head, chosen, (path, seen))
        if found.shape != chosen.shape:
            raise ValueError(f"the path returned {tuple(found.shape)}: one number per token was asked for")
        return found

    @property
    def passes(self) -> list[Pass]:
        """What was held in each pass so far."""
        return [
            Pass(tokens=tokens, vocabulary=vocabulary, largest=seen.largest, held=seen.held)
            for tokens, vocabulary, seen in self._seen
        ]

    def problems(self, declared: str) -> list[str]:
        """Return what is wrong with the passes if the path is the one declared, "fused" or "naive"."""
        if not self._seen:
            return [f"the path is declared {declared}, and no log-probability came from it"]
        return list(dict.fromkeys(each for held in self.passes for each in held.wrong_path(declared)))


class _Watched(torch.autograd.Function):  # type: ignore[misc]
    """Runs a path in a graph of its own, so that its backward pass can be told from all others."""

    @staticmethod
    def forward(
        ctx: Any,
        states: torch.Tensor,
        head: torch.Tensor,
        chosen: torch.Tensor,
        watch: tuple[Callable[..., torch.Tensor], Allocations],
    ) -> torch.Tensor:
        path, seen = watch
        leaves = states.detach().requires_grad_(), head.detach().requires_grad_()
        with torch.enable_grad(), seen:
            found = path(*leaves, chosen)
        ctx.leaves, ctx.found, ctx.seen = leaves, found, seen
        return found.detach()

    @staticmethod
    def backward(ctx: Any, upstream: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        gradients: tuple[torch.Tensor | None, ...] = (None, None)
        if ctx.found.requires_grad:
            with ctx.seen:
                gradients = torch.autograd.grad(ctx.found, ctx.leaves, upstream, allow_unused=True)
        return *gradients, None, None
