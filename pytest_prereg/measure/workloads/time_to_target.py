"""The built-in ``time_to_target``: how long, and how many tokens, training takes to be good enough."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pytest_prereg.measure.experiment import experiment
from pytest_prereg.measure.instruments.wall_clock import NAME as WALL_CLOCK
from pytest_prereg.measure.workloads.learning.evaluation_setting import TargetSetting, refuse_all
from pytest_prereg.measure.workloads.learning.grpo_setting import GrpoSetting

if TYPE_CHECKING:
    from pytest_prereg.measure.repeat import Repeat
    from pytest_prereg.measure.workloads.learning.task_training import Curve

WORKLOAD_VERSION = "1"


@experiment(
    metrics={
        "t_to_target": "s",
        "tokens_to_target": {"unit": "token", "exact": True},
        "steps_to_target": {"unit": "step", "exact": True},
    },
    preload=["torch", "torch._dynamo", "transformers.models.qwen3.modeling_qwen3"],
)
def time_to_target(
    repeat: Repeat,
    *,
    target: float = 0.9,
    model: str = "toy-qwen3",
    task: str = "toy",
    steps: int = 60,
    evaluate_every: int = 1,
    held_out: int = 32,
    prompts: int = 4,
    group: int = 8,
    prompt_tokens: int = 8,
    new_tokens: int = 8,
    learning_rate: float = 3e-3,
    temperature: float = 1.0,
    mini_batches: int = 1,
    epochs: int = 1,
    micro_batch: int = 0,
    loss: str = "token-mean",
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    zero_variance: str = "keep",
    dtype: str = "float32",
    device: str = "auto",
    expect_prompts: str = "",
    expect_verifier: str = "",
    expect_model: str = "",
) -> None:
    """Train with GRPO until a share ``target`` of held-out prompts is answered right, or for all ``steps``.

    There are ``held_out`` of those, the same for everybody. Each is answered once and greedily, before the
    first step, after every ``evaluate_every`` and at the end, and graded by a grader that training never
    asks: given the weights there is no luck in it. The first evaluation at the target or above ends the
    repeat. That is a first passage: a policy that was over the target once may fall below it later.

    ``t_to_target`` is the time of all steps until then, each with generation, rewards and update; loading,
    warming up and evaluating are not in it. ``tokens_to_target`` are those generated in these steps, also
    those that were discarded. Both, and ``steps_to_target``, go by ``evaluate_every`` steps: what was reached
    between two evaluations has the numbers of the later one.

    Where the target is not reached, those three have no value: they are censored at what all steps took. That
    makes the repeat invalid, so a median of them is decided only where it is the same wherever they would
    have been, and a mean not at all. What is censored refutes nothing: give ``steps`` that go well beyond
    what would. Whether the target is reached is no metric (the diagnostic ``reached`` says it), since every
    valid repeat has reached it; it is predicted of ``evaluation`` with as many ``steps``, as the proportion
    of ``accuracy >= 0.9``, to which each repeat counts.

    All evaluations are kept with the repeat (``curve``, in columns), with the tokens and the seconds until
    each: quality against either can be drawn from them.

    Raises:
        ValueError: Parameters can't be run; the message says of each what to write.
    """
    training: dict[str, Any] = {
        "model": model,
        "prompts": prompts,
        "group": group,
        "prompt_tokens": prompt_tokens,
        "new_tokens": new_tokens,
        "learning_rate": learning_rate,
        "temperature": temperature,
        "steps": steps,
        "mini_batches": mini_batches,
        "epochs": epochs,
        "micro_batch": micro_batch,
        "loss": loss,
        "clip_low": clip_low,
        "clip_high": clip_high,
        "zero_variance": zero_variance,
        "dtype": dtype,
        "device": device,
        "expect_model": expect_model,
    }
    goal: dict[str, Any] = {
        "task": task,
        "target": target,
        "steps": steps,
        "evaluate_every": evaluate_every,
        "held_out": held_out,
        "expect_prompts": expect_prompts,
        "expect_verifier": expect_verifier,
    }
    refuse_all(partial(TargetSetting, **goal), partial(GrpoSetting, **training))
    curve = _learn(repeat, TargetSetting(**goal), GrpoSetting(**training))
    if curve is not None:
        _record(repeat, curve, target)


def _learn(repeat: Repeat, goal: TargetSetting, setting: GrpoSetting) -> Curve | None:
    """Train, and record what was trained and held against what; no curve where its path is wrong."""
    from pytest_prereg.measure.workloads.learning.learning_stage import MismatchError  # noqa: PLC0415
    from pytest_prereg.measure.workloads.learning.task_training import (  # noqa: PLC0415
        examination_for,
        learn_until,
        training_on,
    )
    from pytest_prereg.measure.workloads.learning.tasks import task_named  # noqa: PLC0415

    task, seed = task_named(goal.task), repeat.seed
    examination = examination_for(task, setting, prompts=goal.held_out, steps=goal.steps, seed=seed)
    examination.expect(prompts=goal.expect_prompts, verifier=goal.expect_verifier)
    training = training_on(task, setting, seed=seed)
    for name, value in {**training.policy.model.ran(), **examination.identity()}.items():
        repeat.record(name, value)
    if problems := training.loop.check():
        repeat.invalidate("; ".join(problems))
        return None
    training.loop.warm_up()
    examination.warm_up(training.policy.model)
    try:
        return learn_until(
            goal.target,
            training.loop,
            lambda: examination.evaluate(training.policy.model),
            steps=goal.steps,
            every=goal.evaluate_every,
        )
    except MismatchError as error:
        repeat.invalidate(str(error))
        return None


def _record(repeat: Repeat, curve: Curve, target: float) -> None:
    last, reached = curve.last, curve.last.accuracy >= target
    repeat.record("curve", curve.columns())
    repeat.record("reached", reached)
    if reached:
        repeat._taken_by(WALL_CLOCK).record("t_to_target", last.seconds)  # noqa: SLF001
        repeat.record("tokens_to_target", last.tokens_generated)
        repeat.record("steps_to_target", last.step)
    else:
        repeat.censor("t_to_target", at_least=last.seconds)
        repeat.censor("tokens_to_target", at_least=last.tokens_generated)
        repeat.censor("steps_to_target", at_least=last.step)
