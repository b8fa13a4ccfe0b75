"""Rollouts of a step: sampled in rounds, each written down before the next, or found where it was."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

import torch

from pytest_prereg.measure.workloads.language.completions import Sampling
from pytest_prereg.measure.workloads.language.decoding import generate
from pytest_prereg.measure.workloads.learning.checkpoint import Sampled
from pytest_prereg.measure.workloads.learning.rollouts import trajectories_of
from pytest_prereg.measure.workloads.learning.step_readings import Readings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.measure.workloads.learning.grpo_setting import GrpoSetting
    from pytest_prereg.measure.workloads.learning.policy_state import Policy
    from pytest_prereg.measure.workloads.learning.recall import Recall

WORKLOAD_VERSION = "1"

_WARM_TOKENS = 2


class Prompts(Protocol):
    """Where prompts are from."""

    def __call__(self, start: int, count: int) -> torch.Tensor:
        """Return prompts ``start`` up to ``start + count`` of an endless sequence, (count, length)."""


class RolloutStage:
    """Samples a group of completions for each of a step's prompts."""

    def __init__(self, setting: GrpoSetting, policy: Policy, prompts: Prompts) -> None:
        self._setting = setting
        self._policy = policy
        self._prompts = prompts
        self._sampling = Sampling(temperature=setting.temperature)

    def warm_up(self) -> None:
        """Sample a few tokens at the shapes of a round, by draws of their own."""
        ids = self._repeated(0, self._setting.prompts_at_once)
        draws = torch.Generator(ids.device).manual_seed(0)
        with torch.no_grad():
            generate(self._policy.sampler, ids, new_tokens=_WARM_TOKENS, generator=draws)

    def rounds(self, step: int, cursor: int, recall: Recall) -> Iterator[tuple[Sampled, bool]]:
        """Yield each round of a step, whose prompts begin at ``cursor``, and whether it was sampled now.

        A round that is recalled is not sampled again; draws go on from after it.
        """
        at_once, prompts = self._setting.prompts_at_once, self._setting.prompts
        for number, first in enumerate(range(0, prompts, at_once)):
            found = recall.round(step, number)
            if found is not None:
                state = torch.frombuffer(bytearray(found.generator), dtype=torch.uint8)
                self._policy.generator.set_state(state)
                yield found, False
            else:
                chosen = range(cursor + first, cursor + min(first + at_once, prompts))
                yield self._sample(step, number, chosen), True

    def _sample(self, step: int, number: int, chosen: range) -> Sampled:
        setting, policy, readings = self._setting, self._policy, Readings()
        ids = self._repeated(chosen.start, len(chosen))
        with readings.timer("t_gen"), torch.no_grad():
            completions = generate(
                policy.sampler,
                ids,
                new_tokens=setting.new_tokens,
                generator=policy.generator,
                sampling=self._sampling,
                turns=setting.turns,
                tool=self._answer if setting.turns > 1 else None,
                drawing=partial(readings.timer, "t_sample"),
            )
        trajectories = trajectories_of(
            completions,
            step=step,
            prompts=chosen,
            group=setting.group,
            version=policy.version,
            sampling=self._sampling,
        )
        return Sampled(
            step=step,
            round=number,
            trajectories=trajectories,
            generator=policy.generator.get_state().numpy().tobytes(),
            samples=readings.samples,
        )

    def _repeated(self, start: int, count: int) -> torch.Tensor:
        """Return prompts, each as often as its group has members, (count x group, length)."""
        ids = self._prompts(start, count).repeat_interleave(self._setting.group, 0)
        return ids.to(self._policy.model.device)

    def _answer(self, turn: int, ids: torch.Tensor) -> torch.Tensor:
        """Return what the tool says to each, (batch, tool tokens): a function of its own conversation alone.

        How far a row is padded hangs on the others. A token with the padding's id counts for nothing either.
        """
        model = self._policy.model
        places = torch.arange(self._setting.tool_tokens, device=ids.device)
        shown = ids.masked_fill(ids == model.pad, 0).sum(1, keepdim=True) + turn
        return (shown * 31 + places * 17) % model.vocabulary
