"""Completions as programs: prompts of random tokens, and rewards by running every completion for real."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import torch

from pytest_prereg.measure.workloads.language.completions import Kind
from pytest_prereg.measure.workloads.learning.reward_ledger import Ending, Grade, RewardUnavailableError
from pytest_prereg.measure.workloads.sandbox.client import Sandbox
from pytest_prereg.measure.workloads.sandbox.completions import Completion, ScriptTest
from pytest_prereg.measure.workloads.sandbox.limits import LONGEST, Limits
from pytest_prereg.measure.workloads.sandbox.outcomes import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_prereg.measure.workloads.learning.rollouts import Trajectory

WORKLOAD_VERSION = "2"

_PROGRAM = """\
ids = {ids}
while sum(ids) % {hang_one_in} == 0:
    pass
print(sorted(ids)[len(ids) // 2] % 2)
"""
_PASSES = (ScriptTest(expected="0"),)
_OWN = {Outcome.PASS, Outcome.FAIL, Outcome.TIMEOUT}
"""How these programs can end by themselves; by a signal or an exception they can't, whatever their ids."""


class Programs:
    """Runs completions as programs, each in a sandbox of its own; one that passes is worth 1.

    The sandboxes are made by a small process that this one starts once: what is forked for a completion has
    none of the memory of a process that has torch.

    Args:
        deadline: Seconds that each program may take.
        workers: How many run at a time.
        isolation: What keeps them apart, as in :class:`.Sandbox`.
        hang_one_in: About one completion in so many never ends.

    Raises:
        SandboxUnavailableError: That isolation can't be had here.
    """

    def __init__(self, *, deadline: float, workers: int, isolation: str, hang_one_in: int) -> None:
        self._hang_one_in = hang_one_in
        # The deadline is what ends a program that never waits, and its processor time only in its stead.
        limits = Limits(deadline=deadline, cpu=min(deadline + 1, LONGEST))
        self._sandbox = Sandbox(limits=limits, workers=workers, isolation=isolation).__enter__()
        self._is_open = True

    def grade(self, trajectory: Trajectory) -> Grade:
        """Run the response; whether it is in time is its own doing, too."""
        source = program(trajectory.tokens(Kind.RESPONSE), hang_one_in=self._hang_one_in)
        graded = self._sandbox.submit(Completion(program=source, tests=_PASSES)).result()
        if graded.outcome not in _OWN:
            raise RewardUnavailableError(f"{graded.outcome.value}: {graded.tests[0].evidence}")
        return Grade(
            reward=float(graded.outcome is Outcome.PASS),
            ending=Ending.TIMED_OUT if graded.outcome is Outcome.TIMEOUT else Ending.GRADED,
        )

    def told(self) -> dict[str, object]:
        """Return what held: the isolation, and what it lacks."""
        return {"isolation": self._sandbox.isolation, "missing": list(self._sandbox.missing)}

    def close(self) -> None:
        """End all sandboxes; what is being graded has no verdict."""
        if self._is_open:
            self._is_open = False
            self._sandbox.__exit__()


def program(ids: Sequence[int], *, hang_one_in: int) -> str:
    """Return the Python program that a completion is.

    It prints whether its median token id is even, 0, or odd, 1, and passes if that is 0. It never ends if
    the ids add up to a multiple of ``hang_one_in``.
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
