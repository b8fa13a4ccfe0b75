"""What catches a path to log-probabilities that is plausible and wrong, before anything is measured on it.

A path that holds all logits where the study says that it doesn't takes longer and needs more memory, and
nothing in its results tells; one that leaves a term of the gradient out is faster, and trains something. So
each is run once, forward and backward, on a few tokens, and held against float64.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch

from pytest_prereg.measure.workloads.language.watched_path import Pass, WatchedPath

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_prereg.measure.workloads.language.scoring import Path

WORKLOAD_VERSION = "1"

SAMPLE = 16
"""Tokens, at most."""

PART_BYTES = 2 * 2**20
"""How much of the head the reference looks at at a time."""

PRODUCTS = 8.0
"""By how many units of rounding of the dtype gradients may be off, besides one for each unit of a logit."""

SUMS = 512.0
"""By how many units a float32 or float64 sum over the vocabulary may be off, added up one by one."""

TERM = 0.1
"""By how much the share of the softmax in a gradient may differ from 1."""


@dataclass(frozen=True, kw_only=True)
class PathCheck(Pass):
    """How a path compares with the reference. Errors of gradients are norms, relative to the reference's."""

    dtype: torch.dtype
    values: float
    """Largest error of a log-probability, relative to the largest one or logit."""
    states_gradient: float
    head_gradient: float
    softmax_term: float
    """How much of the softmax there is in the gradients; 1, or they are wrong: of two numbers, the worse one.

    One for the states and one for the head. With a flat distribution over a large vocabulary that part is
    small beside the chosen tokens', so that errors of norms alone would miss it in half precision.
    """
    allowed_values: float
    allowed_gradients: float

    def problems(self, declared: str) -> list[str]:
        """Return what is wrong with the path if it is the one declared, "fused" or "naive", in sentences."""
        return [*self._wrong_numbers(), *self.wrong_path(declared)]

    def _wrong_numbers(self) -> Iterator[str]:
        errors = {
            "log-probabilities": (self.values, self.allowed_values),
            "gradient of the hidden states": (self.states_gradient, self.allowed_gradients),
            "gradient of the head": (self.head_gradient, self.allowed_gradients),
        }
        for what, (error, allowed) in errors.items():
            # Written so that what is not a number is a problem.
            if not error <= allowed:
                yield (
                    f"the {what} differ from float64 by {error:.2g} of their size; "
                    f"with {self.dtype} it may be {allowed:.2g}"
                )
        if not abs(self.softmax_term - 1) <= TERM:
            yield f"the gradients hold {self.softmax_term:.3g} times the softmax term that they should"


def check_path(
    path: Path,
    states: torch.Tensor,
    head: torch.Tensor,
    chosen: torch.Tensor,
    *,
    temperature: float = 1.0,
) -> PathCheck:
    """Run a path forward and backward on at most :data:`SAMPLE` of the tokens and compare it with float64.

    Args:
        path: What is checked; gradients are asked of it for states and head alike.
        states: Hidden states (tokens, hidden).
        head: Matrix (vocabulary, hidden).
        chosen: Ids of tokens, int64 (tokens,).
        temperature: What logits are divided by.

    Raises:
        ValueError: If there is no token.
    """
    states, head, chosen = _sample(states, head, chosen)
    upstream = torch.linspace(0.5, 1.5, len(chosen), dtype=torch.float64, device=chosen.device)
    upstream[1::2] *= -1
    watched = WatchedPath(path)
    found, gradients = _run(partial(watched, temperature=temperature), states, head, chosen, upstream)
    reference = _Reference(states, head, chosen, temperature, upstream)
    states_gradient, head_gradient, terms = reference.errors(*gradients)
    scale = float(max(reference.values.abs().max(), reference.largest_logit, 1))
    # Logits may have been rounded to the dtype, by half a unit each; what follows is float32 at least.
    rounding = torch.finfo(head.dtype).eps
    sums = SUMS * min(rounding, torch.finfo(torch.float32).eps)
    (seen,) = watched.passes
    return PathCheck(
        **vars(seen),
        dtype=head.dtype,
        values=float((found.double() - reference.values).abs().max()) / scale,
        states_gradient=states_gradient,
        head_gradient=head_gradient,
        softmax_term=max(terms, key=lambda term: math.inf if math.isnan(term) else abs(term - 1)),
        allowed_values=(rounding * reference.largest_logit + sums) / scale,
        allowed_gradients=rounding * (PRODUCTS + reference.largest_logit) + sums,
    )


def _sample(
    states: torch.Tensor, head: torch.Tensor, chosen: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return tokens from everywhere."""
    if not len(chosen):
        raise ValueError("states (0 tokens): give one at least, to check a path on")
    count = min(SAMPLE, len(chosen))
    where = torch.linspace(0, len(chosen) - 1, count, device=chosen.device).round().long()
    return states.detach()[where], head.detach(), chosen[where]


def _run(
    path: Callable[..., torch.Tensor],
    states: torch.Tensor,
    head: torch.Tensor,
    chosen: torch.Tensor,
    upstream: torch.Tensor,
) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
    """Return log-probabilities, and both gradients, 0 where there is none."""
    leaves = states.clone().requires_grad_(), head.detach().requires_grad_()
    with torch.enable_grad():
        found = path(*leaves, chosen)
        gradients = torch.autograd.grad(found, leaves, upstream.to(found.dtype), allow_unused=True)
    of_states, of_head = (
        torch.zeros_like(leaf) if gradient is None else gradient
        for leaf, gradient in zip(leaves, gradients, strict=True)
    )
    return found.detach(), (of_states, of_head)


class _Reference:
    """Log-probabilities and gradients in float64, some rows of the head at a time and each twice."""

    def __init__(
        self,
        states: torch.Tensor,
        head: torch.Tensor,
        chosen: torch.Tensor,
        temperature: float,
        upstream: torch.Tensor,
    ) -> None:
        self._states, self._head, self._chosen = states.double(), head.detach(), chosen
        self._temperature = temperature
        self._slope = (upstream / temperature)[:, None]
        picked = (self._states * self._head[chosen].double()).sum(1) / temperature
        parts = [(logits.logsumexp(1), logits.abs().max()) for _, _, logits in self._parts()]
        self._normaliser = torch.stack([part for part, _ in parts]).logsumexp(0)
        self.largest_logit = float(torch.stack([largest for _, largest in parts]).max())
        self.values = picked - self._normaliser

    def _parts(self) -> Iterator[tuple[slice, torch.Tensor, torch.Tensor]]:
        height = max(1, PART_BYTES // (8 * max(1, self._head.shape[1])))
        for start in range(0, len(self._head), height):
            rows = slice(start, start + height)
            part = self._head[rows].double()
            yield rows, part, self._states @ part.T / self._temperature

    def errors(
        self, of_states: torch.Tensor, of_head: torch.Tensor
    ) -> tuple[float, float, tuple[float, float]]:
        """Return the errors of two gradients, and how much of the softmax's term is in each."""
        pulls = self._slope * self._states
        heads, softmax_states = _Sums(), torch.zeros_like(self._states)
        for rows, part, logits in self._parts():
            weights = logits.sub_(self._normaliser[:, None]).exp_().mul_(-self._slope)
            softmax_states.addmm_(weights, part)
            here = (self._chosen >= rows.start) & (self._chosen < rows.stop)
            ids = self._chosen[here] - rows.start
            heads.add(of_head[rows], ids, pulls[here], weights.T @ self._states)
        tokens = torch.arange(len(self._chosen), device=self._chosen.device)
        states = _Sums()
        states.add(of_states, tokens, self._slope * self._head[self._chosen].double(), softmax_states)
        return states.error, heads.error, (states.term, heads.term)


class _Sums:
    """Squares, summed up over parts of a gradient that is the chosen tokens' term and the softmax's."""

    def __init__(self) -> None:
        self._wrong = self._chosen = self._along = self._softmax = 0.0

    def add(self, found: torch.Tensor, ids: torch.Tensor, pulls: torch.Tensor, softmax: torch.Tensor) -> None:
        """Take a part up: what was found, what chosen tokens add to which of its rows, and the softmax's."""
        distinct, place = ids.unique(return_inverse=True)
        self._chosen += _square(pulls.new_zeros(len(distinct), pulls.shape[1]).index_add_(0, place, pulls))
        rest = found.to(torch.float64, copy=True).index_add_(0, ids, pulls, alpha=-1)
        self._along += _dot(rest, softmax)
        self._softmax += _square(softmax)
        self._wrong += _square(rest.sub_(softmax))

    @property
    def error(self) -> float:
        """Relative to the chosen tokens' term: the sum of both vanishes where the policy is certain."""
        return math.sqrt(self._wrong / self._chosen) if self._chosen else math.sqrt(self._wrong)

    @property
    def term(self) -> float:
        """How often the softmax's term is in what was found; nothing is told where there is none."""
        return self._along / self._softmax if self._softmax else 1.0


def _square(matrix: torch.Tensor) -> float:
    return _dot(matrix, matrix)


def _dot(one: torch.Tensor, other: torch.Tensor) -> float:
    return float(torch.dot(one.flatten(), other.flatten()))
