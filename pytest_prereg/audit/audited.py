"""Where a prediction stands, beside the findings about it: order, standing, what locks record of it."""

from __future__ import annotations

from typing import Literal

import msgspec

from pytest_prereg.audit.standing import Standing

Status = Literal["registered", "unregistered", "withdrawn", "removed"]
"""Whether a prediction is in the committed lock, was withdrawn, or is gone from the study without that."""


class Recorded(msgspec.Struct, kw_only=True, frozen=True):
    """A verdict as a lock records it."""

    verdict: str
    reason: str | None = None
    estimate: float | None = None
    interval: tuple[float, float] | None = None
    unit: str
    n: int | None = None
    series: int | None = None


class Audited(msgspec.Struct, kw_only=True, frozen=True):
    """Where a prediction stands: its order, its standing and its record on both sides of a comparison."""

    id: str
    status: Status
    order: str | None
    """``None`` for one that is gone from the study and was never withdrawn."""
    standing: Standing | None
    base: Recorded | None
    """In the lock that is compared with; an audit compares with HEAD's."""
    head: Recorded | None
    """In the lock as it is."""
    withdrawal: str | None = None
    """The reason on its tombstone."""
    is_counted: bool = False
    """Whether it was withdrawn and stays counted as refuted."""
    claim: str = ""
    """Its words, as far as its text is there."""
