"""What parameters of the models may be: counts, times, amounts and shares, refused by name and value.

Nothing here guesses: a float is no count even if it is whole, and a truth value is no number. What is
allowed is finite and far from where sums and products of it would overflow, so that no model has to look
for infinities or NaN in what it found.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

WORKLOAD_VERSION = "1"

MOST = 10**15
"""Of anything: exact as a float, and 30 million years in seconds."""


def check_count(*, least: int = 1, most: int = MOST, **given: int) -> None:
    """Refuse a named count that is no integer from ``least`` to ``most``.

    Raises:
        ValueError: One is.
    """
    for name, count in given.items():
        whole = isinstance(count, Integral) and not isinstance(count, bool)
        if not (whole and least <= count <= most):
            raise ValueError(f"{name} = {count!r}: give a whole number from {least} to {most:,}")


def check_seconds(**given: float) -> None:
    """Refuse a named duration that is negative, not finite, or beyond ten to the fifteen.

    Raises:
        ValueError: One is.
    """
    for name, seconds in given.items():
        if not _is_from_zero_to(MOST, seconds):
            raise ValueError(f"{name} = {seconds!r} s: give a time from 0 to {MOST:.0e} s")


def check_amount(**given: float) -> None:
    """Refuse a named amount that is negative, not finite, or beyond ten to the fifteen.

    Raises:
        ValueError: One is.
    """
    for name, amount in given.items():
        if not _is_from_zero_to(MOST, amount):
            raise ValueError(f"{name} = {amount!r}: give a number from 0 to {MOST:.0e}")


def check_share(**given: float) -> None:
    """Refuse a named share or probability that is none.

    Raises:
        ValueError: One is.
    """
    for name, share in given.items():
        if not _is_from_zero_to(1, share):
            raise ValueError(f"{name} = {share!r} is no probability: give one from 0 to 1")


def _is_from_zero_to(most: float, value: Any) -> bool:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return is_number and 0 <= value <= most
