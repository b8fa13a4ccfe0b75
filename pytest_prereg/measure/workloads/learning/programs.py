"""Completions as programs: prompts of random tokens, and rewards by running every completion for real."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import torch

from pytest_prereg.measure.workloads.language.completions import Kind
from pytest_prereg.measure.workloads.learning.reward_ledger import Ending, Grade
from pytest_prereg.measure.workloads.reward import Outcome, kill_marked, new_mark, run_program

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_prereg.measure.workloads.learning.rollouts import Trajectory

WORKLOAD_VERSION = "1"

_PROGRAM = """\
ids = {ids}
while sum(ids) % {hang_one_in} == 0:
    pass
assert sorted(ids)[len(ids) // 2] % 2 == 0
"""


class Programs:
    """Runs completions as programs, for at most ``deadline`` seconds each; one that passes is worth 1."""

    def __init__(self, *, deadline: float, hang_one_in: int) -> None:
        self._deadline = deadline
        self._hang_one_in = hang_one_in
        self._mark = new_mark()

    def grade(self, trajectory: Trajectory) -> Grade:
        """Run the response; in time or not, what it does is its own doing."""
        source = program(trajectory.tokens(Kind.RESPONSE), hang_one_in=self._hang_one_in)
        outcome = run_program(source, deadline=self._deadline, mark=self._mark)
        return Grade(
            reward=float(outcome is Outcome.PASSED),
            ending=Ending.TIMED_OUT if outcome is Outcome.TIMED_OUT else Ending.GRADED,
        )

    def clear(self) -> None:
        """Kill every process that a program has left, whatever group or session it had moved to."""
        kill_marked(self._mark)


def program(ids: Sequence[int], *, hang_one_in: int) -> str:
    """Return the Python program that a completion is.

    It passes if its median token id is even, and never ends if the ids add up to a multiple of
    ``hang_one_in``.
    """
    return _PROGRAM.format(ids=list(ids), hang_one_in=hang_one_in)


def random_prompts(start: int, count: int, length: int, *, vocabulary: int, order: int) -> torch.Tensor:
    """Return prompts ``start`` up to ``start + count`` of an endless sequence, (count, length).

    Their tokens are random; another ``order``, such as the repeat's seed, gives another sequence.
    """
    rows = []
    for cursor in range(start, start + count):
        generator = random.Random(f"programs: order {order}, {cursor}")  # noqa: S311  # no secret
        rows.append([generator.randrange(vocabulary) for _ in range(length)])
    return torch.tensor(rows, dtype=torch.int64).view(count, length)
