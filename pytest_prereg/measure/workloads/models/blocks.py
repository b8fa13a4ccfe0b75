"""Rows in blocks that stay in a core's cache: what a model holds at once does not grow with its steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Iterator

WORKLOAD_VERSION = "1"

Array = NDArray[np.float64]

VALUES = 2**16
"""Values of a block, 512 KiB: a core's second-level cache, or the half of one."""


def blocks(rows: int, columns: int) -> Iterator[slice]:
    """Yield slices that cover ``rows``, all of one length but the last, a multiple of four."""
    length = max(4, VALUES // columns // 4 * 4)
    for first in range(0, rows, length):
        yield slice(first, min(first + length, rows))


def checked(seconds: Array, what: str) -> Array:
    """Return seconds [rows, columns] as contiguous float64, once they are known to be some.

    Raises:
        ValueError: There are not two axes, the second is empty, or a value is negative or not finite.
    """
    array = np.ascontiguousarray(seconds, dtype=np.float64)
    if array.ndim != 2 or not array.shape[1]:  # noqa: PLR2004
        raise ValueError(
            f"{what} of shape {array.shape}: give two axes, one row per step or replica, none of them empty"
        )
    least, most = (array.min(), array.max()) if array.size else (0.0, 0.0)
    if not 0 <= least <= most < np.inf:
        raise ValueError(f"{what} from {least} to {most} s: every one has to be finite and not negative")
    return array


def check_seconds(**given: float) -> None:
    """Refuse a named duration that is negative or not finite.

    Raises:
        ValueError: One is.
    """
    for name, seconds in given.items():
        if not 0 <= seconds < np.inf:
            raise ValueError(f"{name} = {seconds!r} s: give a finite time that is not negative")


def check_count(**given: int) -> None:
    """Refuse a named count that is no whole number from 1.

    Raises:
        ValueError: One is.
    """
    for name, count in given.items():
        if count < 1 or count != int(count):
            raise ValueError(f"{name} = {count!r}: give a whole number, at least 1")
