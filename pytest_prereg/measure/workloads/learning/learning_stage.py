"""What a step learns: advantages, old log-probabilities, updates, and how far the two sides are apart."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch

from pytest_prereg.measure.workloads.language.completions import Kind, Stop
from pytest_prereg.measure.workloads.language.paths import path_named
from pytest_prereg.measure.workloads.language.reference_check import check_path
from pytest_prereg.measure.workloads.language.scoring import response_log_probs
from pytest_prereg.measure.workloads.language.watched_path import WatchedPath
from pytest_prereg.measure.workloads.learning.fixed_batches import share_moved, some_weights
from pytest_prereg.measure.workloads.learning.grpo_setting import DROP
from pytest_prereg.measure.workloads.learning.policy_loss import group_advantages, mismatch, token_weights
from pytest_prereg.measure.workloads.learning.rollouts import batch_of
from pytest_prereg.measure.workloads.learning.updates import MiniBatch, old_log_probs, update

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_prereg.measure.workloads.language.scoring import Path
    from pytest_prereg.measure.workloads.learning.grpo_setting import GrpoSetting
    from pytest_prereg.measure.workloads.learning.policy_loss import Advantages, Mismatch
    from pytest_prereg.measure.workloads.learning.policy_state import Policy
    from pytest_prereg.measure.workloads.learning.rollouts import Batch, Trajectory
    from pytest_prereg.measure.workloads.learning.step_readings import Readings
    from pytest_prereg.measure.workloads.learning.updates import Update

WORKLOAD_VERSION = "1"


@dataclass(frozen=True, kw_only=True)
class Learnt:
    """What came of a step's trajectories and rewards."""

    trained: Sequence[Trajectory]
    """What was not discarded."""
    zero_variance: tuple[bool, ...]
    """Per group."""
    updates: Sequence[Update]
    """None where all was discarded."""
    scored: int
    """Tokens whose old log-probability came from a pass of its own."""
    mismatch: Mismatch
    """Of the old log-probabilities from those of behaviour, over all that was sampled."""
    weights_moved: float
    """Share of the weights that are no longer what they were; one in some hundreds is looked at."""

    @property
    def clipped(self) -> float:
        """Share of the loss-bearing tokens of all updates, of which there is one, that the clip took."""
        tokens = sum(each.tokens for each in self.updates)
        return sum(each.clipped * each.tokens for each in self.updates) / tokens

    @property
    def ratio_largest(self) -> float:
        """Of all updates, of which there is one."""
        return max(each.ratio_largest for each in self.updates)


class MismatchError(Exception):
    """What samples and what trains are the same weights, and give other probabilities to the same tokens."""


class _Scored(NamedTuple):
    """Trajectories, and the log-probabilities of their response tokens (batch, positions)."""

    batch: Batch
    old: torch.Tensor


class LearningStage:
    """Updates a policy by what it sampled."""

    def __init__(self, setting: GrpoSetting, policy: Policy) -> None:
        self._setting = setting
        self._policy = policy
        self._path = path_named(setting.log_probs)

    def check(self, prompts: torch.Tensor) -> list[str]:
        """Return why log-probabilities of some prompts' tokens (batch, length) are not what they should be.

        They are held against float64, and what the path holds, of few tokens and of a micro-batch, against
        what its name says.
        """
        model, ids = self._policy.model, prompts.to(self._policy.model.device)
        with torch.no_grad():
            states = model.hidden_states(ids).flatten(0, 1)
        found = check_path(
            self._path, states, model.head, ids.flatten(), temperature=self._setting.temperature
        )
        return found.problems(self._setting.log_probs) or self._problems_of_a_pass()

    def _problems_of_a_pass(self) -> list[str]:
        watched = WatchedPath(self._path)
        self._pass(watched)
        self._policy.optimiser.zero_grad(set_to_none=True)
        return watched.problems(self._setting.log_probs)

    def warm_up(self) -> None:
        """Do a pass forth and back at the shapes of a micro-batch, and a step of AdamW that moves nothing."""
        self._pass(self._path)
        self._policy.warm_up()

    def _pass(self, path: Path) -> None:
        setting, model = self._setting, self._policy.model
        rows = setting.micro_batch or math.ceil(setting.batch / setting.mini_batches)
        tools = setting.tool_tokens * (setting.turns - 1)
        longest = setting.prompt_tokens + setting.new_tokens * setting.turns + tools
        shape = (rows, min(longest, model.context))
        ids = torch.zeros(shape, dtype=torch.int64, device=model.device)
        kinds = torch.full_like(ids, int(Kind.RESPONSE), dtype=torch.uint8)
        kinds[:, : setting.prompt_tokens] = Kind.PROMPT
        found = response_log_probs(model, ids, kinds, temperature=setting.temperature, path=path)
        found.sum().backward()

    def learn(
        self, trajectories: Sequence[Trajectory], rewards: Sequence[float], readings: Readings
    ) -> Learnt:
        """Update the policy; ``t_score`` and ``t_train`` go to the readings.

        With one update per step the old log-probabilities are those of its own pass, and only those of what
        is discarded are scored apart: how far the two sides are apart is known of all that was sampled.
        Where nothing is left there is no update, and ``t_train`` has no sample.

        Raises:
            MismatchError: They are further apart than rounding explains, though the weights are the same.
        """
        advantages = group_advantages(torch.tensor(rewards, dtype=torch.float64), self._setting.group)
        rows = list(self._kept(trajectories, advantages))
        trained = [trajectories[row] for row in rows]
        discarded = [trajectories[row] for row in sorted({*range(len(trajectories))} - {*rows})]
        scored = [self._scored(discarded, readings)] if discarded else []
        updates: list[Update] = []
        before = some_weights(self._policy.model.network)
        if trained:
            gains = advantages.values[rows].to(self._policy.model.device)
            updates, of_trained = self._updated(trained, gains, readings)
            scored.append(of_trained)
        apart = trajectories if self._setting.updates > 1 else discarded
        return Learnt(
            trained=trained,
            zero_variance=advantages.zero_variance,
            updates=updates,
            scored=sum(each.count(Kind.RESPONSE) for each in apart),
            mismatch=self._mismatch(scored),
            weights_moved=share_moved(before, self._policy.model.network),
        )

    def _updated(
        self, trajectories: Sequence[Trajectory], gains: torch.Tensor, readings: Readings
    ) -> tuple[list[Update], _Scored]:
        """Return the updates, and the log-probabilities of before them."""
        scored = self._scored(trajectories, readings) if self._setting.updates > 1 else None
        batch = self._batch(trajectories) if scored is None else scored.batch
        with readings.timer("t_train"):
            updates = list(self._updates(batch, None if scored is None else scored.old, gains))
        return updates, scored or _Scored(batch, updates[0].log_probs)

    def _mismatch(self, scored: Sequence[_Scored]) -> Mismatch:
        responses = [each.batch.kinds == Kind.RESPONSE for each in scored]
        pairs = list(zip(scored, responses, strict=True))
        old = torch.cat([each.old[mask] for each, mask in pairs])
        behaviour = torch.cat([each.batch.behaviour[mask] for each, mask in pairs])
        found = mismatch(old, behaviour, torch.ones_like(old, dtype=torch.bool))
        dtype = self._policy.model.head.dtype
        allowed = found.explained(dtype)
        if found.mean_absolute > allowed and not self._policy.has_own_rollout_weights:
            raise MismatchError(
                f"training gives the {found.tokens} tokens that were sampled log-probabilities which are "
                f"{found.mean_absolute:.2g} from those recorded while sampling, on average; the weights are "
                f"the same, and {dtype} explains {allowed:.2g}: the two sides don't read the same tokens, at "
                "the same positions and temperature"
            )
        return found

    def _kept(self, trajectories: Sequence[Trajectory], advantages: Advantages) -> Iterator[int]:
        """Yield which trajectories are trained on; what is discarded counts in its group's mean."""
        setting = self._setting
        for row, each in enumerate(trajectories):
            equal = advantages.zero_variance[row // setting.group] and setting.zero_variance == DROP
            cut = each.stop is Stop.TRUNCATED and setting.truncated == DROP
            if not (equal or cut):
                yield row

    def _batch(self, trajectories: Sequence[Trajectory]) -> Batch:
        model = self._policy.model
        return batch_of(trajectories, pad=model.pad, device=model.device)

    def _scored(self, trajectories: Sequence[Trajectory], readings: Readings) -> _Scored:
        batch = self._batch(trajectories)
        with readings.timer("t_score"):
            old = old_log_probs(
                self._policy.model,
                batch.ids,
                batch.kinds,
                micro_batch=self._setting.micro_batch,
                temperature=self._setting.temperature,
                path=self._path,
            )
        return _Scored(batch, old)

    def _updates(self, batch: Batch, old: torch.Tensor | None, gains: torch.Tensor) -> Iterator[Update]:
        setting, policy = self._setting, self._policy
        parts = torch.arange(len(gains), device=gains.device).tensor_split(
            min(setting.mini_batches, len(gains))
        )
        for rows in parts * setting.epochs:
            yield update(
                policy.model,
                policy.optimiser,
                MiniBatch(
                    ids=batch.ids[rows],
                    kinds=batch.kinds[rows],
                    old=None if old is None else old[rows],
                    advantages=gains[rows],
                    weights=token_weights(batch.kinds[rows] == Kind.RESPONSE, setting.loss),
                ),
                micro_batch=setting.micro_batch,
                temperature=setting.temperature,
                clip_low=setting.clip_low,
                clip_high=setting.clip_high,
                path=self._path,
            )
            policy.version += 1
