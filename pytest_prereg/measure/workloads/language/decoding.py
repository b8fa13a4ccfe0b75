"""Sampling completions from a model: a loop of one's own, in which every token is accounted for.

**Turns.** In each turn a sequence draws until it draws a token that ends completions, or has ``new_tokens``.
A turn over, the tool answers, and the next turn goes on behind its answer, whichever of the two ended it:
that is how loops with tools work. The last turn's end is the completion's; so is that of a turn to which the
tool has no answer. The end token is the policy's own: a response token, and counted.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

import torch

from pytest_prereg.measure.instruments.wall_clock import synchronise
from pytest_prereg.measure.workloads.language.completions import Completions, Kind, Sampling, Stop, Turn
from pytest_prereg.measure.workloads.language.drawing import draw
from pytest_prereg.measure.workloads.language.reading import Reader, StaticReader
from pytest_prereg.measure.workloads.language.settings import count_problem, refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from pytest_prereg.measure.workloads.language.causal_lm import CausalLM

    Tool = Callable[[int, torch.Tensor], torch.Tensor]
    """Takes the number of the turn that is over, from 1, and all ids so far (batch, positions); returns the
    answers (batch, tokens), negative where there is none: some are shorter than others, or none at all."""
    Draw = Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
    """Takes all ids and which are tokens (batch, positions); returns next ids and log-probs (batch, 1)."""

WORKLOAD_VERSION = "1"


def generate(
    model: CausalLM,
    prompts: torch.Tensor,
    *,
    new_tokens: int,
    generator: torch.Generator,
    sampling: Sampling | None = None,
    prompt_mask: torch.Tensor | None = None,
    turns: int = 1,
    tool: Tool | None = None,
    ignore_ends: bool = False,
    drawing: Callable[[], AbstractContextManager[object]] = nullcontext,
    compiled: bool = False,
) -> Completions:
    """Return completions of a batch of prompts.

    Equal generators, weights and prompts give equal completions. A sequence's tokens depend on the other
    sequences through rounding alone: never on what they hold, nor on when they end.

    Args:
        model: What is sampled from.
        prompts: Ids (batch, positions), padded on the left.
        new_tokens: At most so many in each turn.
        generator: Of all draws, on the model's device.
        sampling: How to draw; from the whole distribution at temperature 1 if left out.
        prompt_mask: Where prompts hold a token (batch, positions); everywhere if left out.
        turns: At most so many.
        tool: What answers between turns. Answers that don't fit into the model's context with a token after
            them truncate the completion and are left out.
        ignore_ends: Take the tokens that end completions for tokens like others.
        drawing: Entered around each draw alone, without the head's product.
        compiled: Run steps of one token through ``torch.compile``, with a cache of fixed size; of one turn.

    Raises:
        ValueError: The parameters don't fit the model or each other.
        ModelError: Logits are not finite.
    """
    mask = torch.ones_like(prompts, dtype=torch.bool) if prompt_mask is None else prompt_mask.bool()
    _check(model, prompts, mask, new_tokens=new_tokens, turns=turns, tool=tool, compiled=compiled)
    course = _Course(model, prompts, mask, () if ignore_ends else model.ends)
    reader = StaticReader(model, len(prompts), prompts.shape[1] + new_tokens) if compiled else Reader(model)
    sampler = _Sampler(reader, sampling or Sampling(), drawing)
    for turn, draws in enumerate(_forks(generator, turns), 1):
        course.take_turn(partial(sampler, draws), new_tokens, last=turn == turns)
        if turn < turns and tool is not None and course.open:
            course.answer(tool(turn, course.ids))
        if not course.open:
            break
    return course.completions()


def _check(
    model: CausalLM,
    prompts: torch.Tensor,
    mask: torch.Tensor,
    *,
    new_tokens: int,
    turns: int,
    tool: Tool | None,
    compiled: bool,
) -> None:
    refuse(
        [
            count_problem("new_tokens", new_tokens),
            count_problem("turns", turns),
            "turns > 1 without a tool to answer between them: give tool"
            if turns > 1 and tool is None
            else None,
            f"turns = {turns} with compiled: its cache is of one turn; give one"
            if turns > 1 and compiled
            else None,
            _ids_problem("prompts", prompts, model.vocabulary),
            *_mask_problems(model, prompts, mask),
        ]
    )


def _ids_problem(name: str, ids: torch.Tensor, vocabulary: int, least: int = 0) -> str | None:
    if ids.dim() == 2 and ids.numel() and not ids.is_floating_point() and _between(ids, least, vocabulary):  # noqa: PLR2004
        return None
    return f"{name}: give ids (batch, positions) below {vocabulary}, the vocabulary"


def _between(ids: torch.Tensor, least: int, end: int) -> bool:
    return bool((ids >= least).all()) and bool((ids < end).all())


def _mask_problems(model: CausalLM, prompts: torch.Tensor, mask: torch.Tensor) -> list[str | None]:
    if mask.shape != prompts.shape:
        return [f"prompt_mask is {tuple(mask.shape)}: give one for each of {tuple(prompts.shape)} ids"]
    padded_left = bool(mask[:, -1].all()) and bool((mask[:, 1:] >= mask[:, :-1]).all())
    longest = int(mask.sum(1).max())
    return [
        None if padded_left else "prompt_mask: pad prompts on the left, and give each a token at least",
        f"prompts of up to {longest} tokens leave no room in a context of {model.context}: give shorter ones"
        if longest >= model.context
        else None,
    ]


def _forks(generator: torch.Generator, turns: int) -> list[torch.Generator]:
    """Return a generator for each turn: what is drawn in one depends on no other's length."""
    seeds = torch.randint(2**62, (turns,), generator=generator, device=generator.device).tolist()
    return [torch.Generator(generator.device).manual_seed(seed) for seed in seeds]


class _Sampler:
    """Reads what is new, and draws one token for each sequence."""

    def __init__(
        self,
        reader: Reader,
        sampling: Sampling,
        drawing: Callable[[], AbstractContextManager[object]],
    ) -> None:
        self._reader, self._sampling, self._drawing = reader, sampling, drawing

    def __call__(
        self, generator: torch.Generator, ids: torch.Tensor, mask: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return ids and behaviour log-probabilities (batch, 1) after all ``ids`` (batch, positions)."""
        logits = self._reader.last_states(ids, mask) @ self._reader.head.T
        with self._drawing():
            drawn, log_probs = draw(logits, self._sampling, generator)
        return drawn[:, None], log_probs[:, None]


class _Course:
    """A batch on its way: what each sequence holds, and whether it still draws."""

    def __init__(
        self, model: CausalLM, prompts: torch.Tensor, mask: torch.Tensor, ends: Sequence[int]
    ) -> None:
        self._model, self._ends = model, frozenset(ends)
        self.ids = torch.where(mask, prompts, model.pad)
        self._kinds = mask.to(torch.uint8) * Kind.PROMPT
        self._log_probs = torch.zeros(mask.shape, device=mask.device)
        self._lengths = mask.sum(1).tolist()
        self._draws = [True] * len(prompts)
        """Whether a sequence has more to draw in this turn."""
        self._ended = [False] * len(prompts)
        """Whether its turn was over by a token that ends it."""
        self._stops: list[Stop | None] = [None] * len(prompts)
        self._times: list[float] = []
        self._turns: list[Turn] = []
        synchronise()
        self._began = perf_counter()

    @property
    def open(self) -> bool:
        """Whether any completion may go on."""
        return None in self._stops

    def completions(self) -> Completions:
        """Return what became of it."""
        return Completions(
            ids=self.ids,
            kinds=self._kinds,
            log_probs=self._log_probs,
            stops=tuple(stop for stop in self._stops if stop is not None),
            token_times=tuple(self._times),
            turns=tuple(self._turns),
        )

    def take_turn(self, sample: Draw, new_tokens: int, *, last: bool) -> None:
        """Draw until every sequence has ended its turn."""
        began, positions = self._now(), 0
        while any(self._draws) and positions < new_tokens:
            with torch.inference_mode():
                ids, log_probs = sample(self.ids, self._kinds != Kind.PAD)
            self._append(ids, log_probs)
            positions += 1
            self._settle(ids.flatten().tolist(), last=last, final=last and positions == new_tokens)
            self._times.append(self._now())
        self._turns.append(Turn(began=began, positions=positions))

    def answer(self, answers: torch.Tensor) -> None:
        """Append what the tool answered; end the completions to which it has no answer that fits."""
        answers = answers.to(self.ids)
        refuse([_ids_problem("what the tool answered", answers, self._model.vocabulary, least=-(2**63))])
        said = answers >= 0
        for row, count in enumerate(said.sum(1).tolist()):
            self._draws[row] = self._stops[row] is None and self._takes(row, count)
        said &= torch.tensor(self._draws, device=said.device)[:, None]
        # To the right: the next turn goes on behind the last position.
        order = said.long().argsort(dim=1, stable=True)
        said = said.gather(1, order)
        self._extend(
            torch.where(said, answers.gather(1, order), self._model.pad),
            said.to(torch.uint8) * Kind.TOOL,
            torch.zeros(said.shape, device=said.device),
        )

    def _takes(self, row: int, count: int) -> bool:
        """Whether a sequence goes on behind an answer of so many tokens; if not, say why it stopped."""
        if count == 0:
            self._stops[row] = Stop.ENDED if self._ended[row] else Stop.CAPPED
        elif self._lengths[row] + count >= self._model.context:
            self._stops[row] = Stop.TRUNCATED
        else:
            self._lengths[row] += count
        return self._stops[row] is None

    def _append(self, ids: torch.Tensor, log_probs: torch.Tensor) -> None:
        """Append one position; sequences that no longer draw have padding there."""
        if all(self._draws):
            kinds = torch.full_like(ids, Kind.RESPONSE, dtype=torch.uint8)
        else:
            draws = torch.tensor(self._draws, device=ids.device)[:, None]
            ids = torch.where(draws, ids, self._model.pad)
            log_probs = torch.where(draws, log_probs, 0.0)
            kinds = draws.to(torch.uint8) * Kind.RESPONSE
        self._extend(ids, kinds, log_probs)

    def _extend(self, ids: torch.Tensor, kinds: torch.Tensor, log_probs: torch.Tensor) -> None:
        self.ids = torch.cat((self.ids, ids), 1)
        self._kinds = torch.cat((self._kinds, kinds), 1)
        self._log_probs = torch.cat((self._log_probs, log_probs), 1)

    def _settle(self, drawn: list[int], *, last: bool, final: bool) -> None:
        """Take note of who is done, after a position; ``final``: it was the last one allowed."""
        for row, token in enumerate(drawn):
            if not self._draws[row]:
                continue
            self._lengths[row] += 1
            self._ended[row] = token in self._ends
            if self._ended[row]:
                self._stops[row] = Stop.ENDED if last else None
            elif final:
                self._stops[row] = Stop.CAPPED
            elif self._lengths[row] >= self._model.context:
                self._stops[row] = Stop.TRUNCATED
            self._draws[row] = not self._ended[row] and self._stops[row] is None

    def _now(self) -> float:
        synchronise()
        return perf_counter() - self._began
