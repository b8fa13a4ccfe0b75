"""What a run of GRPO steps may be asked for; nothing here imports torch."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from pytest_prereg.measure.workloads.language.settings import (
    DTYPES,
    count_problem,
    is_number,
    model_problems,
    number_problem,
    refuse,
    switch_problem,
    word_problem,
)
from pytest_prereg.measure.workloads.learning.tasks import TASKS, task_problem
from pytest_prereg.measure.workloads.learning.training_setting import LOG_PROBS

if TYPE_CHECKING:
    from collections.abc import Iterator

WORKLOAD_VERSION = "1"

REDUCTIONS = ("token-mean", "sequence-mean")
PROGRAMS = "programs"
"""The task whose completions are run as programs; the others have names of their own."""
KEEP, DROP = "keep", "drop"

_LEAST = {
    "prompts": 1,
    "group": 2,
    "prompt_tokens": 1,
    "new_tokens": 1,
    "hang_one_in": 1,
    "steps": 1,
    "generate_at_once": 0,
    "mini_batches": 1,
    "epochs": 1,
    "micro_batch": 0,
    "turns": 1,
    "tool_tokens": 0,
    "attempts": 1,
    "checkpoint_every": 0,
}
_WHY = {
    "group": ", since a completion is compared with the others of its group, and of one nothing is learnt"
}
_NUMBERS = {
    "deadline": True,
    "temperature": True,
    "learning_rate": True,
    "clip_low": False,
    "clip_high": False,
}
"""Whether each has to be above 0."""
_WORDS = {
    "loss": REDUCTIONS,
    "log_probs": LOG_PROBS,
    "zero_variance": (KEEP, DROP),
    "truncated": (KEEP, DROP),
    "isolation": ("namespaces", "processes"),
}


@dataclass(frozen=True, kw_only=True)
class GrpoSetting:
    """The parameters of ``grpo_step``, as explained there.

    Raises:
        ValueError: Some of them can't be run; the message says of each what to write.
    """

    prompts: int = 2
    group: int = 8
    prompt_tokens: int = 16
    new_tokens: int = 32
    deadline: float = 1.0
    hang_one_in: int = 1_000_000_000
    isolation: str = "processes"
    model: str = "tiny-qwen3"
    task: str = PROGRAMS
    steps: int = 1
    overlap: bool = False
    generate_at_once: int = 0
    mini_batches: int = 1
    epochs: int = 1
    micro_batch: int = 0
    loss: str = "token-mean"
    clip_low: float = 0.2
    clip_high: float = 0.2
    learning_rate: float = 1e-4
    temperature: float = 1.0
    turns: int = 1
    tool_tokens: int = 0
    zero_variance: str = KEEP
    truncated: str = KEEP
    log_probs: str = "fused"
    dtype: str = "float32"
    rollout_dtype: str = ""
    device: str = "auto"
    attempts: int = 1
    checkpoint_every: int = 1
    expect_model: str = ""

    def __post_init__(self) -> None:
        refuse(self._problems())

    @property
    def batch(self) -> int:
        """Completions of a step."""
        return self.prompts * self.group

    @property
    def updates(self) -> int:
        """Updates of a step, where nothing is dropped."""
        return self.mini_batches * self.epochs

    @property
    def prompts_at_once(self) -> int:
        """How many prompts' groups are generated together."""
        return self.generate_at_once or self.prompts

    def check_context(self, context: int) -> None:
        """Raise ``ValueError`` if prompts fill a model's context."""
        if self.prompt_tokens >= context:
            raise ValueError(
                f'prompt_tokens = {self.prompt_tokens}, and the context of "{self.model}" is {context}: '
                f"give at most {context - 1}, so that a token can follow"
            )

    def identity(self) -> dict[str, object]:
        """Return every parameter by name: what a run is told from another by."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def _problems(self) -> Iterator[str | None]:
        for name, least in _LEAST.items():
            yield count_problem(name, getattr(self, name), least, _WHY.get(name, ""))
        for name, positive in _NUMBERS.items():
            yield number_problem(name, getattr(self, name), positive=positive)
        for name, words in _WORDS.items():
            yield word_problem(name, getattr(self, name), words)
        yield switch_problem("overlap", self.overlap)
        yield task_problem(self.task, (PROGRAMS, *TASKS))
        yield from model_problems(self.model, self.dtype, self.device, self.expect_model)
        if self.rollout_dtype != "":
            yield word_problem("rollout_dtype", self.rollout_dtype, DTYPES)
        if is_number(self.clip_low) and self.clip_low > 1:
            yield f"clip_low = {self.clip_low!r}: give a number from 0 to 1"
        if not any(count_problem(name, getattr(self, name), least) for name, least in _LEAST.items()):
            yield from self._in_pairs()

    def _in_pairs(self) -> Iterator[str | None]:
        if self.generate_at_once > self.prompts:
            yield (
                f"generate_at_once = {self.generate_at_once}, and prompts = {self.prompts}: give at most as "
                "many, or 0 for all"
            )
        if self.overlap is True and self.prompts_at_once >= self.prompts:
            yield (
                f"overlap = true, and all prompts = {self.prompts} are generated at once, so that nothing is "
                "generated while rewards are given; give generate_at_once = 1 or so, and the same in an arm "
                "without overlap, so that both draw alike"
            )
        if self.mini_batches > self.batch:
            yield (
                f"mini_batches = {self.mini_batches}, and prompts x group = {self.batch} completions: give "
                "at most as many"
            )
        if (self.turns > 1) != (self.tool_tokens > 0):
            yield (
                f"turns = {self.turns} with tool_tokens = {self.tool_tokens}: between turns a tool answers; "
                "give both, or turns = 1 and tool_tokens = 0"
            )
