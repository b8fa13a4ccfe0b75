"""Training on a task until its held-out prompts are answered well enough, and what that took."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING

from pytest_prereg.measure.instruments.wall_clock import WallClock
from pytest_prereg.measure.workloads.language.causal_lm import load
from pytest_prereg.measure.workloads.language.completions import Sampling
from pytest_prereg.measure.workloads.learning.evaluating import Budget, Examination, evaluation_seed
from pytest_prereg.measure.workloads.learning.held_out import hold_out
from pytest_prereg.measure.workloads.learning.loop import GrpoLoop
from pytest_prereg.measure.workloads.learning.policy_state import Policy
from pytest_prereg.measure.workloads.learning.reward_stage import TaskGrader
from pytest_prereg.measure.workloads.learning.tasks import check_vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_prereg.measure.workloads.language.causal_lm import CausalLM
    from pytest_prereg.measure.workloads.learning.evaluating import Evaluation
    from pytest_prereg.measure.workloads.learning.grpo_setting import GrpoSetting
    from pytest_prereg.measure.workloads.learning.tasks import Task

WORKLOAD_VERSION = "1"


@dataclass(frozen=True, kw_only=True)
class Training:
    """A policy, and the loop that trains it on a task."""

    policy: Policy
    loop: GrpoLoop


def model_for(task: Task, setting: GrpoSetting, *, seed: int) -> CausalLM:
    """Load a model that a task can be asked of; its arguments are those of :func:`training_on`.

    Raises:
        ValueError: Prompts fill its context, or have tokens that it doesn't.
    """
    model = load(
        setting.model, seed=seed, dtype=setting.dtype, device=setting.device, expect=setting.expect_model
    )
    setting.check_context(model.context)
    check_vocabulary(task, model.vocabulary)
    return model


def training_on(task: Task, setting: GrpoSetting, *, seed: int) -> Training:
    """Load a policy to train on a task.

    Args:
        task: What it learns; the task's name in the setting is not looked at.
        setting: How, and which model.
        seed: Of the weights if it is an untrained model, of the order of prompts, and of all draws.

    Raises:
        ValueError: The model doesn't fit the prompts, or can't be trained in its dtype.
    """
    policy = Policy(model_for(task, setting, seed=seed), seed=seed, learning_rate=setting.learning_rate)
    prompts = partial(task.prompts, length=setting.prompt_tokens, order=seed)
    loop = GrpoLoop(setting, policy, prompts=prompts, grader=TaskGrader(task))
    return Training(policy=policy, loop=loop)


def examination_for(
    task: Task,
    setting: GrpoSetting,
    *,
    prompts: int,
    steps: int,
    seed: int,
    samples: int = 1,
    sampling: Sampling | None = None,
    batch: int = 0,
) -> Examination:
    """Return an examination of what is trained on a task, by questions of the same length.

    Args:
        task: What is learnt.
        setting: Of the training.
        prompts: How many are held out.
        steps: Of training, none of which may be on any of them.
        seed: Of the training; the draws of evaluations are by another that is made from it.
        samples: Answers to each prompt.
        sampling: How they are drawn; the likeliest tokens if left out.
        batch: Answers that are drawn together; 0: all.

    Raises:
        ValueError: The task has no such prompts, or training has some of them.
    """
    length = setting.prompt_tokens
    trained = task.prompts(0, steps * setting.prompts, length, order=seed)
    return Examination(
        task=task,
        held_out=hold_out(task, prompts=prompts, length=length, training=trained),
        budget=Budget(
            samples=samples,
            new_tokens=setting.new_tokens,
            sampling=sampling or Sampling(temperature=0),
            batch=batch,
            seed=evaluation_seed(seed),
        ),
    )


@dataclass(frozen=True, kw_only=True)
class Point:
    """How good a policy was, and what it had taken to get there."""

    step: int
    accuracy: float
    reward_mean: float
    """Both on held-out prompts."""
    tokens_generated: int
    """In training so far, discarded ones included."""
    seconds: float
    """In training so far: generation, rewards, updates, and all that is between them."""


@dataclass(frozen=True)
class Curve:
    """How a policy got better; each point is one evaluation."""

    points: Sequence[Point]

    @property
    def last(self) -> Point:
        """Where it ended."""
        return self.points[-1]

    def columns(self) -> dict[str, list[float]]:
        """Return the points by what they say."""
        rows = [asdict(point) for point in self.points]
        return {name: [row[name] for row in rows] for name in rows[0]}


def learn_until(
    target: float, loop: GrpoLoop, evaluate: Callable[[], Evaluation], *, steps: int, every: int
) -> Curve:
    """Train until an evaluation is at the target or above, or all steps are done.

    Evaluations are before the first step, after each ``every`` steps, and after the last; they take none of
    the time.

    Args:
        target: Accuracy to be had.
        loop: What trains.
        evaluate: Evaluates what is trained.
        steps: At most so many.
        every: Steps from one evaluation to the next.
    """
    spent: list[float] = []
    points: list[Point] = []
    for step in range(steps + 1):
        if step % every == 0 or step == steps:
            found = evaluate()
            points.append(
                Point(
                    step=step,
                    accuracy=found.accuracy,
                    reward_mean=found.reward_mean,
                    tokens_generated=loop.progress.account.generated,
                    seconds=sum(spent),
                )
            )
            if found.accuracy >= target:
                break
        if step < steps:
            with WallClock(lambda: None, spent.append):
                loop.step()
    return Curve(points)
