"""What a run of ``training`` may be asked for; nothing here imports torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_prereg.measure.workloads.language.settings import (
    count_problem,
    model_problems,
    number_problem,
    refuse,
    switch_problem,
    word_problem,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

WORKLOAD_VERSION = "1"

LOSSES = ("token-mean", "sequence-mean")
LOG_PROBS = ("fused", "naive")
ALIKE, SPREAD = "alike", "spread"

_LEAST = {
    "sequences": 2,  # the advantage of one over itself is 0, and nothing would be learnt
    "micro_batch": 0,
    "prompt_tokens": 1,
    "new_tokens": 1,
    "updates": 1,
}


@dataclass(frozen=True, kw_only=True)
class TrainingSetting:
    """The parameters of ``training``, as explained there.

    Raises:
        ValueError: Some of them can't be run; the message says of each what to write.
    """

    model: str
    sequences: int
    micro_batch: int
    prompt_tokens: int
    new_tokens: int
    lengths: str
    updates: int
    loss: str
    log_probs: str
    learning_rate: float
    dtype: str
    device: str
    compiled: bool
    checkpointing: bool
    expect_model: str = ""

    def __post_init__(self) -> None:
        refuse(self._problems())

    def check_context(self, context: int) -> None:
        """Raise ``ValueError`` if a sequence is longer than a model's context."""
        positions = self.prompt_tokens + self.new_tokens
        if positions > context:
            raise ValueError(
                f"prompt_tokens = {self.prompt_tokens} and new_tokens = {self.new_tokens}, and the context "
                f'of "{self.model}" is {context}: give less by {positions - context}'
            )

    def _problems(self) -> Iterator[str | None]:
        for name, least in _LEAST.items():
            yield count_problem(name, getattr(self, name), least)
        yield number_problem("learning_rate", self.learning_rate, positive=True)
        yield word_problem("lengths", self.lengths, (ALIKE, SPREAD))
        yield word_problem("loss", self.loss, LOSSES)
        yield word_problem("log_probs", self.log_probs, LOG_PROBS)
        yield switch_problem("compiled", self.compiled)
        yield switch_problem("checkpointing", self.checkpointing)
        yield from model_problems(self.model, self.dtype, self.device, self.expect_model)
        if self.dtype == "float16":
            yield 'dtype = "float16": AdamW\'s epsilon is 0 in it; give "bfloat16" or "float32"'
        if not any(count_problem(name, getattr(self, name), least) for name, least in _LEAST.items()):
            yield self._too_large_a_part()

    def _too_large_a_part(self) -> str | None:
        if self.micro_batch <= self.sequences:
            return None
        return (
            f"micro_batch = {self.micro_batch}, and sequences = {self.sequences}: give at most as many, or 0 "
            "for all at once"
        )
