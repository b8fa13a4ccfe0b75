"""Rows in blocks that stay in a core's cache: what a model holds at once does not grow with its steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pytest_prereg.measure.workloads.models.checks import MOST

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
        ValueError: There are not two axes, the second is empty, or a value is negative, not finite or above
            what a duration may be.
    """
    array = np.ascontiguousarray(seconds, dtype=np.float64)
    if array.ndim != 2 or not array.shape[1]:  # noqa: PLR2004
        raise ValueError(
            f"{what} of shape {array.shape}: give two axes, one row per step or replica, none of them empty"
        )
    least, most = (array.min(), array.max()) if array.size else (0.0, 0.0)
    if not 0 <= least <= most <= MOST:
        raise ValueError(
            f"{what} from {least} to {most} s: give finite times, none negative or above {MOST:.0e}"
        )
    return array
