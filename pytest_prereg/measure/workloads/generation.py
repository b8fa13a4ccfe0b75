"""The built-in ``generation``: completions sampled from a language model, with every token accounted for."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pytest_prereg.measure.experiment import experiment
from pytest_prereg.measure.instruments.wall_clock import NAME as WALL_CLOCK
from pytest_prereg.measure.workloads.language.generation_setting import GenerationSetting
from pytest_prereg.measure.workloads.language.recording import memory_read, one_or_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_prereg.measure.repeat import Repeat
    from pytest_prereg.measure.workloads.language.completions import Completions
    from pytest_prereg.measure.workloads.language.sampled_batches import Sampler

WORKLOAD_VERSION = "1"


@experiment(
    metrics={
        "t_gen": "s",
        "t_first_token": "s",
        "t_next_token": "s",
        "t_sample": "s",
        "throughput": "token/s",
        "tokens_prompt": {"unit": "token", "exact": True},
        "tokens_generated": {"unit": "token", "exact": True},
        "tokens_tool": {"unit": "token", "exact": True},
        "ended": {"unit": "1", "exact": True},
        "capped": {"unit": "1", "exact": True},
        "truncated": {"unit": "1", "exact": True},
        "peak_memory": "byte",
        "memory_growth": "byte",
    },
    preload=["torch", "torch._dynamo", "transformers.models.qwen3.modeling_qwen3"],
)
def generation(
    repeat: Repeat,
    *,
    model: str = "tiny-qwen3",
    prompts: int = 2,
    group: int = 8,
    batch: int = 0,
    prompt_tokens: int = 16,
    new_tokens: int = 32,
    turns: int = 1,
    tool_tokens: int = 0,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    ignore_ends: bool = False,
    dtype: str = "float32",
    device: str = "auto",
    compiled: bool = False,
    expect_model: str = "",
) -> None:
    """Sample ``group`` completions of each of ``prompts`` random prompts, ``batch`` at a time, or all if 0.

    A completion ends with a token that the model ends with, unless ``ignore_ends``, or after ``new_tokens``.
    With several ``turns`` it may have so many in each, and reads ``tool_tokens`` random tokens between two;
    the last turn's end is its own. Untrained models, which ``tiny-qwen3`` is, draw weights from the seed.
    With ``compiled`` the network's step of one token is compiled; drawing is not, and is timed as ever.
    What is done for the first time, compilation included, is done once before anything is measured; a repeat
    in which something was compiled later is invalid.

    ``t_gen`` is over all batches, one after another. ``t_first_token`` has one sample per batch and turn,
    from when its prompts or the tool's answers are handed to the model; ``t_next_token`` one for each later
    position of a turn; ``t_sample`` one for every position: the draw alone, cut-offs included, of the whole
    batch, whoever has ended. Times are of whole batches, with tokens on the host and the accelerator idle at
    each position and around each draw. ``throughput`` is ``tokens_generated / t_gen``.

    ``tokens_prompt`` counts prompts once per sequence, ``tokens_generated`` what was drawn for a sequence
    that had not ended, its end token included, and ``tokens_tool`` what was read of a tool. ``ended``,
    ``capped`` (it had all its tokens) and ``truncated`` (the model's context was full) count sequences.
    ``peak_memory`` is over ``t_gen``, weights included, and ``memory_growth`` how far above its beginning.
    A metric with one sample is a number: a bare name is then a quantity.

    Raises:
        ValueError: Some parameters can't be run; the message says of each what to write.
    """
    setting = GenerationSetting(
        model=model,
        prompts=prompts,
        group=group,
        batch=batch,
        prompt_tokens=prompt_tokens,
        new_tokens=new_tokens,
        turns=turns,
        tool_tokens=tool_tokens,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        ignore_ends=ignore_ends,
        dtype=dtype,
        device=device,
        compiled=compiled,
        expect_model=expect_model,
    )
    from pytest_prereg.measure.workloads.language.causal_lm import load  # noqa: PLC0415  # torch is an extra
    from pytest_prereg.measure.workloads.language.sampled_batches import Sampler  # noqa: PLC0415

    loaded = load(model, seed=repeat.seed, dtype=dtype, device=device, expect=expect_model)
    setting.check_context(loaded.context)
    for name, value in loaded.ran().items():
        repeat.record(name, value)
    sampler = Sampler(loaded, setting, seed=repeat.seed)
    sampler.warm_up()
    _record(repeat, _measured(repeat, sampler, on_cuda=loaded.on_cuda))


def _measured(repeat: Repeat, sampler: Sampler, *, on_cuda: bool) -> list[Completions]:
    compiled = sampler.compilations()
    with memory_read(repeat, on_cuda=on_cuda), repeat.timer("t_gen"):
        sampled = sampler.sample(lambda: repeat.timer("t_sample"))
    if (more := sampler.compilations() - compiled) > 0:
        repeat.invalidate(f"torch compiled {more} graphs while generation was timed")
    return sampled


def _record(repeat: Repeat, sampled: Sequence[Completions]) -> None:
    from pytest_prereg.measure.workloads.language.completions import Kind, Stop  # noqa: PLC0415

    clock = repeat._taken_by(WALL_CLOCK)  # noqa: SLF001
    generated = sum(each.count(Kind.RESPONSE) for each in sampled)
    clock.record("throughput", generated / _total(repeat.readings().values["t_gen"]))
    clock.record("t_first_token", one_or_all([time for each in sampled for time in each.times_to_first()]))
    if later := [time for each in sampled for time in each.times_to_next()]:
        clock.record("t_next_token", one_or_all(later))
    else:
        repeat.invalidate("every sequence ended with its first token, so there is no time between two")
    repeat.record("tokens_prompt", sum(each.count(Kind.PROMPT) for each in sampled))
    repeat.record("tokens_generated", generated)
    repeat.record("tokens_tool", sum(each.count(Kind.TOOL) for each in sampled))
    for stop in Stop:
        repeat.record(stop.value, sum(each.counted(stop) for each in sampled))


def _total(value: float | list[float]) -> float:
    return math.fsum(value) if isinstance(value, list) else value
