"""What an evaluation on held-out prompts may be asked for, and a run that trains until one is passed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_prereg.measure.workloads.language.settings import (
    count_problem,
    is_number,
    refuse,
    sampling_problems,
)
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WORKLOAD_VERSION = "1"

_DIGEST = re.compile(r"(?:[0-9a-f]{12,64})?")


@dataclass(frozen=True, kw_only=True)
class EvaluationSetting:
    """The parameters of ``evaluation`` that a step of training doesn't have too, as explained there.

    Raises:
        ValueError: Some of them can't be run; the message says of each what to write.
    """

    prompts: int
    samples: int
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
        for name, least in {"prompts": 1, "samples": 1, "steps": 0, "train_prompts": 1}.items():
            yield count_problem(name, getattr(self, name), least)
        yield from sampling_problems(self.temperature, self.top_k, self.top_p)
        yield self._copies()
        for name in ("expect_prompts", "expect_verifier"):
            yield digest_problem(name, getattr(self, name))

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

    target: float
    steps: int
    evaluate_every: int
    held_out: int
    expect_prompts: str
    expect_verifier: str

    def __post_init__(self) -> None:
        refuse(self._problems())

    def _problems(self) -> Iterator[str | None]:
        if not (is_number(self.target) and 0 < self.target <= 1):
            yield f"target = {self.target!r}: give a share of right answers, above 0 and at most 1"
        for name in ("evaluate_every", "held_out"):
            yield count_problem(name, getattr(self, name))
        for name in ("expect_prompts", "expect_verifier"):
            yield digest_problem(name, getattr(self, name))
        counts = not (count_problem("steps", self.steps) or count_problem("every", self.evaluate_every))
        if counts and self.evaluate_every > self.steps:
            yield (
                f"evaluate_every = {self.evaluate_every}, and steps = {self.steps}: give at most as "
                "many, so that something is evaluated before the end"
            )


def digest_problem(name: str, value: object) -> str | None:
    """Return what is wrong with how a digest is to begin."""
    if isinstance(value, str) and _DIGEST.fullmatch(value):
        return None
    return f"{name} = {quoted(value)}: give the digest or its first 12 hex digits or more, or nothing"


def refuse_all(*makers: Callable[[], object]) -> None:
    """Make everything; raise one ``ValueError`` that tells what each of them refuses."""
    refused = []
    for make in makers:
        try:
            make()
        except ValueError as error:
            refused.append(str(error))
    refuse(refused)
