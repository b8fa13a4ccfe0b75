"""Whether ``torch.compile`` compiled what it was asked to: where it is off, it quietly does nothing.

Dynamo's counter of graphs tells, whatever turned it off; the switches that are known are told of by name.
"""

from __future__ import annotations

import os

import torch
from torch._dynamo import config
from torch._dynamo.utils import counters

WORKLOAD_VERSION = "1"

_SWITCHES = ("TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE")


class NotCompiledError(ValueError):
    """What is to be compiled is not."""


def compilations() -> int:
    """Return how many graphs this process has compiled so far."""
    return int(counters["stats"]["unique_graphs"])


def compile_anew() -> None:
    """Forget what was compiled, which another model of the same shape would share and not be counted for.

    Raises:
        NotCompiledError: Torch is told to compile nothing, or to go on uncompiled where that fails.
    """
    if switch := _switched_off():
        raise NotCompiledError(
            f"compiled = true, and {switch} is set, which leaves uncompiled what it likes, and says nothing: "
            "unset it, or give compiled = false"
        )
    torch.compiler.reset()


def check_compiled(before: int) -> None:
    """Raise :class:`NotCompiledError` if there are no more compilations than ``before``."""
    if compilations() <= before:
        raise NotCompiledError(
            "compiled = true, and torch compiled nothing: something has turned its compiler off; turn it on, "
            "or give compiled = false"
        )


def _switched_off() -> str | None:
    for name in _SWITCHES:
        if os.environ.get(name, "0") != "0":
            return name
    for name in ("disable", "suppress_errors"):
        if getattr(config, name):
            return f"torch._dynamo.config.{name}"
    return None


def late(before: int) -> str | None:
    """Return what is wrong with a time during which there were more compilations than ``before`` it."""
    more = compilations() - before
    return f"torch compiled {more} graph{'s' * (more > 1)} while it was timed" if more > 0 else None
