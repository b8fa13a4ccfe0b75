"""What runs on a language model may be asked for: the checks that their experiments share.

Each check returns what is wrong with a parameter, in a sentence that says what to write, or ``None``;
:func:`refuse` raises all of them at once. Nothing here imports torch, so a slip costs no loading.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

from pytest_prereg.registry.refusals import listed, nearest, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

WORKLOAD_VERSION = "1"

DTYPES = ("float32", "bfloat16", "float16")
"""Of weights, as torch names them."""

DEVICES = ("auto", "cpu", "cuda", "cuda:0")
"""What a device is called: the first is CUDA where there is some, else the CPU; any number may follow."""

UNTRAINED = ("tiny-qwen3", "toy-qwen3")
"""Models that are drawn anew from the repeat's seed and not fetched, by name."""

LARGEST_COUNT = 2**31 - 1
"""Of anything that is counted; beyond it sizes and ranges overflow, each in words of its own."""

LONGEST_NAME = 255
"""Of a file, and well above that of a model on the hub."""

_RANGES = {
    "temperature": (1e-3, 1e3),  # beyond these, float32 has one token left, or none
    "learning_rate": (0.0, 1.0),  # AdamW moves a weight by about as much: 1 leaves nothing of them
    "clip_high": (0.0, 1e3),
    "deadline": (0.0, 86_400.0),
}
"""Least above 0, and most, of numbers that would otherwise be taken and come to nothing."""

_DEVICE = re.compile(r"auto|cpu|cuda(:[0-9]{1,3})?")
_LEAST_SHARE = 1e-6
_DIGEST = re.compile(r"(?:[0-9a-f]{12,64})?")


def refuse(problems: Iterable[str | None]) -> None:
    """Raise one ``ValueError`` that tells all problems, if there are any."""
    found = [problem for problem in problems if problem is not None]
    if found:
        raise ValueError("; ".join(found))


def count_problem(name: str, value: object, least: int = 1, why: str = "") -> str | None:
    """Return what is wrong with a number of things; ``why`` goes behind it."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        return f"{name} = {value!r}: give a whole number of at least {least}{why}"
    if value > LARGEST_COUNT:
        return f"{name} = {value!r}: give a whole number of at most {LARGEST_COUNT}"
    return None


def number_problem(name: str, value: object, *, positive: bool = False) -> str | None:
    """Return what is wrong with a finite number of at least 0, or above it, and in its range."""
    if not is_number(value) or not 0 <= value < math.inf or (positive and value == 0):
        return f"{name} = {value!r}: give a finite number {'above 0' if positive else 'of at least 0'}"
    least, most = _RANGES.get(name, (0.0, math.inf))
    if value > most:
        return f"{name} = {value!r}: give a number of at most {most:g}"
    if 0 < value < least:
        return f"{name} = {value!r}: give a number of at least {least:g}"
    return None


def word_problem(name: str, value: object, words: Sequence[str]) -> str | None:
    """Return what is wrong with one of some words."""
    if value in words:
        return None
    return f"{name} = {quoted(value)}: give {listed(words, 'or')}"


def switch_problem(name: str, value: object) -> str | None:
    """Return what is wrong with a yes or no."""
    return None if isinstance(value, bool) else f"{name} = {value!r}: give true or false"


def digest_problem(name: str, value: object) -> str | None:
    """Return what is wrong with how a digest, or a commit, is to begin."""
    if isinstance(value, str) and _DIGEST.fullmatch(value):
        return None
    return f"{name} = {quoted(value)}: give the digest or its first 12 hex digits or more, or nothing"


def model_problems(
    model: object, dtype: object, device: object, expect_model: object = ""
) -> list[str | None]:
    """Return what is wrong with what a model is loaded by, as far as that shows without loading it."""
    return [
        model_problem(model),
        digest_problem("expect_model", expect_model) or _expectation_problem(model, expect_model),
        word_problem("dtype", dtype, DTYPES),
        device_problem(device),
    ]


def model_problem(model: object) -> str | None:
    """Return what is wrong with the name of a model; the hub is not asked.

    Whatever is a folder, or may be a name on the hub, is right. What looks like a folder that isn't there
    would otherwise be searched for in a network, and so would a slip in the name of an untrained one.
    """
    if not isinstance(model, str) or not model.strip():
        return f"model = {model!r}: give a name on Hugging Face's hub, or a folder"
    if model in UNTRAINED or is_folder(model):
        return None
    if len(model) > LONGEST_NAME:
        return f"model = {quoted(model)} is no folder, and too long for a name on Hugging Face's hub"
    if "/" not in model and (near := nearest(model, UNTRAINED)):
        return f"model = {quoted(model)}: there is no such model; did you mean {quoted(near)}?"
    return _missing_folder(model)


def is_folder(model: str) -> bool:
    """Whether the name of a model is a folder's."""
    try:
        return Path(model).expanduser().is_dir()
    except (OSError, RuntimeError):  # too long for a path; the home of nobody
        return False


def _missing_folder(model: str) -> str | None:
    first, slash, rest = model.partition("/")
    said = f"model = {quoted(model)}: there is no such folder, as seen from the study's"
    if model.startswith((".", "/", "~")) or "/" in rest or Path(model).exists():
        return f"{said}; give the path of one that save_pretrained wrote, or a name on Hugging Face's hub"
    if slash and Path(first).is_dir() and "@" not in rest:
        hub = quoted(f"{model}@main")
        return f"{said}, where {quoted(first)} is one; if the model of the hub is meant, write {hub}"
    return None


def _expectation_problem(model: object, expected: object) -> str | None:
    if not expected or model not in UNTRAINED:
        return None
    return f"expect_model = {quoted(expected)} with model = {quoted(model)}, which is drawn: leave it out"


def device_problem(device: object) -> str | None:
    """Return what is wrong with the name of a device."""
    if isinstance(device, str) and _DEVICE.fullmatch(device):
        return None
    return f"device = {quoted(device)}: give {listed(DEVICES, 'or')}"


def sampling_problems(temperature: object, top_k: object, top_p: object) -> list[str | None]:
    """Return what is wrong with how tokens are drawn."""
    a_share = is_number(top_p) and _LEAST_SHARE <= top_p <= 1
    idle = temperature == 0 and (top_k != 0 or top_p != 1)
    return [
        number_problem("temperature", temperature),
        count_problem("top_k", top_k, 0),
        None if a_share else f"top_p = {top_p!r}: give a share from {_LEAST_SHARE:g} to 1, which is all",
        "temperature = 0 takes the likeliest token, and top_k and top_p change nothing: leave them out"
        if idle
        else None,
    ]


def is_number(value: object) -> TypeGuard[float]:
    """Whether it is a number and no truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool)
