"""What an evaluation on held-out prompts may be asked for, and a run that trains until one is passed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_prereg.measure.workloads.language.settings import (
    count_problem,
    digest_problem,
    is_number,
    refuse,
    sampling_problems,
)
from pytest_prereg.measure.workloads.learning.tasks import MOST_HELD_OUT, TASKS, task_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WORKLOAD_VERSION = "1"

FEWEST_HELD_OUT = 8
"""That a target is reached on: of one prompt it would be luck."""

_LEAST = {"prompts": 1, "samples": 1, "batch": 0, "steps": 0, "train_prompts": 1}


@dataclass(frozen=True, kw_only=True)
class EvaluationSetting:
    """The parameters of ``evaluation`` that a step of training doesn't have too, as explained there.

    Raises:
        ValueError: Some of them can't be run; the message says of each what to write.
    """

    task: str
    prompts: int
    samples: int
    batch: int
    steps: int
    train_prompts: int
    temperature: float
    top_k: int
    top_p: float
    expect_prompts: str
    expect_verifier: str

    def __post_init__(self) -> None:
        refuse(self._problems())

    def _problems(self) -> Iterator[str | None]:
        yield task_problem(self.task, TASKS)
        for name, least in _LEAST.items():
            yield count_problem(name, getattr(self, name), least)
        yield None if count_problem("prompts", self.prompts) else _held_out_problem("prompts", self.prompts)
        if not any(count_problem(name, getattr(self, name), least) for name, least in _LEAST.items()):
            yield self._batch_problem()
        yield from sampling_problems(self.temperature, self.top_k, self.top_p)
        yield self._copies()
        for name in ("expect_prompts", "expect_verifier"):
            yield digest_problem(name, getattr(self, name))

    def _batch_problem(self) -> str | None:
        if self.batch <= self.prompts * self.samples:
            return None
        return (
            f"batch = {self.batch}, and there are {self.prompts * self.samples} answers (prompts x samples): "
            "give at most so many, or 0 for all"
        )

    def _copies(self) -> str | None:
        """A hundred copies of one answer would pass for a hundred attempts."""
        if count_problem("samples", self.samples, 2) or not (self.temperature == 0 or self.top_k == 1):
            return None
        how = "temperature = 0" if self.temperature == 0 else "top_k = 1"
        return f"samples = {self.samples} with {how}: all would be the same answer; give samples = 1"


@dataclass(frozen=True, kw_only=True)
class TargetSetting:
    """The parameters of ``time_to_target`` that a step of training doesn't have, as explained there.

    Raises:
        ValueError: Some of them can't be run; the message says of each what to write.
    """

    task: str
    target: float
    steps: int
    evaluate_every: int
    held_out: int
    expect_prompts: str
    expect_verifier: str

    def __post_init__(self) -> None:
        refuse(self._problems())

    def _problems(self) -> Iterator[str | None]:
        yield task_problem(self.task, TASKS)
        if not (is_number(self.target) and 0 < self.target <= 1):
            yield f"target = {self.target!r}: give a share of right answers, above 0 and at most 1"
        yield count_problem("evaluate_every", self.evaluate_every)
        yield _held_out_problem("held_out", self.held_out, FEWEST_HELD_OUT, ": on fewer it may be luck")
        for name in ("expect_prompts", "expect_verifier"):
            yield digest_problem(name, getattr(self, name))
        counts = not (count_problem("steps", self.steps) or count_problem("every", self.evaluate_every))
        if counts and self.evaluate_every > self.steps:
            yield (
                f"evaluate_every = {self.evaluate_every}, and steps = {self.steps}: give at most as "
                "many, so that something is evaluated before the end"
            )


def _held_out_problem(name: str, value: object, least: int = 1, why: str = "") -> str | None:
    if problem := count_problem(name, value, least, why):
        return problem
    if isinstance(value, int) and value > MOST_HELD_OUT:
        return f"{name} = {value}: give at most {MOST_HELD_OUT}, which is how many prompts are held out"
    return None


def refuse_all(*makers: Callable[[], object]) -> None:
    """Make everything; raise one ``ValueError`` that tells what each of them refuses."""
    refused = []
    for make in makers:
        try:
            make()
        except ValueError as error:
            refused.append(str(error))
    refuse(refused)
