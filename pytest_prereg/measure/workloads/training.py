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
from pytest_prereg.measure.workloads.language.recording import memory_read, one_or_all
from pytest_prereg.measure.workloads.learning.training_setting import ALIKE, TrainingSetting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
        "memory_growth": "byte",
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
    expect_model: str = "",
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
    have one sample per update; with one sample a metric is a number. ``peak_memory`` is over all updates,
    weights and moments included, and ``memory_growth`` how far above their beginning.

    ``log_prob_error`` is how far the path's log-probabilities of a few tokens are from a reference in
    float64. The update that warms up is held against what ``log_probs`` says, too: by what the path held in
    it, and by the log-probabilities of some sequences, which the model reads again one by one and without
    padding; how far they are apart is the diagnostic ``error_beside_sequences_alone``. Where one of these is
    wrong, the repeat is invalid and nothing is timed.

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
        expect_model=expect_model,
    )
    from pytest_prereg.measure.workloads.language.paths import path_named  # noqa: PLC0415  # torch is an extra
    from pytest_prereg.measure.workloads.learning.fixed_batches import drawn_batch  # noqa: PLC0415

    policy, path = _policy(setting, repeat.seed), path_named(log_probs)
    for name, value in policy.ran().items():
        repeat.record(name, value)
    batch = drawn_batch(policy, setting, seed=repeat.seed)
    if not _is_what_it_says(repeat, setting, policy, batch, path):
        return
    if done := _train(repeat, setting, policy, batch, path):
        _record(repeat, setting, done)


def _policy(setting: TrainingSetting, seed: int) -> CausalLM:
    from pytest_prereg.measure.workloads.language.causal_lm import load  # noqa: PLC0415
    from pytest_prereg.measure.workloads.learning.fixed_batches import recompute_layers  # noqa: PLC0415

    policy = load(
        setting.model, seed=seed, dtype=setting.dtype, device=setting.device, expect=setting.expect_model
    )
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
    return _is_sound(repeat, check.problems(setting.log_probs))


def _is_sound(repeat: Repeat, problems: Sequence[str]) -> bool:
    for problem in problems:
        repeat.invalidate(problem)
    return not problems


def _train(
    repeat: Repeat, setting: TrainingSetting, policy: CausalLM, batch: MiniBatch, path: Path
) -> list[Update]:
    """Warm up, and return the updates that were timed; none if the warm-up shows what is wrong with them."""
    from pytest_prereg.measure.workloads.language import compiling, read_alone, watched_path  # noqa: PLC0415
    from pytest_prereg.measure.workloads.learning import fixed_batches, updates  # noqa: PLC0415

    # Before anything is compiled, which would be for its shapes as well.
    alone = read_alone.read_alone(policy, batch.ids, batch.kinds)
    if setting.compiled:
        compiling.compile_anew()
        policy.decoder.compile()
    size = setting.micro_batch
    optimiser = updates.adamw(policy.network.parameters(), learning_rate=setting.learning_rate)
    old = updates.old_log_probs(policy, batch.ids, batch.kinds, micro_batch=size, path=path)
    update = partial(updates.update, policy, optimiser, replace(batch, old=old), micro_batch=size)
    watched = watched_path.WatchedPath(path)
    graphs = compiling.compilations()
    warmed = fixed_batches.warm_up(optimiser, partial(update, path=watched))
    if setting.compiled:
        compiling.check_compiled(graphs)
    repeat.record("error_beside_sequences_alone", alone.error(warmed.log_probs))
    if not _is_sound(repeat, [*watched.problems(setting.log_probs), *alone.problems(warmed.log_probs)]):
        return []
    return _timed(repeat, setting, policy, partial(update, path=path))


def _timed(
    repeat: Repeat, setting: TrainingSetting, policy: CausalLM, update: Callable[..., Update]
) -> list[Update]:
    from pytest_prereg.measure.workloads.language import compiling  # noqa: PLC0415
    from pytest_prereg.measure.workloads.learning import fixed_batches  # noqa: PLC0415

    graphs = compiling.compilations()
    before = fixed_batches.some_weights(policy.network)
    done = []
    with memory_read(repeat, on_cuda=policy.on_cuda):
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
    repeat.record("loss", one_or_all([each.loss for each in done]))
    repeat.record("gradient_norm", one_or_all([each.gradient_norm for each in done]))
    repeat.record("denominator", done[0].denominator_is)
    repeat.record("clipped", [each.clipped for each in done])
    seconds = repeat.readings().values["t_train"]
    total = math.fsum(seconds) if isinstance(seconds, list) else seconds
    repeat._taken_by(WALL_CLOCK).record("throughput", trained / total)  # noqa: SLF001
