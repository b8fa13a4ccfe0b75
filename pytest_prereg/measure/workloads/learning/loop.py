"""GRPO steps, one after another: generate, reward, update; each goes on from wherever a kill left it.

Three log-probabilities of a token are kept apart: *behaviour*, recorded while it was drawn; *old*, as the
training side computes it of the policy that drew it; *current*, of the policy that is being updated. The
ratio is current to old. How far old is from behaviour is measured, and corrected nowhere.
"""

from __future__ import annotations

import hashlib
import math
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from pytest_prereg.measure.instruments.reading import NOWHERE
from pytest_prereg.measure.workloads.language.completions import Stop
from pytest_prereg.measure.workloads.learning.checkpoint import Measured, Progress, Settled, Stepped
from pytest_prereg.measure.workloads.learning.learning_stage import LearningStage
from pytest_prereg.measure.workloads.learning.recall import Recall
from pytest_prereg.measure.workloads.learning.reward_ledger import Ending, Ledger
from pytest_prereg.measure.workloads.learning.reward_stage import RewardStage, graded_at_once
from pytest_prereg.measure.workloads.learning.rollout_stage import RolloutStage
from pytest_prereg.measure.workloads.learning.rollouts import account_of
from pytest_prereg.measure.workloads.learning.step_readings import Readings

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_prereg.measure.instruments.reading import Reached
    from pytest_prereg.measure.instruments.window import Window
    from pytest_prereg.measure.workloads.learning.checkpoint import Checkpoint
    from pytest_prereg.measure.workloads.learning.grpo_setting import GrpoSetting
    from pytest_prereg.measure.workloads.learning.learning_stage import Learnt
    from pytest_prereg.measure.workloads.learning.policy_state import Policy
    from pytest_prereg.measure.workloads.learning.reward_ledger import Receipt
    from pytest_prereg.measure.workloads.learning.reward_stage import Grader
    from pytest_prereg.measure.workloads.learning.rollout_stage import Prompts
    from pytest_prereg.measure.workloads.learning.rollouts import TokenAccount, Trajectory

WORKLOAD_VERSION = "1"


class GrpoLoop:
    """A policy that is trained step by step.

    Args:
        setting: What a step is.
        policy: What is trained, as it was drawn or loaded.
        prompts: The data.
        grader: What gives rewards.
        checkpoint: Where the run is kept, and gone on from if an attempt before was cut short; or nowhere.

    Raises:
        CheckpointError: What is kept there is damaged, or is another run's.
    """

    def __init__(
        self,
        setting: GrpoSetting,
        policy: Policy,
        *,
        prompts: Prompts,
        grader: Grader,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self._setting = setting
        self._policy = policy
        self._grader = grader
        self._checkpoint = checkpoint
        self._recall = Recall()
        self.progress = Progress()
        """All that is known of the steps that are done."""
        if checkpoint is not None:
            self._resume(checkpoint)
        self.ledger = Ledger(self.progress.ledger)
        self._prompts = prompts
        self._rollouts = RolloutStage(setting, policy, prompts)
        self._learning = LearningStage(setting, policy)

    @property
    def began(self) -> list[int]:
        """Per attempt so far, how many steps were done when it began."""
        return [*self.progress.began, *self._recall.began]

    @property
    def measured_earlier(self) -> list[Measured]:
        """What earlier attempts measured of steps that are done; asked for before the first step."""
        return [*self.progress.measured, *self._recall.all_measured()]

    @property
    def reached(self) -> Reached:
        """Peak of memory in the step under way, as lost attempts at it read it, in bytes, or 0."""
        return self._recall.reached(self.progress.step)

    @property
    def not_kept(self) -> tuple[str, ...]:
        """What could not be written to the checkpoint, a sentence each."""
        return self._checkpoint.faults if self._checkpoint is not None else ()

    def close(self) -> None:
        """Leave the checkpoint to others."""
        if self._checkpoint is not None:
            self._checkpoint.close()

    def check(self) -> list[str]:
        """Return what is wrong with the log-probabilities that it would learn from, in sentences."""
        return self._learning.check(self._prompts(0, 1))

    def warm_up(self) -> None:
        """Do what torch does only once, at the shapes of a step; nothing of the run's state moves."""
        self._rollouts.warm_up()
        self._learning.warm_up()

    def step(self, memory: Window | None = None) -> Measured:
        """Do the next step and keep it; what it measured is kept with it, and not measured again.

        Args:
            memory: Entered around the step, for ``peak_memory``; made after the step before, with
                :attr:`reached`.

        Raises:
            RewardUnavailableError: A trajectory has no reward, for no reason of its own.
            MismatchError: What trains gives the sampled tokens other probabilities than what sampled them.
        """
        recorded = self._recall.measured(self.progress.step)
        readings, version = Readings(), self._policy.version
        with memory if memory is not None and recorded is None else nullcontext():
            trajectories = self._rewarded(readings, memory)
            receipts = self.ledger.receipts(trajectories)
            learnt = self._learning.learn(trajectories, [each.grade.reward for each in receipts], readings)
            self._sync(readings)
        if memory is not None and memory.reading is not None:
            found = memory.reading
            readings.take(peak_memory=found.value, memory_growth=found.details["growth"])
        account = account_of(trajectories, trained=learnt.trained, scored=learnt.scored)
        _take_counts(readings, trajectories, receipts)
        _take_learnt(readings, learnt, account)
        readings.take(policy_version=self._policy.version)
        measured = recorded or Measured(
            step=self.progress.step, samples=readings.samples, notes=_notes(learnt, version)
        )
        self._advance(measured, account, _chained(self.progress.trajectories, trajectories, receipts))
        self._keep(measured, is_new=recorded is None)
        return measured

    def _resume(self, checkpoint: Checkpoint) -> None:
        found = checkpoint.open()
        if found.tensors is not None:
            self._policy.restore(found.tensors, found.progress.version)
        self._recall = Recall(found.records)
        self.progress = found.progress

    def _rewarded(self, readings: Readings, memory: Window | None) -> list[Trajectory]:
        """Return the step's trajectories, all of them rewarded."""
        step = self.progress.step
        paid = self._recall.receipts(step)
        waited = max((receipt.waited for receipt in paid), default=0.0)
        trajectories: list[Trajectory] = []
        with self._stage(waited) as stage:
            for sampled, is_new in self._rollouts.rounds(step, self.progress.cursor, self._recall):
                if is_new and self._checkpoint is not None:
                    reached = memory.so_far() if memory is not None else NOWHERE
                    record = msgspec.structs.replace(sampled, reached=reached)
                    stage.write(partial(self._checkpoint.append, record))
                readings.extend(sampled.samples)
                trajectories += sampled.trajectories
                self._open(sampled.trajectories, paid)
                if self._setting.overlap:
                    stage.start(sampled.trajectories)
            with readings.timer("t_reward"):
                if not self._setting.overlap:
                    stage.start(trajectories)
                stage.wait()
            stage.settle()
        readings.add_up("t_gen")
        readings.add_up("t_reward", waited)
        return trajectories

    def _stage(self, waited: float) -> RewardStage:
        return RewardStage(
            self._grader,
            self.ledger,
            workers=graded_at_once(),
            attempts=self._setting.attempts,
            settled=self._write_down,
            waited=waited,
        )

    def _open(self, trajectories: Sequence[Trajectory], paid: Iterable[Receipt]) -> None:
        self.ledger.open(trajectories)
        names = {each.id for each in trajectories}
        for receipt in paid:
            if receipt.trajectory in names:
                self.ledger.settle(receipt)

    def _write_down(self, receipt: Receipt) -> None:
        if self._checkpoint is not None:
            self._checkpoint.append(Settled(step=self.progress.step, receipt=receipt))

    def _sync(self, readings: Readings) -> None:
        if self._policy.has_own_rollout_weights:
            with readings.timer("t_sync"):
                self._policy.sync()

    def _advance(self, measured: Measured, account: TokenAccount, trajectories: str) -> None:
        before = self.progress
        self.progress = Progress(
            step=before.step + 1,
            version=self._policy.version,
            cursor=before.cursor + self._setting.prompts,
            trajectories=trajectories,
            account=before.account + account,
            ledger=self.ledger.state(),
            measured=[*before.measured, measured],
            began=before.began,
        )

    def _keep(self, measured: Measured, *, is_new: bool) -> None:
        every = self._setting.checkpoint_every
        if self._checkpoint is None:
            return
        progress = msgspec.structs.replace(self.progress, began=self.began)
        is_due = every and progress.step % every == 0
        if is_due and self._checkpoint.save(progress, self._policy.tensors()):
            self.progress, self._recall = progress, Recall()
        elif is_new:
            self._checkpoint.append(Stepped(measured=measured))


def _take_counts(readings: Readings, trajectories: Sequence[Trajectory], receipts: Sequence[Receipt]) -> None:
    grades = [each.grade for each in receipts]
    stops = [each.stop for each in trajectories]
    readings.take(
        completions=len(trajectories),
        passed=sum(each.reward > 0 for each in grades),
        timed_out=sum(each.ending is Ending.TIMED_OUT for each in grades),
        reward_mean=math.fsum(each.reward for each in grades) / len(grades),
        reward_work=math.fsum(each.seconds for each in receipts),
        reward_longest=max(each.seconds for each in receipts),
        **{stop.value: stops.count(stop) for stop in Stop},
    )


def _take_learnt(readings: Readings, learnt: Learnt, account: TokenAccount) -> None:
    readings.take(
        tokens=account.trained,
        tokens_prompt=account.prompt,
        tokens_generated=account.generated,
        tokens_tool=account.tool,
        tokens_scored=account.scored,
        tokens_discarded=account.discarded,
        groups=len(learnt.zero_variance),
        zero_variance_groups=sum(learnt.zero_variance),
        mismatch_mean=learnt.mismatch.mean_absolute,
        mismatch_largest=learnt.mismatch.largest,
        kl=learnt.mismatch.kl,
        updates=len(learnt.updates),
    )
    if learnt.updates:
        readings.take(clipped=learnt.clipped, ratio_largest=learnt.ratio_largest)
    for name in ("t_score", "t_sync"):
        readings.add_up(name)


def _notes(learnt: Learnt, version: int) -> dict[str, Any]:
    """Return what all updates moved, and of each the version it was made from, its loss, and its divisor."""
    return {
        "weights_moved": learnt.weights_moved,
        "updates": [
            {
                "version": version + number,
                "loss": each.loss,
                "denominator": each.denominator_is,
                "gradient_norm": each.gradient_norm,
            }
            for number, each in enumerate(learnt.updates)
        ],
    }


def _chained(before: str, trajectories: Sequence[Trajectory], receipts: Sequence[Receipt]) -> str:
    """Return a digest over what came before and a step's trajectories and rewards."""
    grades = [each.grade for each in receipts]
    return hashlib.sha256(before.encode() + msgspec.msgpack.encode([trajectories, grades])).hexdigest()
