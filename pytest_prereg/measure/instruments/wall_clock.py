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


ENTERED_TWICE = (
    "this {what} is under way already: entered within itself or by another thread, it would read the wrong "
    "span; make another for each"
)


class WallClock:
    """Hands the seconds that its block took to ``take``; a block that raises has no reading.

    ``begin`` is called at each entry.
    """

    __slots__ = ("_began", "_begin", "_take")

    def __init__(self, begin: Callable[[], object], take: Callable[[float], None]) -> None:
        self._begin = begin
        self._take = take
        self._began: int | None = None

    def __enter__(self) -> None:
        if self._began is not None:
            raise RuntimeError(ENTERED_TWICE.format(what="timer"))
        self._begin()
        synchronise()
        self._began = perf_counter_ns()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            synchronise()
        ended = perf_counter_ns()
        began, self._began = self._began, None
        if kind is None and began is not None:
            self._take((ended - began) * 1e-9)


def synchronise() -> None:
    """Wait for the accelerator, where this process has used one."""
    cuda = cuda_in_use()
    if cuda is not None:
        cuda.synchronize()


def cuda_in_use() -> Any:
    """Return ``torch.cuda`` if torch is imported and CUDA initialised, else ``None``; initialises nothing."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return cuda if cuda is not None and cuda.is_initialized() else None
