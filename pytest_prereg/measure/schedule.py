"""In what order repeats run, and with what seeds: drawn from the registration, so that nobody chooses."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SEEDS = 1 << 32
"""Seeds fit what numpy and torch take."""
STRIDE = 0x9E3779B1
"""Odd, so that multiples of it below ``SEEDS`` are all different; 2³² over the golden ratio spreads them."""


@dataclass(frozen=True)
class Slot:
    """What a planned repeat fills."""

    arm: str
    index: int
    """1-based, within the arm."""
    block: int
    """1-based; below that it is none of the series, but a warm-up."""

    @property
    def is_warmup(self) -> bool:
        """Whether it is run before the planned repeats, and never counts."""
        return self.block < 1


def seed_base(digests: Iterable[str], series: int) -> str:
    """Return what order and seeds of a series are derived from (``sha256:…``).

    Args:
        digests: Registration digests of the predictions that the series serves, in any order.
        series: Its number.
    """
    return f"sha256:{_hash('series', series, *sorted(set(digests))).hex()}"


def repeat_seed(seed: str, block: int) -> int:
    """Return the seed of every repeat of a block: below 2³², different for every block, 0 and -1 included."""
    first = int.from_bytes(_hash(seed, "repeat")[:4], "big")
    return (first + block * STRIDE) % SEEDS


def block_order(planned: Mapping[str, int], seed: str) -> list[Slot]:
    """Return all slots in randomised complete blocks: one repeat of every arm, in an order drawn anew.

    Arms with fewer repeats than others are missing from the later blocks.
    """
    blocks = range(1, max(planned.values(), default=0) + 1)
    return [Slot(arm, block, block) for block in blocks for arm in _shuffled(planned, seed, block)]


def sequential_order(planned: Mapping[str, int]) -> list[Slot]:
    """Return all slots arm after arm, as declared; the repeats of one index still form a block."""
    return [Slot(arm, index, index) for arm, count in planned.items() for index in range(1, count + 1)]


def warmup_order(arms: Iterable[str], count: int) -> list[Slot]:
    """Return ``count`` warm-ups of each of ``arms``, in turn.

    Their blocks are 0, -1 and so on: so their seeds are none of any planned repeat.
    """
    return [Slot(arm, number, 1 - number) for number in range(1, count + 1) for arm in arms]


def _shuffled(planned: Mapping[str, int], seed: str, block: int) -> list[str]:
    """Return the arms of a block in random order (Fisher and Yates), whatever order they were declared in."""
    arms = sorted(arm for arm, count in planned.items() if count >= block)
    for last in range(len(arms) - 1, 0, -1):
        # 256 bits modulo a handful: the bias is below 2⁻²⁵⁰.
        other = int.from_bytes(_hash(seed, "order", block, last), "big") % (last + 1)
        arms[last], arms[other] = arms[other], arms[last]
    return arms


def _hash(*parts: object) -> bytes:
    return hashlib.sha256("\n".join(map(str, parts)).encode()).digest()
