"""What every path from hidden states to log-probabilities may be given."""

from __future__ import annotations

import math

import torch

WORKLOAD_VERSION = "1"

DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)


def check_inputs(states: torch.Tensor, head: torch.Tensor, chosen: torch.Tensor, temperature: float) -> None:
    """Raise ValueError if no log-probabilities can be had from these, with everything that is wrong.

    Args:
        states: Hidden states (tokens, hidden).
        head: Matrix (vocabulary, hidden), of the dtype and on the device of the states.
        chosen: Ids of the tokens asked for, int64 (tokens,), each below the vocabulary.
        temperature: What logits are divided by: finite and above 0.
    """
    wrong = [*_matrices(states, head), *_ids(states, chosen), *_temperature(temperature)]
    # The ids can only be looked up in a head that is one.
    if wrong or (wrong := _outside(head, chosen)):
        raise ValueError("; ".join(wrong))


def _matrices(states: torch.Tensor, head: torch.Tensor) -> list[str]:
    shapes = f"states {tuple(states.shape)} and head {tuple(head.shape)}"
    wrong = []
    if states.dim() != 2 or head.dim() != 2 or states.shape[1] != head.shape[1]:  # noqa: PLR2004
        wrong.append(f"{shapes}: give (tokens, hidden) and (vocabulary, hidden), the same hidden size")
    if states.dtype != head.dtype or states.dtype not in DTYPES:
        known = ", ".join(map(str, DTYPES))
        wrong.append(f"states {states.dtype} and head {head.dtype}: give both as one of {known}")
    if states.device != head.device:
        wrong.append(f"states on {states.device} and head on {head.device}: move them to one device")
    return wrong


def _ids(states: torch.Tensor, chosen: torch.Tensor) -> list[str]:
    wrong = []
    if chosen.dtype != torch.int64:
        wrong.append(f"chosen is {chosen.dtype}: give ids as torch.int64")
    if chosen.shape != states.shape[:1]:
        wrong.append(
            f"chosen {tuple(chosen.shape)}: give one id for each of {tuple(states.shape[:1])} tokens"
        )
    if chosen.device != states.device:
        wrong.append(f"chosen on {chosen.device}: move it to {states.device}, where the states are")
    return wrong


def _temperature(temperature: float) -> list[str]:
    number = isinstance(temperature, int | float) and not isinstance(temperature, bool)
    if not number or not 0 < temperature < math.inf:
        return [f"temperature = {temperature!r}: give a finite number above 0"]
    return []


def _outside(head: torch.Tensor, chosen: torch.Tensor) -> list[str]:
    found = ((chosen < 0) | (chosen >= len(head))).nonzero()
    if not len(found):
        return []
    first, last = int(found[0]), len(head) - 1
    others = f", as are {len(found) - 1} more" if len(found) > 1 else ""
    return [f"chosen[{first}] = {int(chosen[first])} is outside of the vocabulary{others}: give 0 to {last}"]
