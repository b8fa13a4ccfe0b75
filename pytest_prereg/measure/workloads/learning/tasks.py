"""Tasks that a policy can learn: prompts to train on, prompts held out from those, and who grades answers."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Protocol

from pytest_prereg.measure.workloads.language.settings import UNTRAINED, count_problem, refuse
from pytest_prereg.measure.workloads.learning.verifiers import END, HALF, OtherHalf
from pytest_prereg.registry.refusals import quoted, suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import torch

WORKLOAD_VERSION = "1"

DATA_SET = 4096
"""Training prompts of a length. They are the same for everybody; a repeat's seed draws their order."""

HELD_OUT_ONE_IN = 8
"""A prompt whose token ids add up to a multiple of this is held out; every other is for training."""

MOST_HELD_OUT = 128
"""Half of them in either half of the vocabulary; of two tokens there are 120 and 128."""

_HALVES = (range(HALF), range(HALF, END))


class Task(Protocol):
    """Something to learn: where its prompts are from, and what an answer is worth."""

    @property
    def name(self) -> str:
        """What it is called in :data:`TASKS`."""

    @property
    def model(self) -> str:
        """The model that it was made for."""

    @property
    def vocabulary(self) -> int:
        """How many tokens a model has to know at least; prompts are of these."""

    def prompts(self, start: int, count: int, length: int, *, order: int = 0) -> torch.Tensor:
        """Return training prompts ``start`` up to ``start + count`` of an endless sequence, (count, length).

        The data set is the same for everybody; ``order``, such as the repeat's seed, draws the order in
        which it is gone through, anew each time. One call or several give the same prompts.

        Raises:
            ValueError: There are no prompts of that length.
        """

    def held_out(self, count: int, length: int) -> torch.Tensor:
        """Return the first prompts, (count, length), of a fixed list that no training prompt is on.

        Raises:
            ValueError: There are not as many different ones of that length.
        """

    def reward(self, prompt_ids: Sequence[int], response_ids: Sequence[int]) -> float:
        """Return what training pays for a response; its last token may be one that ends it."""

    def solves(self, prompt_ids: Sequence[int], response_ids: Sequence[int]) -> bool:
        """Return whether a response is right; the evaluation's own grader, which training never asks."""


@dataclass(frozen=True)
class Toy(OtherHalf):
    """Prompts lie in one half of the vocabulary, and the answer in the other.

    What answers all prompts alike is right for half of them, so the prompt has to be read. An untrained model
    that shares its embedding with its head mostly repeats what it reads, and is wrong.
    """

    name: str = "toy"
    model: str = UNTRAINED[1]
    vocabulary: int = END

    def prompts(self, start: int, count: int, length: int, *, order: int = 0) -> torch.Tensor:
        """As in :class:`Task`; of two tokens or more."""
        import torch  # noqa: PLC0415  # names of tasks are looked up before it is loaded

        _check_length(length)
        data = _training(length)
        chosen = [
            data[_order(order, cursor // DATA_SET)[cursor % DATA_SET]]
            for cursor in range(start, start + count)
        ]
        return torch.tensor(chosen, dtype=torch.int64).view(count, length)

    def held_out(self, count: int, length: int) -> torch.Tensor:
        """As in :class:`Task`; at most :data:`MOST_HELD_OUT`, all different."""
        import torch  # noqa: PLC0415

        _check_length(length)
        if not 1 <= count <= MOST_HELD_OUT:
            raise ValueError(f"prompts = {count}: task {quoted(self.name)} has 1 to {MOST_HELD_OUT} held out")
        return torch.tensor(_held_out(length)[:count], dtype=torch.int64)


TASKS: dict[str, Task] = {"toy": Toy()}
"""By name."""


def task_named(name: str) -> Task:
    """Return a task.

    Raises:
        ValueError: There is none of that name.
    """
    refuse([task_problem(name, TASKS)])
    return TASKS[name]


def check_vocabulary(task: Task, vocabulary: int) -> None:
    """Raise ``ValueError`` if a model's vocabulary lacks tokens that a task's prompts have."""
    if vocabulary < task.vocabulary:
        raise ValueError(
            f"task = {quoted(task.name)} has prompts of {task.vocabulary} tokens, and the model's vocabulary "
            f"is {vocabulary}: give another model, such as {quoted(task.model)}"
        )


def task_problem(name: object, names: Iterable[str]) -> str | None:
    """Return what is wrong with the name of a task, which is to be one of ``names``."""
    names = list(names)
    if name in names:
        return None
    return f"task = {quoted(name)}: there is no such task here{suggestion(str(name), names)}"


def is_held_out(prompt: Sequence[int]) -> bool:
    """Return whether a prompt is for evaluation alone, as only its own tokens say: none is in both sets."""
    return sum(prompt) % HELD_OUT_ONE_IN == 0


def _check_length(length: int) -> None:
    if problem := count_problem("prompt_tokens", length, least=2):
        raise ValueError(f"{problem}; of one token there are too few prompts to hold some out")


@cache
def _training(length: int) -> list[list[int]]:
    generator = random.Random(f"toy: training, {length}")  # noqa: S311  # reproducible, no secret
    found: list[list[int]] = []
    while len(found) < DATA_SET:
        prompt = generator.choices(generator.choice(_HALVES), k=length)
        if not is_held_out(prompt):
            found.append(prompt)
    return found


@cache
def _held_out(length: int) -> list[list[int]]:
    """As many in either half, by turns: what answers all alike is right for half of any even number."""
    pairs = zip(*(_held_out_in(half, length) for half in _HALVES), strict=True)
    return [prompt for pair in pairs for prompt in pair]


def _held_out_in(half: range, length: int) -> list[list[int]]:
    generator = random.Random(f"toy: held out, {half}, {length}")  # noqa: S311
    found: dict[tuple[int, ...], None] = {}
    while len(found) < MOST_HELD_OUT // 2:
        prompt = generator.choices(half, k=length)
        if is_held_out(prompt):
            found[tuple(prompt)] = None
    return [list(prompt) for prompt in found]


@lru_cache(maxsize=64)  # an order per repeat
def _order(order: int, epoch: int) -> list[int]:
    positions = list(range(DATA_SET))
    random.Random(f"toy: order {order}, {epoch}").shuffle(positions)  # noqa: S311
    return positions
