"""Random prompts, sampled from in batches: what ``generation`` does, apart from what it records."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

import torch

from pytest_prereg.measure.workloads.language import compiling
from pytest_prereg.measure.workloads.language.decoding import generate

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from pytest_prereg.measure.workloads.language.causal_lm import CausalLM
    from pytest_prereg.measure.workloads.language.completions import Completions
    from pytest_prereg.measure.workloads.language.generation_setting import GenerationSetting

    Drawing = Callable[[], AbstractContextManager[object]]

WORKLOAD_VERSION = "1"


def random_prompts(
    model: CausalLM, *, prompts: int, group: int, length: int, generator: torch.Generator
) -> torch.Tensor:
    """Return prompts of random tokens (prompts x group, length), each repeated for its whole group.

    The generator is the CPU's, so that they are the same on every device.
    """
    ids = torch.randint(model.vocabulary, (prompts, length), generator=generator)
    return ids.repeat_interleave(group, 0).to(model.device)


class Sampler:
    """Prompts, what the tool will answer, and the seed of the draws; all from one seed."""

    def __init__(self, model: CausalLM, setting: GenerationSetting, *, seed: int) -> None:
        self._model, self._setting = model, setting
        generator = torch.Generator().manual_seed(seed % 2**63)
        self._prompts = random_prompts(
            model,
            prompts=setting.prompts,
            group=setting.group,
            length=setting.prompt_tokens,
            generator=generator,
        )
        size = (setting.turns, setting.sequences, setting.tool_tokens)
        self._answers = torch.randint(model.vocabulary, size, generator=generator).to(model.device)
        self._seed = int(torch.randint(2**62, (), generator=generator))

    def warm_up(self) -> None:
        """Sample from a batch of each size: a few tokens, or, so that all is compiled, as many as later.

        Raises:
            NotCompiledError: It was to be compiled, and nothing was.
        """
        if self._setting.compiled:
            compiling.compile_anew()
        before = self.compilations()
        sizes = {rows.stop - rows.start: rows for rows in self._setting.batches()}
        new_tokens = self._setting.new_tokens if self._setting.compiled else 2
        for rows in sizes.values():
            self._sample(rows, self._generator(), nullcontext, new_tokens)
        if self._setting.compiled:
            compiling.check_compiled(before)

    def sample(self, drawing: Drawing) -> list[Completions]:
        """Return the completions of each batch; ``drawing`` is entered around each draw."""
        generator = self._generator()
        return [
            self._sample(rows, generator, drawing, self._setting.new_tokens)
            for rows in self._setting.batches()
        ]

    @staticmethod
    def compilations() -> int:
        """Return how many graphs this process has compiled so far."""
        return compiling.compilations()

    def _generator(self) -> torch.Generator:
        return torch.Generator(self._model.device).manual_seed(self._seed)

    def _sample(
        self, rows: slice, generator: torch.Generator, drawing: Drawing, new_tokens: int
    ) -> Completions:
        setting = self._setting
        return generate(
            self._model,
            self._prompts[rows],
            new_tokens=new_tokens,
            generator=generator,
            sampling=setting.sampling,
            turns=setting.turns,
            tool=(lambda turn, _ids: self._answers[turn - 1, rows]) if setting.turns > 1 else None,
            ignore_ends=setting.ignore_ends,
            drawing=drawing,
            compiled=setting.compiled,
        )
