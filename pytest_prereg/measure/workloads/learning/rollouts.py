"""Trajectories: what a policy sampled, each under an id of its own, and the batches they are trained in.

A trajectory never changes after it was sampled: who graded it, or trains on it, can be held to its digest.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

import msgspec
import torch

from pytest_prereg.measure.workloads.language.completions import Kind, Sampling, Stop

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_prereg.measure.workloads.language.completions import Completions

WORKLOAD_VERSION = "1"


class Trajectory(msgspec.Struct, frozen=True, kw_only=True):
    """One prompt and what followed it, without padding."""

    id: str
    """``step/prompt/member``; no other trajectory of the run has it."""
    group: str
    """``step/prompt``: those that are compared with each other."""
    prompt: int
    """Index of the prompt in the data: where the cursor stood."""
    version: int
    """Of the policy that sampled it: how many updates that had had."""
    ids: tuple[int, ...]
    kinds: bytes
    """:class:`~pytest_prereg.measure.workloads.language.completions.Kind` of each token, a byte each."""
    log_probs: tuple[float, ...]
    """Behaviour log-probabilities, each exactly the float32 that was recorded while sampling."""
    stop: Stop
    sampling: Sampling

    def __post_init__(self) -> None:
        if not len(self.ids) == len(self.kinds) == len(self.log_probs):
            raise ValueError(
                f"trajectory {self.id}: {len(self.ids)} ids, {len(self.kinds)} kinds and "
                f"{len(self.log_probs)} log-probabilities; give one of each per token"
            )
        if Kind.PAD in self.kinds:
            raise ValueError(f"trajectory {self.id}: padding is no token; leave it out")

    @property
    def digest(self) -> str:
        """SHA-256 over ids and kinds, in hex: what a reward is for."""
        numbers = struct.pack(f"<q{len(self.ids)}q", len(self.ids), *self.ids)
        return hashlib.sha256(numbers + self.kinds).hexdigest()

    def tokens(self, kind: Kind) -> list[int]:
        """Return the ids of one kind, in order."""
        return [each for each, found in zip(self.ids, self.kinds, strict=True) if found == kind]

    def count(self, kind: Kind) -> int:
        """Return how many tokens are of a kind."""
        return self.kinds.count(kind)


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Trajectories side by side; all tensors are (batch, positions), on one device."""

    ids: torch.Tensor
    """int64; prompts are padded on the left, so that responses begin together, the rest on the right."""
    kinds: torch.Tensor
    """uint8."""
    behaviour: torch.Tensor
    """float32; 0 where there is no response."""


class TokenAccount(msgspec.Struct, frozen=True, kw_only=True):
    """How many tokens went where; prompt and tool tokens never count as generated.

    Raises:
        ValueError: A count is negative, or what was generated was neither trained on nor discarded.
    """

    prompt: int = 0
    """Prefilled, counted for every sequence."""
    generated: int = 0
    """Drawn by the policy, discarded ones included."""
    tool: int = 0
    scored: int = 0
    """Of the generated ones, whose log-probability was computed again in a pass of its own."""
    trained: int = 0
    """Of the generated ones, those that bore loss; once, however often they did."""
    discarded: int = 0

    def __post_init__(self) -> None:
        if min(msgspec.structs.astuple(self)) < 0:
            raise ValueError(f"{self}: no count of tokens is below 0")
        if self.generated != self.trained + self.discarded:
            raise ValueError(
                f"{self.generated} tokens were generated, {self.trained} trained on and {self.discarded} "
                "discarded: each is either"
            )

    def __add__(self, other: TokenAccount) -> TokenAccount:
        pairs = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
        return TokenAccount(**dict(zip(self.__struct_fields__, map(sum, pairs), strict=True)))


def trajectories_of(
    completions: Completions,
    *,
    step: int,
    prompts: Sequence[int],
    group: int,
    version: int,
    sampling: Sampling,
) -> list[Trajectory]:
    """Return the trajectories of a batch, in its order.

    Args:
        completions: The batch, ``group`` rows beside each other per prompt.
        step: In which step they were sampled.
        prompts: Index in the data of each prompt.
        group: How many completions each prompt has.
        version: Of the policy that sampled them.
        sampling: How.

    Raises:
        ValueError: There are not ``group`` rows for each prompt.
    """
    if len(completions.ids) != len(prompts) * group:
        raise ValueError(
            f"{len(completions.ids)} completions, and {len(prompts)} prompts with {group} each: give as many"
        )
    ids, kinds = completions.ids.tolist(), completions.kinds.tolist()
    log_probs = completions.log_probs.float().tolist()
    found = []
    for row, stop in enumerate(completions.stops):
        prompt, member = prompts[row // group], row % group
        held = [place for place, kind in enumerate(kinds[row]) if kind != Kind.PAD]
        found.append(
            Trajectory(
                id=f"{step}/{prompt}/{member}",
                group=f"{step}/{prompt}",
                prompt=prompt,
                version=version,
                ids=tuple(ids[row][place] for place in held),
                kinds=bytes(kinds[row][place] for place in held),
                log_probs=tuple(log_probs[row][place] for place in held),
                stop=stop,
                sampling=sampling,
            )
        )
    return found


def batch_of(trajectories: Sequence[Trajectory], *, pad: int, device: torch.device | str = "cpu") -> Batch:
    """Return trajectories as one batch, no wider than they need, in their order.

    Args:
        trajectories: At least one.
        pad: Id that stands where there is no token.
        device: Where the tensors go.
    """
    left = max(map(_prompt_length, trajectories))
    width = left + max(len(each.ids) - _prompt_length(each) for each in trajectories)
    ids = torch.full((len(trajectories), width), pad, dtype=torch.int64)
    kinds = torch.full(ids.shape, int(Kind.PAD), dtype=torch.uint8)
    behaviour = torch.zeros(ids.shape)
    for row, each in enumerate(trajectories):
        first = left - _prompt_length(each)
        place = slice(first, first + len(each.ids))
        ids[row, place] = torch.tensor(each.ids)
        kinds[row, place] = torch.tensor(list(each.kinds), dtype=torch.uint8)
        behaviour[row, place] = torch.tensor(each.log_probs)
    return Batch(ids=ids.to(device), kinds=kinds.to(device), behaviour=behaviour.to(device))


def account_of(
    trajectories: Sequence[Trajectory], *, trained: Sequence[Trajectory], scored: int
) -> TokenAccount:
    """Return the account of a step that sampled ``trajectories`` and trained on some of them."""
    generated, used = (sum(each.count(Kind.RESPONSE) for each in these) for these in (trajectories, trained))
    return TokenAccount(
        prompt=sum(each.count(Kind.PROMPT) for each in trajectories),
        generated=generated,
        tool=sum(each.count(Kind.TOOL) for each in trajectories),
        scored=scored,
        trained=used,
        discarded=generated - used,
    )


def _prompt_length(trajectory: Trajectory) -> int:
    return sum(1 for _ in takewhile(lambda kind: kind == Kind.PROMPT, trajectory.kinds))
