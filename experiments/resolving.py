"""Equal work, and a tenth more of it: what seven repeats tell apart on this machine."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from pytest_prereg import experiment

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_prereg import Repeat

TRUE = shutil.which("true") or "/bin/true"
PRODUCTS = 250
SIDE = 64
"""Of the matrices: numpy's library multiplies larger ones on several threads."""
COPIED = 64 << 20
"""Bytes: more than the caches of most machines hold."""


@experiment(metrics={"t_work": "s"}, preload=["numpy"])
def repeated_work(repeat: Repeat, *, kind: str = "products", rounds: int = 100, percent: int = 100) -> None:
    """Do ``percent`` per cent of ``rounds`` rounds of work: ``"products"``, ``"copies"`` or ``"starts"``.

    A round is 250 products of two matrices of 64 x 64 numbers, a copy of 64 MiB, or the start and end of a
    process. One is done beforehand and not timed.
    """
    do = KINDS[kind]()
    do()
    with repeat.timer("t_work"):
        for _ in range(rounds * percent // 100):
            do()


def products() -> Callable[[], object]:
    """Return what multiplies matrices."""
    import numpy as np  # noqa: PLC0415  # heavy, and needed here alone

    numbers = np.linspace(-1.0, 1.0, SIDE * SIDE).reshape(SIDE, SIDE)
    result = np.empty_like(numbers)

    def multiply() -> None:
        for _ in range(PRODUCTS):
            np.matmul(numbers, numbers, out=result)

    return multiply


def copies() -> Callable[[], object]:
    """Return what copies memory."""
    import numpy as np  # noqa: PLC0415

    numbers = np.ones(COPIED, dtype=np.uint8)
    result = np.empty_like(numbers)
    return lambda: np.copyto(result, numbers)


def starts() -> Callable[[], object]:
    """Return what starts a process that does nothing, and awaits its end."""
    return lambda: os.waitpid(os.posix_spawn(TRUE, [TRUE], {}), 0)


KINDS = {"products": products, "copies": copies, "starts": starts}
