"""What grades an answer; of each task one that trains on it, and another that an evaluation asks.

Nothing else is in this module: its digest is the verifier's. A shared grader would hand its blind spots from
training on to the evaluation, so what evaluates is written by itself, and stricter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

WORKLOAD_VERSION = "1"

HALF = 32
"""Token ids below are the lower half of the toy's vocabulary."""
END = 63
"""What ends an answer; it is in neither half."""


def share_in_half(prompt: Sequence[int], response: Sequence[int]) -> float:
    """Return the share of a response's tokens in that half of the vocabulary that the prompt begins in.

    A token that ends the response counts as one that misses; nothing at all is 0.
    """
    low = prompt[0] < HALF
    hits = [(token < HALF) == low and token != END for token in response]
    return sum(hits) / len(hits) if hits else 0.0


def all_in_half(prompt: Sequence[int], response: Sequence[int]) -> bool:
    """Return whether a response has tokens, and all of them are in the prompt's half."""
    wanted = range(HALF) if prompt[0] in range(HALF) else range(HALF, END)
    return len(response) > 0 and set(response) <= set(wanted)
