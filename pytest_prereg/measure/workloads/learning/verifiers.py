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


def share_in_other_half(prompt: Sequence[int], response: Sequence[int]) -> float:
    """Return the share of a response's tokens in that half of the vocabulary that the prompt isn't in.

    A token that ends the response counts as one that misses; nothing at all is 0.
    """
    begins = HALF if prompt[0] < HALF else 0
    hits = [begins <= token < min(begins + HALF, END) for token in response]
    return sum(hits) / len(hits) if hits else 0.0


def all_in_other_half(prompt: Sequence[int], response: Sequence[int]) -> bool:
    """Return whether a response has tokens, and all of them are in the half that the prompt isn't in."""
    lower, upper = set(range(HALF)), set(range(HALF, END))
    wanted = upper if lower >= set(prompt) else lower
    return len(response) > 0 and wanted >= set(response)


class OtherHalf:
    """A task's two graders."""

    def reward(self, prompt_ids: Sequence[int], response_ids: Sequence[int]) -> float:
        """Return what training pays: the share of tokens in the right half."""
        return share_in_other_half(prompt_ids, response_ids)

    def solves(self, prompt_ids: Sequence[int], response_ids: Sequence[int]) -> bool:
        """Return whether a response is right: all its tokens are; only an evaluation asks."""
        return all_in_other_half(prompt_ids, response_ids)
