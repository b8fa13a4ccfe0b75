"""Evaluation on held-out prompts at a fixed budget, by draws and a grader that training has nothing of."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from math import fsum
from typing import TYPE_CHECKING, Any

import torch

from pytest_prereg.measure.workloads.language.completions import Kind, Sampling, Stop
from pytest_prereg.measure.workloads.language.decoding import generate
from pytest_prereg.measure.workloads.language.settings import refuse
from pytest_prereg.measure.workloads.learning.grader_source import verifier_digest
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_prereg.measure.workloads.language.causal_lm import CausalLM
    from pytest_prereg.measure.workloads.language.completions import Completions
    from pytest_prereg.measure.workloads.learning.held_out import HeldOut
    from pytest_prereg.measure.workloads.learning.tasks import Task

WORKLOAD_VERSION = "1"

_WARM_TOKENS = 2


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What an evaluation may spend per prompt, the same whatever is evaluated."""

    samples: int
    new_tokens: int
    sampling: Sampling
    seed: int
    """Of all its draws."""
    batch: int = 0
    """Answers that are drawn together; 0: all. With other batches draws are others, but for the likeliest."""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What came of it. Attempts of one model are no repeats: they share its weights, and prompts."""

    successes_by_prompt: tuple[int, ...]
    """Of so many samples each."""
    samples: int
    reward_mean: float
    """Over all attempts, by the grader of training."""
    tokens_generated: int
    stops: tuple[Stop, ...]
    """Per attempt."""

    @property
    def attempts(self) -> int:
        """Prompts times samples."""
        return len(self.successes_by_prompt) * self.samples

    @property
    def successes(self) -> int:
        """Attempts that the evaluation's own grader found right."""
        return sum(self.successes_by_prompt)

    @property
    def accuracy(self) -> float:
        """Successes by attempts."""
        return self.successes / self.attempts


@dataclass(frozen=True, kw_only=True)
class Examination:
    """Held-out prompts, who grades the answers, and what these may cost: the same whoever is examined."""

    task: Task
    held_out: HeldOut
    budget: Budget

    def identity(self) -> dict[str, Any]:
        """Return what it is told from another by: digests of prompts and graders, and the budget."""
        return {
            "prompts_digest": self.held_out.digest,
            "verifier_digest": verifier_digest(self.task),
            "budget": {
                "prompts": len(self.held_out),
                "samples": self.budget.samples,
                "new_tokens": self.budget.new_tokens,
                **asdict(self.budget.sampling),
                "seed": self.budget.seed,
                "batch": self.budget.batch,
            },
        }

    def expect(self, *, prompts: str, verifier: str) -> None:
        """Refuse to be another than the one that a prediction was registered for.

        Args:
            prompts: How the digest of its prompts is to begin; with nothing, any will do.
            verifier: Likewise of its verifier.

        Raises:
            ValueError: One or both begin otherwise.
        """
        refuse(
            [
                _another("expect_prompts", self.held_out.digest, prompts),
                _another("expect_verifier", verifier_digest(self.task), verifier),
            ]
        )

    def warm_up(self, model: CausalLM) -> None:
        """Do what torch does only once, at the shapes of an evaluation."""
        for rows in {len(rows): rows for rows in self._batches()}.values():
            self._sample(model, [rows], min(self.budget.new_tokens, _WARM_TOKENS))

    def evaluate(self, model: CausalLM) -> Evaluation:
        """Sample answers and grade them; the model stays as it is.

        Draws are from a generator of the evaluation's own: whatever is drawn elsewhere, before or after, is
        as if there had been none.
        """
        samples = self.budget.samples
        batches = self._sample(model, self._batches(), self.budget.new_tokens)
        asked = (prompt for prompt in self.held_out.prompts.tolist() for _ in range(samples))
        answers = (answer for each in batches for answer in _answers(each))
        pairs = list(zip(asked, answers, strict=True))
        solved = [self.task.solves(prompt, answer) for prompt, answer in pairs]
        return Evaluation(
            successes_by_prompt=tuple(
                sum(solved[first : first + samples]) for first in range(0, len(solved), samples)
            ),
            samples=samples,
            reward_mean=fsum(self.task.reward(prompt, answer) for prompt, answer in pairs) / len(pairs),
            tokens_generated=sum(each.count(Kind.RESPONSE) for each in batches),
            stops=tuple(stop for each in batches for stop in each.stops),
        )

    def _batches(self) -> list[range]:
        """Which of the (prompts x samples) rows are answered together; the last may be fewer."""
        rows = range(len(self.held_out) * self.budget.samples)
        size = self.budget.batch or len(rows)
        return [rows[start : start + size] for start in rows[::size]]

    def _sample(self, model: CausalLM, batches: Iterable[range], new_tokens: int) -> list[Completions]:
        """Answer every prompt as often as its budget says; the draws of all batches are of one generator."""
        generator = torch.Generator(model.device).manual_seed(self.budget.seed)
        prompts = self.held_out.prompts.to(model.device).repeat_interleave(self.budget.samples, dim=0)
        with torch.no_grad():
            return [
                generate(
                    model,
                    prompts[rows.start : rows.stop],
                    new_tokens=new_tokens,
                    generator=generator,
                    sampling=self.budget.sampling,
                )
                for rows in batches
            ]


def evaluation_seed(seed: int) -> int:
    """Return the seed of evaluations in a repeat of seed ``seed``; no other draw of the repeat has it."""
    return int.from_bytes(hashlib.sha256(f"evaluation {seed}".encode()).digest()[:7])


def _another(name: str, found: str, expected: str) -> str | None:
    if found.startswith(expected):
        return None
    return (
        f"{name} = {quoted(expected)}, and the digest here is {found}: give how that begins if this is "
        "meant; else the parameters, or the version of the package, that the other is of"
    )


def _answers(completions: Completions) -> list[list[int]]:
    """The response tokens of each sequence."""
    mine = (completions.kinds == Kind.RESPONSE).tolist()
    return [
        [token for token, is_mine in zip(ids, row, strict=True) if is_mine]
        for ids, row in zip(completions.ids.tolist(), mine, strict=True)
    ]
