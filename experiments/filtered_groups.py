"""How many groups a filter makes a trainer sample until enough are kept, beside the number on average."""

from __future__ import annotations

import random
from itertools import count, islice, pairwise
from typing import TYPE_CHECKING

from pytest_prereg import experiment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_prereg import Repeat

SAMPLED_AT_ONCE = 128
"""Groups; how many there are at a time changes no count."""


@experiment(
    metrics={
        "batches": {"unit": "1", "exact": True},
        "within_average": {"unit": "1", "exact": True},
        "within_margin": {"unit": "1", "exact": True},
        "retention": "1",
    },
    preload=["torch", "transformers.models.qwen3.modeling_qwen3"],
)
def filtered_batches(
    repeat: Repeat,
    *,
    batches: int = 40,
    kept: int = 64,
    group: int = 8,
    prompt_tokens: int = 8,
    new_tokens: int = 2,
    margin: float = 303 / 256,
) -> None:
    """Sample groups from an untrained toy policy until ``kept`` have a signal, for each of ``batches``.

    A group is ``group`` completions of one prompt, drawn and graded for real, each right or wrong. It has a
    signal unless all are right or all are wrong. ``within_average`` counts batches for which the number of
    groups that a batch takes on average, over all of them, would have been enough, and ``within_margin``
    those for which ``margin`` times as many would. ``retention`` is the share of groups that have a signal.
    """
    signals = sampled(repeat.seed, group=group, prompt_tokens=prompt_tokens, new_tokens=new_tokens)
    record(repeat, groups_needed(signals, batches=batches, kept=kept), kept=kept, margin=margin)


@experiment(
    metrics={
        "batches": {"unit": "1", "exact": True},
        "within_average": {"unit": "1", "exact": True},
        "within_margin": {"unit": "1", "exact": True},
        "retention": "1",
    },
)
def modelled_batches(
    repeat: Repeat, *, batches: int = 400, kept: int = 64, retention: float = 0.25, margin: float = 303 / 256
) -> None:
    """Count the same where each group is kept with a fixed probability: a model, in which nothing is run.

    The average is the exact one here, ``kept / retention``.
    """
    draws = random.Random(repeat.seed)  # noqa: S311  # reproducible, no secret
    signals = (draws.random() < retention for _ in count())
    needed = groups_needed(signals, batches=batches, kept=kept)
    record(repeat, needed, kept=kept, margin=margin, average=kept / retention)


def sampled(seed: int, *, group: int, prompt_tokens: int, new_tokens: int) -> Iterator[bool]:
    """Yield without end whether each group that an untrained policy answers has a signal."""
    import torch  # noqa: PLC0415  # an extra

    from pytest_prereg.measure.workloads.language.causal_lm import load  # noqa: PLC0415
    from pytest_prereg.measure.workloads.language.decoding import generate  # noqa: PLC0415
    from pytest_prereg.measure.workloads.learning.tasks import task_named  # noqa: PLC0415

    torch.set_num_threads(1)  # of so small a model each operator is over before a second thread has begun
    task = task_named("toy")
    model = load(task.model, seed=seed)
    generator = torch.Generator().manual_seed(seed % 2**63)
    for start in count(0, SAMPLED_AT_ONCE):
        prompts = task.prompts(start, SAMPLED_AT_ONCE, prompt_tokens, order=seed)
        asked = prompts.repeat_interleave(group, 0)
        with torch.no_grad():
            done = generate(model, asked, new_tokens=new_tokens, generator=generator, ignore_ends=True)
        answers = done.ids[:, prompt_tokens:].tolist()
        right = [task.solves(*pair) for pair in zip(asked.tolist(), answers, strict=True)]
        yield from (has_signal(right[first : first + group]) for first in range(0, len(right), group))


def has_signal(right: Iterable[bool]) -> bool:
    """Return whether the completions of a group differ in what they earn."""
    return len(set(right)) > 1


def groups_needed(signals: Iterable[bool], *, batches: int, kept: int) -> list[int]:
    """Return how many groups each batch takes, one batch after another, until it has ``kept`` of them."""
    places = (place for place, has in enumerate(signals, start=1) if has)
    lasts = [0, *islice(places, kept - 1, batches * kept, kept)]
    return [last - before for before, last in pairwise(lasts)]


def record(
    repeat: Repeat, needed: list[int], *, kept: int, margin: float, average: float | None = None
) -> None:
    """Record how many batches the average would have filled, and the average times ``margin``."""
    found = sum(needed) / len(needed)
    budget = found if average is None else average
    repeat.record("batches", len(needed))
    repeat.record("within_average", sum(each <= budget for each in needed))
    repeat.record("within_margin", sum(each <= margin * budget for each in needed))
    repeat.record("retention", kept / found)
