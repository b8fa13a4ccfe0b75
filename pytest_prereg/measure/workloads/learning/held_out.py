"""Prompts that nobody trains on: a fixed set with a digest, so that a changed one shows."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from pytest_prereg.measure.workloads.learning.tasks import Task

WORKLOAD_VERSION = "1"


@dataclass(frozen=True)
class HeldOut:
    """Prompts for evaluation alone."""

    prompts: torch.Tensor
    """Token ids, int64 (prompts, length), all different."""

    def __len__(self) -> int:
        return len(self.prompts)

    @property
    def digest(self) -> str:
        """SHA-256, in hex, of the ids in their order, and of how many tokens each prompt has."""
        shape = ", ".join(map(str, self.prompts.shape))
        ids = self.prompts.cpu().numpy().astype("<i8").tobytes()
        return hashlib.sha256(f"{shape}\n".encode() + ids).hexdigest()

    def among(self, training: torch.Tensor) -> int:
        """Return how many of these prompts are among those to train on, (count, length) of any length."""
        trained = set(map(tuple, training.tolist()))
        return sum(tuple(prompt) in trained for prompt in self.prompts.tolist())


def hold_out(task: Task, *, prompts: int, length: int, training: torch.Tensor | None = None) -> HeldOut:
    """Return the first held-out prompts of a task.

    Args:
        task: Whose they are.
        prompts: How many.
        length: Tokens of each.
        training: Every prompt that is to be trained on, (count, length), if any.

    Raises:
        ValueError: The task has not as many of that length; two are equal; or some are to be trained on.
    """
    found = HeldOut(task.held_out(prompts, length))
    different = len(set(map(tuple, found.prompts.tolist())))
    if different < len(found):
        raise ValueError(
            f"task {task.name}: of {len(found)} held-out prompts {different} are different; give it no other"
        )
    if training is not None and (shared := found.among(training)):
        raise ValueError(
            f"task {task.name}: {shared} of {len(found)} held-out prompts are trained on; what was seen in "
            "training says nothing of what was learnt"
        )
    return found
