"""The built-in ``grpo_step``: steps of group-relative policy optimisation, every stage of them for real.

By default the policy is untrained, of Qwen3's shape with its true vocabulary, and its completions are
rewarded by running them as programs, each in a sandbox with a deadline.
"""

from __future__ import annotations

from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pytest_prereg.measure.experiment import experiment
from pytest_prereg.measure.instruments.wall_clock import NAME as WALL_CLOCK
from pytest_prereg.measure.workloads.language.recording import (
    GROWTH,
    PEAK,
    memory_instrument,
    one_or_all,
    record_growth,
)
from pytest_prereg.measure.workloads.learning.grpo_setting import PROGRAMS, GrpoSetting

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_prereg.measure.repeat import Repeat
    from pytest_prereg.measure.workloads.learning.checkpoint import Measured
    from pytest_prereg.measure.workloads.learning.loop import GrpoLoop
    from pytest_prereg.measure.workloads.learning.policy_state import Policy
    from pytest_prereg.measure.workloads.learning.reward_stage import Grader
    from pytest_prereg.measure.workloads.learning.rollout_stage import Prompts

WORKLOAD_VERSION = "3"

_CLOCKED = ("t_gen", "t_sample", "t_reward", "t_score", "t_train", "t_sync", "reward_work", "reward_longest")


@experiment(
    metrics={
        "t_gen": "s",
        "t_sample": "s",
        "t_reward": "s",
        "t_score": "s",
        "t_train": "s",
        "t_sync": "s",
        "reward_work": "s",
        "reward_longest": "s",
        "tokens": {"unit": "token", "exact": True},
        "tokens_prompt": {"unit": "token", "exact": True},
        "tokens_generated": {"unit": "token", "exact": True},
        "tokens_tool": {"unit": "token", "exact": True},
        "tokens_scored": {"unit": "token", "exact": True},
        "tokens_discarded": {"unit": "token", "exact": True},
        "completions": {"unit": "1", "exact": True},
        "passed": {"unit": "1", "exact": True},
        "timed_out": {"unit": "1", "exact": True},
        "ended": {"unit": "1", "exact": True},
        "capped": {"unit": "1", "exact": True},
        "truncated": {"unit": "1", "exact": True},
        "groups": {"unit": "1", "exact": True},
        "zero_variance_groups": {"unit": "1", "exact": True},
        "reward_mean": "1",
        "mismatch_mean": "1",
        "mismatch_largest": "1",
        "kl": "1",
        "updates": {"unit": "1", "exact": True},
        "clipped": "1",
        "ratio_largest": "1",
        "policy_version": {"unit": "1", "exact": True},
        "peak_memory": "byte",
        "memory_growth": "byte",
    },
    # Every torch optimiser imports the second, which takes as long as the first.
    preload=["torch", "torch._dynamo", "transformers.models.qwen3.modeling_qwen3"],
)
def grpo_step(
    repeat: Repeat,
    *,
    prompts: int = 2,
    group: int = 8,
    prompt_tokens: int = 16,
    new_tokens: int = 32,
    deadline: float = 1.0,
    hang_one_in: int = 1_000_000_000,
    isolation: str = "processes",
    model: str = "tiny-qwen3",
    task: str = PROGRAMS,
    steps: int = 1,
    overlap: bool = False,
    generate_at_once: int = 0,
    mini_batches: int = 1,
    epochs: int = 1,
    micro_batch: int = 0,
    loss: str = "token-mean",
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    learning_rate: float = 1e-4,
    temperature: float = 1.0,
    turns: int = 1,
    tool_tokens: int = 0,
    zero_variance: str = "keep",
    truncated: str = "keep",
    log_probs: str = "fused",
    dtype: str = "float32",
    rollout_dtype: str = "",
    device: str = "auto",
    attempts: int = 1,
    checkpoint_every: int = 1,
    expect_model: str = "",
) -> None:
    """Train ``steps`` times: sample ``prompts`` x ``group`` completions, reward each, update the policy.

    **Stages.** ``generate_at_once`` prompts' groups are generated together, or all if 0. With ``overlap`` the
    rewards of those begin at once, while the next are generated; draws don't depend on it. ``t_gen`` is the
    generation, ``t_sample`` in it the draws from the vocabulary, one sample per position. ``t_reward`` is for
    how long the accelerator waited for rewards after the last token; ``reward_work`` is what they took
    one by one, added up, and ``reward_longest`` the longest. ``t_train`` are the ``updates``:
    ``mini_batches`` x ``epochs`` of them. If that is more than one, the old log-probabilities are scored
    before the first, in a pass of its own (``t_score``); else they are those of the only update's own
    pass, and only what is dropped is scored. ``t_sync`` is the refresh of the weights that sample, where
    these are a copy in another ``rollout_dtype``.

    **Rewards.** In task ``"programs"`` a completion is run as a Python program, in a sandbox of its own; one
    that takes longer than ``deadline`` seconds is cut off, with a reward of 0 as if it had failed. About one
    in ``hang_one_in`` never ends. With ``isolation = "processes"`` programs are held to that and kept from
    little else, which does for these; ``"namespaces"`` takes bubblewrap. In other tasks a function pays.
    ``passed`` counts rewards above 0. A reward that can't be had is tried ``attempts`` times, and then makes
    the repeat invalid.

    **Tokens.** ``tokens`` bore loss; ``tokens_discarded`` were generated and did not, because all rewards of
    their group are equal and ``zero_variance = "drop"``, or because the model's context was full and
    ``truncated = "drop"``. ``tokens_prompt`` are counted for every completion, ``tokens_tool`` are those that
    a tool put between ``turns``, ``tokens_scored`` those of the scoring pass.

    **What is apart.** ``mismatch_mean`` and ``mismatch_largest`` are of the absolute differences of old
    log-probabilities from those recorded while sampling, of all that was sampled, dropped or not; ``kl``
    estimates the divergence. Where they are more than rounding explains, though the weights are the same, the
    repeat is invalid. ``clipped`` is the share of tokens whose gradient the clip took, ``ratio_largest`` the
    largest ratio. Where the path to log-probabilities is not what ``log_probs`` says, or is wrong, the repeat
    is invalid and nothing is timed.

    The diagnostic ``weights_moved`` is the share of weights that a step moved: in bfloat16 small ones are
    lost to rounding.

    Every metric has one sample per step, ``t_sample`` one per draw; ``t_train``, ``clipped`` and
    ``ratio_largest`` have one per step with an update. A repeat in which everything was dropped is invalid.
    ``policy_version`` counts the updates up to the end of the step, and ``memory_growth`` is how far
    ``peak_memory`` was above the step's beginning. With ``steps`` above 1 the whole state is kept after every
    ``checkpoint_every``, never if 0, and every reward once it is paid. A lost attempt is gone on from, bit
    for bit, on the same device and with as many threads; no stage waits for the disk.

    The diagnostic ``attempts_began_after`` tells how many steps were done when each attempt began: what a
    kill cut short within a stage was done again, and only the last try of that is timed.

    Raises:
        ValueError: Some parameters can't be run, or the checkpoint is damaged or another run's; the message
            says what to write or to do.
        SandboxUnavailableError: This machine can't isolate programs so; the message says what is missing.
    """
    setting = GrpoSetting(
        prompts=prompts,
        group=group,
        prompt_tokens=prompt_tokens,
        new_tokens=new_tokens,
        deadline=deadline,
        hang_one_in=hang_one_in,
        isolation=isolation,
        model=model,
        task=task,
        steps=steps,
        overlap=overlap,
        generate_at_once=generate_at_once,
        mini_batches=mini_batches,
        epochs=epochs,
        micro_batch=micro_batch,
        loss=loss,
        clip_low=clip_low,
        clip_high=clip_high,
        learning_rate=learning_rate,
        temperature=temperature,
        turns=turns,
        tool_tokens=tool_tokens,
        zero_variance=zero_variance,
        truncated=truncated,
        log_probs=log_probs,
        dtype=dtype,
        rollout_dtype=rollout_dtype,
        device=device,
        attempts=attempts,
        checkpoint_every=checkpoint_every,
        expect_model=expect_model,
    )
    policy = _policy(setting, seed=repeat.seed)
    learnt = _task(setting, vocabulary=policy.model.vocabulary, seed=repeat.seed)
    with closing(learnt.grader), closing(_loop(repeat, setting, policy, learnt)) as loop:
        _train(repeat, loop, memory_instrument(on_cuda=policy.model.on_cuda), steps)


def _train(repeat: Repeat, loop: GrpoLoop, memory: str, steps: int) -> None:
    from pytest_prereg.measure.workloads.learning.learning_stage import MismatchError  # noqa: PLC0415
    from pytest_prereg.measure.workloads.learning.reward_ledger import RewardUnavailableError  # noqa: PLC0415

    if problems := loop.check():
        repeat.invalidate("; ".join(problems))
        return
    _record_earlier(repeat, memory, loop)
    loop.warm_up()
    try:
        while loop.progress.step < steps:
            loop.step(repeat._window(PEAK, memory, reached=loop.reached))  # noqa: SLF001
    except (RewardUnavailableError, MismatchError) as error:
        repeat.invalidate(str(error))
    _record(repeat, memory, loop.progress.measured)
    _tell(repeat, loop)


def _policy(setting: GrpoSetting, *, seed: int) -> Policy:
    import torch  # noqa: PLC0415  # an extra

    from pytest_prereg.measure.workloads.language.causal_lm import load  # noqa: PLC0415
    from pytest_prereg.measure.workloads.learning.policy_state import Policy  # noqa: PLC0415

    torch.manual_seed(seed % 2**63)  # nothing here draws from it, but a model's own code may
    model = load(
        setting.model, seed=seed, dtype=setting.dtype, device=setting.device, expect=setting.expect_model
    )
    setting.check_context(model.context)
    return Policy(model, seed=seed, learning_rate=setting.learning_rate, rollout_dtype=setting.rollout_dtype)


def _loop(repeat: Repeat, setting: GrpoSetting, policy: Policy, task: _Task) -> GrpoLoop:
    from pytest_prereg.measure.workloads.learning.checkpoint import Checkpoint  # noqa: PLC0415
    from pytest_prereg.measure.workloads.learning.loop import GrpoLoop  # noqa: PLC0415
    from pytest_prereg.measure.workloads.learning.surroundings import surroundings  # noqa: PLC0415

    for name, value in {**policy.model.ran(), "verifier": task.verifier, **task.told}.items():
        repeat.record(name, value)
    checkpoint = None
    if setting.steps > 1 and setting.checkpoint_every:
        identity = {
            **setting.identity(),
            **policy.identity(),
            **surroundings(__name__),
            "seed": repeat.seed,
            "verifier": task.verifier,
        }
        checkpoint = Checkpoint(repeat.checkpoint(), identity)
    return GrpoLoop(setting, policy, prompts=task.prompts, grader=task.grader, checkpoint=checkpoint)


class _Task(NamedTuple):
    """What is learnt."""

    prompts: Prompts
    """In the order of this repeat."""
    grader: Grader
    verifier: str
    """A digest of how it grades."""
    told: Mapping[str, object] = {}
    """What is kept of it beside the numbers."""


def _task(setting: GrpoSetting, *, vocabulary: int, seed: int) -> _Task:
    from pytest_prereg.measure.workloads.learning.grader_source import verifier_digest  # noqa: PLC0415
    from pytest_prereg.measure.workloads.learning.reward_stage import TaskGrader  # noqa: PLC0415
    from pytest_prereg.measure.workloads.learning.tasks import check_vocabulary, task_named  # noqa: PLC0415

    if setting.task == PROGRAMS:
        return _programs(setting, vocabulary=vocabulary, seed=seed)
    task = task_named(setting.task)
    check_vocabulary(task, vocabulary)
    prompts = partial(task.prompts, length=setting.prompt_tokens, order=seed)
    return _Task(prompts, TaskGrader(task), verifier_digest(task))


def _programs(setting: GrpoSetting, *, vocabulary: int, seed: int) -> _Task:
    from pytest_prereg.measure.workloads.learning.grader_source import source_digest  # noqa: PLC0415
    from pytest_prereg.measure.workloads.learning.programs import Programs, random_prompts  # noqa: PLC0415
    from pytest_prereg.measure.workloads.learning.reward_stage import graded_at_once  # noqa: PLC0415
    from pytest_prereg.measure.workloads.sandbox.grading import verifier_digest  # noqa: PLC0415

    grader = Programs(
        deadline=setting.deadline,
        workers=graded_at_once(),
        isolation=setting.isolation,
        hang_one_in=setting.hang_one_in,
    )
    prompts = partial(random_prompts, length=setting.prompt_tokens, vocabulary=vocabulary, order=seed)
    return _Task(prompts, grader, f"{source_digest(grader.grade)}, {verifier_digest()}", grader.told())


def _record_earlier(repeat: Repeat, memory: str, loop: GrpoLoop) -> None:
    """Record the peaks that earlier attempts at this repeat read; those of this one are appended."""
    peaks = [each.samples[PEAK][0] for each in loop.measured_earlier if PEAK in each.samples]
    if peaks:
        repeat._taken_by(memory).record(PEAK, peaks)  # noqa: SLF001


def _record(repeat: Repeat, memory: str, measured: Sequence[Measured]) -> None:
    clock = repeat._taken_by(WALL_CLOCK)  # noqa: SLF001
    for name in sorted({name for each in measured for name in each.samples} - {PEAK, GROWTH}):
        taker = clock if name in _CLOCKED else repeat
        taker.record(name, one_or_all(_samples(measured, name)))
    if measured:
        record_growth(repeat, memory, _samples(measured, GROWTH))
    if measured and not any(each.notes["updates"] for each in measured):
        repeat.invalidate("everything that was sampled was dropped, so no update was made, and none timed")


def _samples(measured: Sequence[Measured], name: str) -> list[float]:
    return [value for each in measured for value in each.samples.get(name, ())]


def _tell(repeat: Repeat, loop: GrpoLoop) -> None:
    """Keep what explains the numbers and is not judged."""
    state = loop.ledger.state()
    repeat.record("each_update", [each.notes["updates"] for each in loop.progress.measured])
    repeat.record("weights_moved", [each.notes["weights_moved"] for each in loop.progress.measured])
    repeat.record("trajectories", loop.progress.trajectories)
    repeat.record("reward_faults", [msgspec.to_builtins(each) for each in state.faults])
    repeat.record("late_rewards", state.late)
    repeat.record("attempts_began_after", loop.began)
    repeat.record("not_kept", list(loop.not_kept))
