"""What a run of ``generation`` may be asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_prereg.measure.workloads.language.completions import Sampling
from pytest_prereg.measure.workloads.language.settings import (
    count_problem,
    model_problems,
    refuse,
    sampling_problems,
    switch_problem,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

WORKLOAD_VERSION = "1"

_LEAST = {"prompts": 1, "group": 1, "batch": 0, "prompt_tokens": 1, "turns": 1, "tool_tokens": 0}
_SWITCHES = ("ignore_ends", "compiled")


@dataclass(frozen=True, kw_only=True)
class GenerationSetting:
    """The parameters of ``generation``, as explained there.

    Raises:
        ValueError: Some of them, or two together, can't be run; the message says of each what to write.
    """

    model: str
    prompts: int
    group: int
    batch: int
    prompt_tokens: int
    new_tokens: int
    turns: int
    tool_tokens: int
    temperature: float
    top_k: int
    top_p: float
    ignore_ends: bool
    dtype: str
    device: str
    compiled: bool
    expect_model: str

    def __post_init__(self) -> None:
        refuse(
            [
                *model_problems(self.model, self.dtype, self.device, self.expect_model),
                *(count_problem(name, getattr(self, name), least) for name, least in _LEAST.items()),
                self._new_tokens_problem(),
                *sampling_problems(self.temperature, self.top_k, self.top_p),
                *(switch_problem(name, getattr(self, name)) for name in _SWITCHES),
            ]
        )
        refuse([self._batch_problem(), self._turns_problem(), self._compiled_problem()])

    @property
    def sequences(self) -> int:
        """How many completions there are."""
        return self.prompts * self.group

    @property
    def sampling(self) -> Sampling:
        """How tokens are drawn."""
        return Sampling(temperature=self.temperature, top_k=self.top_k, top_p=self.top_p)

    def batches(self) -> Iterator[slice]:
        """Yield which sequences are sampled together; the last batch may be smaller."""
        size = self.batch or self.sequences
        for start in range(0, self.sequences, size):
            yield slice(start, min(start + size, self.sequences))

    def check_context(self, context: int) -> None:
        """Raise ``ValueError`` if prompts fill the model's context, or do but for one token."""
        if self.prompt_tokens + 2 > context:
            raise ValueError(
                f"prompt_tokens = {self.prompt_tokens}, and the model's context is {context}: give at most "
                f"{context - 2}, so that two tokens can follow"
            )

    def _new_tokens_problem(self) -> str | None:
        problem = count_problem("new_tokens", self.new_tokens, 2)
        return None if problem is None else f"{problem}, since times are measured between two"

    def _batch_problem(self) -> str | None:
        if self.batch <= self.sequences:
            return None
        return (
            f"batch = {self.batch}, and there are {self.sequences} sequences (prompts x group): give at most "
            "so many, or 0 for all"
        )

    def _turns_problem(self) -> str | None:
        if (self.turns > 1) == (self.tool_tokens > 0):
            return None
        return (
            f"turns = {self.turns} with tool_tokens = {self.tool_tokens}: a tool answers between turns and "
            "nowhere else; give both, or turns = 1 and tool_tokens = 0"
        )

    def _compiled_problem(self) -> str | None:
        if self.compiled and self.turns > 1:
            return f"compiled = true with turns = {self.turns}: its cache is of one turn; give one of them"
        return None
