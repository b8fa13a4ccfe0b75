"""Log-probabilities of chosen tokens without ever holding the whole (tokens, vocabulary) matrix.

``log_softmax`` over Qwen3's vocabulary keeps several float32 copies of it, 2.9 GiB each at 4 x 1280 tokens,
and only one number per token is wanted. So the head is worked off in tiles of its rows: the normaliser is
summed up tile by tile (arXiv 1805.02867), and the backward pass has every tile's logits anew (arXiv
1604.06174), which is one product of matrices more than the naive way needs. Tiles are of the vocabulary, not
of the tokens: then each row of the head and of its gradient, much the largest of what is left, is touched
once per pass.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import torch

from pytest_prereg.measure.workloads.language.log_prob_inputs import check_inputs

if TYPE_CHECKING:
    from collections.abc import Iterator

WORKLOAD_VERSION = "2"

TILE_BYTES = {"cpu": 128 * 2**20, "cuda": 256 * 2**20}
"""What a tile of the head and its logits may take, by device.

On a CPU less would stay in the cache; but each tile is several loops over all threads, each of which waits
for the last one, and where others compute as well the fewer there are, the better.
"""

NARROWEST = 256
"""Columns of a tile, however many the tokens: narrower ones make the products slow."""

ALIGNED = 64
"""Tiles are a multiple of so many rows: MKL takes up to twice as long for rows that are not aligned."""

FEWEST = 16
"""Tiles that the vocabulary is cut into at least, however few the tokens."""


def selective_log_probs(
    states: torch.Tensor, head: torch.Tensor, chosen: torch.Tensor, *, temperature: float = 1.0
) -> torch.Tensor:
    """Return log p(chosen), (tokens,), float32 or, if what is given is float64, float64.

    It is differentiable once in ``states`` and ``head``. The work does not depend on the upstream gradient:
    a token whose advantage is 0 costs what others cost, or a training step would be the faster the less is
    rewarded.

    Args:
        states: Hidden states (tokens, hidden): float32, bfloat16, float16 or float64.
        head: Matrix (vocabulary, hidden) whose product with a state is the logits; of the same dtype.
        chosen: Token ids, int64 (tokens,).
        temperature: What logits are divided by.

    Raises:
        ValueError: If shapes, dtypes, devices, ids or the temperature are not these.
        RuntimeError: In the backward pass, if a graph of it is asked for.
    """
    check_inputs(states, head, chosen, temperature)
    return cast("torch.Tensor", _SelectiveLogProbs.apply(states, head, chosen, float(temperature)))


class _SelectiveLogProbs(torch.autograd.Function):  # type: ignore[misc]
    """d log p(chosen) / d logits is one_hot(chosen) - softmax(logits)."""

    @staticmethod
    def forward(
        ctx: Any, states: torch.Tensor, head: torch.Tensor, chosen: torch.Tensor, temperature: float
    ) -> torch.Tensor:
        tiles = _Tiles(states, head, chosen, temperature)
        picked = states.new_empty(len(states), dtype=tiles.wide)
        largest = torch.full_like(picked, -torch.inf)
        total = torch.zeros_like(picked, dtype=torch.float64)
        for tile, rows, columns in tiles:
            logits = tiles.logits(tile)
            picked[rows] = logits[rows, columns]
            grown = torch.maximum(largest, logits.amax(1))
            total.mul_((largest - grown).exp2_()).add_(logits.sub_(grown[:, None]).exp2_().sum(1))
            largest = grown
        ctx.save_for_backward(states, head, chosen, largest, total)
        ctx.temperature = temperature
        return ((picked - largest) - total.log2()).mul_(math.log(2)).to(tiles.wide)

    @staticmethod
    def backward(
        ctx: Any, upstream: torch.Tensor
    ) -> tuple[torch.Tensor | None, torch.Tensor | None, None, None]:
        # torch's own guard, once_differentiable, lets a gradient that depends on states pass for a constant.
        if torch.is_grad_enabled():
            raise RuntimeError("selective_log_probs has no second derivative: leave out create_graph=True")
        states, head, chosen, largest, total = ctx.saved_tensors
        for_states, for_head = ctx.needs_input_grad[:2]
        tiles = _Tiles(states, head, chosen, ctx.temperature)
        # Softmax is weights / total; rows are divided where they are short, which is outside of the tiles.
        slope = (upstream / ctx.temperature).to(tiles.wide)[:, None]
        scale = (slope / -total[:, None]).to(tiles.wide)
        scaled = (states * scale).to(tiles.narrow) if for_head else None
        states_gradient = torch.zeros_like(states, dtype=tiles.wide) if for_states else None
        head_gradient = head.new_empty(head.shape) if for_head else None
        for tile, rows, columns in tiles:
            weights = tiles.logits(tile).sub_(largest[:, None]).exp2_()
            if states_gradient is not None:
                _add_product(states_gradient, weights.to(tiles.narrow), tiles.head(tile))
            if head_gradient is not None:
                weights[rows, columns] -= total[rows].to(tiles.wide)
                _put_product(head_gradient[tile], weights.to(tiles.narrow).T, scaled)
        if states_gradient is not None:
            # The chosen tokens' rows come last: what is added to such large ones is rounded to their digits.
            states_gradient.mul_(scale).addcmul_(head[chosen].to(tiles.wide), slope)
            states_gradient = states_gradient.to(states.dtype)
        return states_gradient, head_gradient, None, None


class _Tiles:
    """The head in tiles of its rows, and the one buffer that every tile's logits are written to."""

    def __init__(
        self, states: torch.Tensor, head: torch.Tensor, chosen: torch.Tensor, temperature: float
    ) -> None:
        self.wide = torch.float64 if head.dtype == torch.float64 else torch.float32
        """Dtype of sums."""
        self.narrow = head.dtype if _sums_wide(head) else self.wide
        """Dtype of factors."""
        self._rounds: bool = self.narrow != self.wide
        """Whether states would lose digits if they were scaled."""
        self._head, self._chosen = head, chosen
        self._bits = 1 / (temperature * math.log(2))
        self._states = states if self._rounds else states.to(self.wide) * self._bits
        self._width = tile_width(len(states), head, self.wide.itemsize)
        self._buffer = states.new_empty(len(states) * self._width, dtype=self.wide)

    def __iter__(self) -> Iterator[tuple[slice, torch.Tensor, torch.Tensor]]:
        """Yield rows of the head, the tokens whose choice is among them, and which of the columns it is."""
        order = self._chosen.argsort()
        starts = range(0, len(self._head) + self._width, self._width)
        inner = torch.tensor(starts, device=order.device)
        bounds = torch.searchsorted(self._chosen[order], inner).tolist()
        for start, first, last in zip(starts, bounds, bounds[1:], strict=False):
            rows = order[first:last]
            yield slice(start, min(start + self._width, len(self._head))), rows, self._chosen[rows] - start

    def head(self, tile: slice) -> torch.Tensor:
        """Return a tile of the head, as a factor."""
        return self._head[tile].to(self.narrow)

    def logits(self, tile: slice) -> torch.Tensor:
        """Return logits (tokens, tile) in bits; they are overwritten by the next tile's.

        In bits, because 2 to a power takes half as long as e to a power.
        """
        tokens, width = len(self._states), tile.stop - tile.start
        out = self._buffer[: tokens * width].view(tokens, width)
        _put_product(out, self._states, self.head(tile).T)
        return out.mul_(self._bits) if self._rounds else out


def tile_width(tokens: int, head: torch.Tensor, itemsize: int) -> int:
    """Return how many rows of the head are worked off at a time, in numbers of so many bytes each."""
    vocabulary, hidden = map(int, head.shape)
    budget: int = TILE_BYTES.get(head.device.type, TILE_BYTES["cpu"])
    affordable = budget // (max(1, tokens + hidden) * itemsize)
    width = max(1, min(max(NARROWEST, affordable), -(-vocabulary // FEWEST)))
    return width - width % ALIGNED if width > ALIGNED else width


def _sums_wide(head: torch.Tensor) -> bool:
    """Whether the device multiplies what is in the head's dtype into float32 sums.

    Not for float16, which has no room for a gradient that is divided by the size of the vocabulary.
    """
    return head.is_cuda and head.dtype == torch.bfloat16 and hasattr(torch.ops.aten.mm, "dtype_out")


def _put_product(out: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> None:
    if left.dtype == out.dtype:
        torch.mm(left, right, out=out)
    elif out.dtype == torch.float32:
        torch.mm(left, right, out_dtype=torch.float32, out=out)
    else:
        # What is stored in half precision is rounded once, at the end.
        out.copy_(left @ right)


def _add_product(total: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> None:
    if left.dtype == total.dtype:
        total.addmm_(left, right)
    else:
        total.add_(torch.mm(left, right, out_dtype=total.dtype))
