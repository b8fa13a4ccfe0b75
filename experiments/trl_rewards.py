"""How long TRL's trainer waits for reward functions that only sleep: how many, and of which kind."""

from __future__ import annotations

import asyncio
import time
import warnings
from typing import TYPE_CHECKING, Any

from pytest_prereg import experiment

with warnings.catch_warnings():  # those of others, for each other
    warnings.simplefilter("ignore")
    try:
        import torch
        import trl
        from datasets import Dataset
        from tokenizers import Tokenizer
        from tokenizers.models import WordLevel
        from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
        from trl import GRPOConfig, GRPOTrainer
    except ImportError as error:  # told before a series begins, which would else be spent
        raise ImportError(f"{error}; these experiments need TRL: pip install --group study") from None

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_prereg import Repeat

COMPLETIONS = 8
WORDS = 62


@experiment(metrics={"t_rewards": "s", "t_step": "s"})
def trl_rewards(
    repeat: Repeat, *, kind: str = "sync", functions: int = 1, pause: float = 0.3, steps: int = 2
) -> None:
    """Train an untrained toy policy for ``steps`` steps of 8 completions by TRL's ``GRPOTrainer``, on a CPU.

    Each of the ``functions`` that give rewards sleeps for ``pause`` seconds, by its ``kind``. ``t_step`` has
    the time of each training step, ``t_rewards`` the part of it in which the trainer has its rewards
    computed.
    """
    trainer = _trainer(
        repeat.workdir, [KINDS[kind](pause, number) for number in range(functions)], steps, repeat.seed
    )
    _time(repeat, "t_rewards", trainer, "_calculate_rewards")
    _time(repeat, "t_step", trainer, "training_step")
    trainer.train()
    repeat.record("trl", trl.__version__)


def _time(repeat: Repeat, metric: str, trainer: Any, method: str) -> None:
    """Time each call that the trainer makes of one of its own methods."""
    inner = getattr(trainer, method)

    def timed(*arguments: Any, **named: Any) -> Any:
        with repeat.timer(metric):
            return inner(*arguments, **named)

    setattr(trainer, method, timed)


def blocking(pause: float, number: int) -> Callable[..., list[float]]:
    """Return a plain function."""

    def reward(completions: list[str], **_: Any) -> list[float]:
        time.sleep(pause)
        return [float(place % 2) for place in range(len(completions))]

    return _named(reward, number)


def awaiting(pause: float, number: int) -> Callable[..., Any]:
    """Return a coroutine function that awaits."""

    async def reward(completions: list[str], **_: Any) -> list[float]:
        await asyncio.sleep(pause)
        return [float(place % 2) for place in range(len(completions))]

    return _named(reward, number)


def awaiting_nothing(pause: float, number: int) -> Callable[..., Any]:
    """Return a coroutine function that blocks, as one does that computes or calls a plain client."""

    async def reward(completions: list[str], **_: Any) -> list[float]:
        time.sleep(pause)  # noqa: ASYNC251 - the mistake that is measured
        return [float(place % 2) for place in range(len(completions))]

    return _named(reward, number)


def one_by_one(pause: float, number: int) -> Callable[..., list[float]]:
    """Return a plain function that looks at one completion after another."""

    def reward(completions: list[str], **_: Any) -> list[float]:
        for _completion in completions:
            time.sleep(pause)
        return [float(place % 2) for place in range(len(completions))]

    return _named(reward, number)


def gathered(pause: float, number: int) -> Callable[..., Any]:
    """Return a coroutine function that looks at all completions at once."""

    async def reward(completions: list[str], **_: Any) -> list[float]:
        await asyncio.gather(*(asyncio.sleep(pause) for _completion in completions))
        return [float(place % 2) for place in range(len(completions))]

    return _named(reward, number)


KINDS = {
    "sync": blocking,
    "async": awaiting,
    "async-blocking": awaiting_nothing,
    "one-by-one": one_by_one,
    "gathered": gathered,
}
"""By the name that an arm gives."""


def _named(reward: Callable[..., Any], number: int) -> Callable[..., Any]:
    reward.__name__ = f"reward_{number}"  # TRL keeps its figures by name
    return reward


def _trainer(folder: Path, rewards: list[Callable[..., Any]], steps: int, seed: int) -> Any:
    torch.set_num_threads(1)
    arguments = GRPOConfig(
        output_dir=str(folder),
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        report_to=[],
        disable_tqdm=True,
        save_strategy="no",
        per_device_train_batch_size=COMPLETIONS,
        num_generations=COMPLETIONS,
        max_completion_length=16,
        max_steps=steps,
        seed=seed % 2**32,
    )
    data = Dataset.from_list([{"prompt": "word1 word2"}] * (steps + 1))
    return GRPOTrainer(
        model=_model(seed),
        reward_funcs=rewards,
        args=arguments,
        train_dataset=data,
        processing_class=_tokenizer(),
    )


def _model(seed: int) -> Any:
    torch.manual_seed(seed)
    shape = Qwen3Config(
        vocab_size=WORDS + 2,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        eos_token_id=WORDS + 1,
        pad_token_id=WORDS + 1,
    )
    return Qwen3ForCausalLM(shape)


def _tokenizer() -> Any:
    unknown, last = "<unk>", "<end>"
    words = {f"word{index}": index for index in range(WORDS)} | {unknown: WORDS, last: WORDS + 1}
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(WordLevel(words, unk_token=unknown)),
        eos_token=last,
        pad_token=last,
        unk_token=unknown,
    )
