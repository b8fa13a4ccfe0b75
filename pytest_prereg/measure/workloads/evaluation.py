"""The built-in ``evaluation``: how often a model is right on held-out prompts, at a fixed budget."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pytest_prereg.measure.experiment import experiment
from pytest_prereg.measure.workloads.language.recording import memory_read
from pytest_prereg.measure.workloads.language.settings import count_problem
from pytest_prereg.measure.workloads.learning.evaluation_setting import EvaluationSetting, refuse_all
from pytest_prereg.measure.workloads.learning.grpo_setting import GrpoSetting

if TYPE_CHECKING:
    from pytest_prereg.measure.repeat import Repeat
    from pytest_prereg.measure.workloads.language.causal_lm import CausalLM
    from pytest_prereg.measure.workloads.learning.evaluating import Evaluation
    from pytest_prereg.measure.workloads.learning.tasks import Task

WORKLOAD_VERSION = "1"


@experiment(
    metrics={
        "attempts": {"unit": "1", "exact": True},
        "successes": {"unit": "1", "exact": True},
        "accuracy": "1",
        "reward_mean": "1",
        "tokens_generated": {"unit": "token", "exact": True},
        "ended": {"unit": "1", "exact": True},
        "capped": {"unit": "1", "exact": True},
        "truncated": {"unit": "1", "exact": True},
        "t_eval": "s",
        "peak_memory": "byte",
        "memory_growth": "byte",
    },
    preload=["torch", "torch._dynamo", "transformers.models.qwen3.modeling_qwen3"],
)
def evaluation(
    repeat: Repeat,
    *,
    model: str = "toy-qwen3",
    task: str = "toy",
    prompts: int = 32,
    samples: int = 4,
    batch: int = 0,
    prompt_tokens: int = 8,
    new_tokens: int = 8,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    dtype: str = "float32",
    device: str = "auto",
    steps: int = 0,
    train_prompts: int = 4,
    group: int = 8,
    learning_rate: float = 3e-3,
    expect_prompts: str = "",
    expect_verifier: str = "",
    expect_model: str = "",
) -> None:
    """Answer ``prompts`` held-out prompts ``samples`` times each, after ``steps`` GRPO steps of training.

    ``batch`` answers are drawn at a time, or all if 0. The likeliest are the same in any batches; other draws
    are not, though as good: give arms that are compared the same.

    A step trains on ``group`` answers to each of ``train_prompts`` others, of as many tokens, drawn at
    temperature 1. What is held out is the same in every repeat, arm and study; the model, if it is an
    untrained one, the order of what it trains on and all draws are of the repeat's seed.

    An attempt is a success if the evaluation's own grader finds it right, which training never asks;
    ``reward_mean`` is by the grader of training. ``t_eval`` is generation and grading, and ``peak_memory``
    is of both, ``memory_growth`` how far above their beginning. The digests of the prompts and of what grades
    are kept with each repeat (``prompts_digest``, ``verifier_digest``); a repeat in which they don't begin
    with ``expect_prompts`` or ``expect_verifier`` fails.

    Attempts are no repeats: those of one repeat share its weights. What a success costs in tokens is a ratio
    of sums, ``tokens_generated`` to ``successes``: of one repeat in which nothing succeeds it has no value.

    Raises:
        ValueError: Parameters can't be run; the message says of each what to write.
    """
    training: dict[str, Any] = {
        "model": model,
        "prompts": train_prompts if _is_count(train_prompts) else 1,
        "group": group,
        "prompt_tokens": prompt_tokens,
        "new_tokens": new_tokens,
        "steps": steps if _is_count(steps) else 1,
        "learning_rate": learning_rate,
        "dtype": dtype,
        "device": device,
        "expect_model": expect_model,
    }
    asked: dict[str, Any] = {
        "task": task,
        "prompts": prompts,
        "samples": samples,
        "batch": batch,
        "steps": steps,
        "train_prompts": train_prompts,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "expect_prompts": expect_prompts,
        "expect_verifier": expect_verifier,
    }
    refuse_all(partial(EvaluationSetting, **asked), partial(GrpoSetting, **training))
    _evaluate(repeat, EvaluationSetting(**asked), GrpoSetting(**training))


def _evaluate(repeat: Repeat, asked: EvaluationSetting, setting: GrpoSetting) -> None:
    from pytest_prereg.measure.workloads.language.completions import Sampling  # noqa: PLC0415
    from pytest_prereg.measure.workloads.learning.task_training import (  # noqa: PLC0415
        examination_for,
        model_for,
    )
    from pytest_prereg.measure.workloads.learning.tasks import task_named  # noqa: PLC0415

    task, seed = task_named(asked.task), repeat.seed
    examination = examination_for(
        task,
        setting,
        prompts=asked.prompts,
        steps=asked.steps,
        seed=seed,
        samples=asked.samples,
        sampling=Sampling(temperature=asked.temperature, top_k=asked.top_k, top_p=asked.top_p),
        batch=asked.batch,
    )
    examination.expect(prompts=asked.expect_prompts, verifier=asked.expect_verifier)
    trained = _trained(repeat, task, setting, asked.steps) if asked.steps else None
    if asked.steps and trained is None:
        return
    policy = trained or model_for(task, setting, seed=seed)
    for name, value in {**policy.ran(), **examination.identity()}.items():
        repeat.record(name, value)
    examination.warm_up(policy)
    with memory_read(repeat, on_cuda=policy.on_cuda), repeat.timer("t_eval"):
        found = examination.evaluate(policy)
    _record(repeat, found)


def _trained(repeat: Repeat, task: Task, setting: GrpoSetting, steps: int) -> CausalLM | None:
    """Return what so many steps made of the model; none if something was wrong with them."""
    from pytest_prereg.measure.workloads.learning.learning_stage import MismatchError  # noqa: PLC0415
    from pytest_prereg.measure.workloads.learning.task_training import training_on  # noqa: PLC0415

    training = training_on(task, setting, seed=repeat.seed)
    if problems := training.loop.check():
        repeat.invalidate("; ".join(problems))
        return None
    try:
        for _ in range(steps):
            training.loop.step()
    except MismatchError as error:
        repeat.invalidate(str(error))
        return None
    return training.policy.model


def _is_count(value: object) -> bool:
    """Whether training can be asked for so many; what can't is told of under the name that it has here."""
    return count_problem("", value) is None


def _record(repeat: Repeat, found: Evaluation) -> None:
    repeat.record("attempts", found.attempts)
    repeat.record("successes", found.successes)
    repeat.record("accuracy", found.accuracy)
    repeat.record("reward_mean", found.reward_mean)
    repeat.record("tokens_generated", found.tokens_generated)
    for stop in ("ended", "capped", "truncated"):
        repeat.record(stop, sum(each == stop for each in found.stops))
    repeat.record("successes_by_prompt", found.successes_by_prompt)
