"""The built-in ``training``: policy-gradient updates of a language model on completions that are at hand.

What a GRPO step does after its rewards are in, without what comes before, so that the time and memory of
training can be predicted on their own.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pytest_prereg.measure.experiment import experiment
from pytest_prereg.measure.instruments.wall_clock import NAME as WALL_CLOCK
from pytest_prereg.measure.workloads.learning.training_setting import ALIKE, TrainingSetting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_prereg.measure.repeat import Repeat
    from pytest_prereg.measure.workloads.language.causal_lm import CausalLM
    from pytest_prereg.measure.workloads.language.scoring import Path
    from pytest_prereg.measure.workloads.learning.updates import MiniBatch, Update

WORKLOAD_VERSION = "1"

_CHECKED = 64
"""Tokens whose log-probabilities are held against a reference."""


@experiment(
    metrics={
        "t_train": "s",
        "t_forward": "s",
        "t_backward": "s",
        "t_optimiser": "s",
        "throughput": "token/s",
        "tokens_prompt": {"unit": "token", "exact": True},
        "tokens_trained": {"unit": "token", "exact": True},
        "tokens_scored": {"unit": "token", "exact": True},
        "loss": "1",
        "gradient_norm": "1",
        "log_prob_error": "1",
        "peak_memory": "byte",
    },
    preload=["torch", "torch._dynamo", "transformers.models.qwen3.modeling_qwen3"],
)
def training(
    repeat: Repeat,
    *,
    model: str = "tiny-qwen3",
    sequences: int = 16,
    micro_batch: int = 0,
    prompt_tokens: int = 16,
    new_tokens: int = 32,
    lengths: str = ALIKE,
    updates: int = 1,
    loss: str = "token-mean",
    log_probs: str = "fused",
    learning_rate: float = 1e-6,
    dtype: str = "float32",
    device: str = "auto",
    compiled: bool = False,
    checkpointing: bool = False,
) -> None:
    """Update a model ``updates`` times on the same ``sequences`` random completions, after one to warm up.

    The loss is that of a GRPO step: clipped, over the tokens of the completions alone. With ``lengths =
    "spread"`` completions are of 1 to ``new_tokens`` tokens instead of all as long. ``micro_batch`` sequences
    are worked on at a time, or all if 0. ``log_probs = "naive"`` holds the logits of all their tokens, and
    ``"fused"`` never does. With ``checkpointing`` layers are computed again in the backward pass. Gradients
    and AdamW's moments are of the same ``dtype`` as the weights; in bfloat16 a small step is lost to
    rounding, and the diagnostic ``weights_moved`` says of how many weights it was not.

    ``t_train`` has one sample per update, ``t_forward`` and ``t_backward`` one per micro-batch, and
    ``t_optimiser`` one per update: the norm of the gradient, and the step. Together they are ``t_train`` but
    for clearing the old gradients, cutting the mini-batch, and adding up what is reported. The accelerator
    is idle at each boundary. ``throughput`` is ``tokens_trained`` / all of ``t_train``.

    ``tokens_trained`` and ``tokens_prompt`` are those of all updates. ``tokens_scored`` are those whose old
    log-probabilities were computed beforehand, in a pass that isn't timed. ``loss`` and ``gradient_norm``
    have one sample per update. ``log_prob_error`` is how far the log-probabilities of a few tokens are from
    a reference in float64; where that, or what the path holds in memory, shows that it is not what
    ``log_probs`` says, the repeat is invalid and nothing is timed. ``peak_memory`` is over all updates,
    weights and moments included.

    Raises:
        ValueError: Some parameters can't be run; the message says of each what to write.
    """
    setting = TrainingSetting(
        model=model,
        sequences=sequences,
        micro_batch=micro_batch,
        prompt_tokens=prompt_tokens,
        new_tokens=new_tokens,
        lengths=lengths,
        updates=updates,
        loss=loss,
        log_probs=log_probs,
        learning_rate=learning_rate,
        dtype=dtype,
        device=device,
        compiled=compiled,
        checkpointing=checkpointing,
    )
    from pytest_prereg.measure.workloads.language.paths import path_named  # noqa: PLC0415  # torch is an extra
    from pytest_prereg.measure.workloads.learning.fixed_batches import drawn_batch  # noqa: PLC0415

    policy, path = _policy(setting, repeat.seed), path_named(log_probs)
    repeat.record("model", policy.origin)
    batch = drawn_batch(policy, setting, seed=repeat.seed)
    if _is_what_it_says(repeat, setting, policy, batch, path):
        _record(repeat, setting, _train(repeat, setting, policy, batch, path))


def _policy(setting: TrainingSetting, seed: int) -> CausalLM:
    from pytest_prereg.measure.workloads.language.causal_lm import load  # noqa: PLC0415
    from pytest_prereg.measure.workloads.learning.fixed_batches import recompute_layers  # noqa: PLC0415

    policy = load(setting.model, seed=seed, dtype=setting.dtype, device=setting.device)
    setting.check_context(policy.context)
    if setting.checkpointing:
        recompute_layers(policy.network)
    return policy


def _is_what_it_says(
    repeat: Repeat, setting: TrainingSetting, policy: CausalLM, batch: MiniBatch, path: Path
) -> bool:
    """Hold the path against a reference on the states of a few tokens; the repeat is invalid if it is off."""
    from pytest_prereg.measure.workloads.language.reference_check import check_path  # noqa: PLC0415
    from pytest_prereg.measure.workloads.learning.fixed_batches import some_states  # noqa: PLC0415

    states, chosen = some_states(policy, batch, _CHECKED)
    check = check_path(path, states, policy.head, chosen, temperature=1.0)
    repeat.record("log_prob_error", check.values)
    repeat.record("path_gradient_errors", [check.states_gradient, check.head_gradient])
    problems = check.problems(setting.log_probs)
    for problem in problems:
        repeat.invalidate(problem)
    return not problems


def _train(
    repeat: Repeat, setting: TrainingSetting, policy: CausalLM, batch: MiniBatch, path: Path
) -> list[Update]:
    from pytest_prereg.measure.workloads.language import compiling  # noqa: PLC0415
    from pytest_prereg.measure.workloads.learning import fixed_batches, updates  # noqa: PLC0415

    if setting.compiled:
        compiling.compile_anew()
        policy.decoder.compile()
    size = setting.micro_batch
    optimiser = updates.adamw(policy.network.parameters(), learning_rate=setting.learning_rate)
    old = updates.old_log_probs(policy, batch.ids, batch.kinds, micro_batch=size, path=path)
    batch = replace(batch, old=old)
    update = partial(updates.update, policy, optimiser, batch, micro_batch=size, path=path)
    graphs = compiling.compilations()
    fixed_batches.warm_up(optimiser, update)
    if setting.compiled:
        compiling.check_compiled(graphs)
    graphs = compiling.compilations()
    before = fixed_batches.some_weights(policy.network)
    memory = "cuda-memory" if policy.device.type == "cuda" else "process-memory"
    done = []
    with repeat.instrument(memory).window("peak_memory"):
        for _ in range(setting.updates):
            with repeat.timer("t_train"):
                done.append(update(stage=lambda name: repeat.timer(f"t_{name}")))
    if (problem := compiling.late(graphs)) is not None:
        repeat.invalidate(problem)
    repeat.record("weights_moved", fixed_batches.share_moved(before, policy.network))
    return done


def _record(repeat: Repeat, setting: TrainingSetting, done: Sequence[Update]) -> None:
    trained = sum(each.tokens for each in done)
    repeat.record("tokens_prompt", setting.sequences * setting.prompt_tokens * len(done))
    repeat.record("tokens_trained", trained)
    repeat.record("tokens_scored", done[0].tokens)  # all of the batch, each once
    repeat.samples("loss", [each.loss for each in done])
    repeat.samples("gradient_norm", [each.gradient_norm for each in done])
    repeat.record("denominator", done[0].denominator_is)
    repeat.record("clipped", [each.clipped for each in done])
    seconds = repeat.readings().values["t_train"]
    total = math.fsum(seconds) if isinstance(seconds, list) else seconds
    repeat._taken_by(WALL_CLOCK).record("throughput", trained / total)  # noqa: SLF001
