"""The synchronised wall clock: from one idle moment of the accelerator to the next.

Unit: seconds. Reads the monotonic clock. Known bias: includes the synchronisation itself, some ten
microseconds on a CUDA device, so it reads short kernels high; ``bench`` is for those.
"""

from __future__ import annotations

import sys
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "wall-clock"


class WallClock:
    """Hands the seconds that its block took to ``take``; a block that raises has no reading."""

    __slots__ = ("began", "take")

    def __init__(self, take: Callable[[float], None]) -> None:
        self.take = take
        self.began = 0

    def __enter__(self) -> None:
        synchronise()
        self.began = perf_counter_ns()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            synchronise()
            self.take((perf_counter_ns() - self.began) * 1e-9)


def synchronise() -> None:
    """Wait for the accelerator, where this process has used one."""
    cuda = cuda_in_use()
    if cuda is not None:
        cuda.synchronize()


def cuda_in_use() -> Any:
    """Return ``torch.cuda`` if torch is imported and CUDA initialised, else ``None``; initialises nothing."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return cuda if cuda is not None and cuda.is_initialized() else None
