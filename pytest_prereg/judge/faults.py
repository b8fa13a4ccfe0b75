"""Infrastructure faults: how many a series may have before it decides nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

ALWAYS_ALLOWED = 2
_PARTS_WITH_ARM = 4


def too_many_faults(faults: Sequence[str], arms: Collection[str], n: int) -> int:
    """The number of faults in ``arms`` if it is more than max(2, ``n`` / 4), else 0.

    Args:
        faults: A repeat id for each fault: ``experiment/series/arm/index``, without an unnamed ``arm``.
        arms: The arms that the prediction uses.
        n: Planned repeats, the smaller arm's.
    """
    if not faults:
        return 0
    count = sum(arm_of(fault) in arms for fault in faults)
    return count if count > allowed_faults(n) else 0


def allowed_faults(n: int) -> float:
    """How many faults a series of ``n`` planned repeats may have and still decide."""
    return max(ALWAYS_ALLOWED, n / 4)


def arm_of(repeat: str) -> str:
    """The arm in a repeat id; empty where the experiment has one unnamed arm."""
    parts = repeat.split("/")
    return parts[2] if len(parts) >= _PARTS_WITH_ARM else ""


def index_of(repeat: str) -> int:
    """The index, from 1, in a repeat id."""
    return int(repeat.rsplit("/", 1)[1])
