"""What runs on a language model may be asked for: the checks that their experiments share.

Each check returns what is wrong with a parameter, in a sentence that says what to write, or ``None``;
:func:`refuse` raises all of them at once. Nothing here imports torch, so a slip costs no loading.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, TypeGuard

from pytest_prereg.registry.refusals import listed, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

WORKLOAD_VERSION = "1"

DTYPES = ("float32", "bfloat16", "float16")
"""Of weights, as torch names them."""

DEVICES = ("auto", "cpu", "cuda", "cuda:0")
"""What a device is called: the first is CUDA where there is some, else the CPU; any number may follow."""

_DEVICE = re.compile(r"auto|cpu|cuda(:\d+)?")


def refuse(problems: Iterable[str | None]) -> None:
    """Raise one ``ValueError`` that tells all problems, if there are any."""
    found = [problem for problem in problems if problem is not None]
    if found:
        raise ValueError("; ".join(found))


def count_problem(name: str, value: object, least: int = 1) -> str | None:
    """Return what is wrong with a number of things."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= least:
        return None
    return f"{name} = {value!r}: give a whole number of at least {least}"


def number_problem(name: str, value: object, *, positive: bool = False) -> str | None:
    """Return what is wrong with a finite number of at least 0, or above it."""
    if is_number(value) and 0 <= value < math.inf and not (positive and value == 0):
        return None
    return f"{name} = {value!r}: give a finite number {'above 0' if positive else 'of at least 0'}"


def word_problem(name: str, value: object, words: Sequence[str]) -> str | None:
    """Return what is wrong with one of some words."""
    if value in words:
        return None
    return f"{name} = {quoted(value)}: give {listed(words, 'or')}"


def switch_problem(name: str, value: object) -> str | None:
    """Return what is wrong with a yes or no."""
    return None if isinstance(value, bool) else f"{name} = {value!r}: give true or false"


def model_problems(model: object, dtype: object, device: object) -> list[str | None]:
    """Return what is wrong with what a model is loaded by, as far as that shows without loading it."""
    named = isinstance(model, str) and bool(model.strip())
    return [
        None if named else f"model = {model!r}: give a name on Hugging Face's hub, or a folder",
        word_problem("dtype", dtype, DTYPES),
        device_problem(device),
    ]


def device_problem(device: object) -> str | None:
    """Return what is wrong with the name of a device."""
    if isinstance(device, str) and _DEVICE.fullmatch(device):
        return None
    return f"device = {quoted(device)}: give {listed(DEVICES, 'or')}"


def sampling_problems(temperature: object, top_k: object, top_p: object) -> list[str | None]:
    """Return what is wrong with how tokens are drawn."""
    a_share = is_number(top_p) and 0 < top_p <= 1
    idle = temperature == 0 and (top_k != 0 or top_p != 1)
    return [
        number_problem("temperature", temperature),
        count_problem("top_k", top_k, 0),
        None if a_share else f"top_p = {top_p!r}: give a share above 0 and of at most 1, which is all",
        "temperature = 0 takes the likeliest token, and top_k and top_p change nothing: leave them out"
        if idle
        else None,
    ]


def is_number(value: object) -> TypeGuard[float]:
    """Whether it is a number and no truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool)
