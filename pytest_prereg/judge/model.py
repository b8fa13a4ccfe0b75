"""What the judge returns: a judgement of one prediction from one complete series."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Verdict(StrEnum):
    """Decided by where the interval lies; when in doubt, inconclusive."""

    SUPPORTED = "supported"
    REFUTED = "refuted"
    INCONCLUSIVE = "inconclusive"


class Reason(StrEnum):
    """Why a verdict is inconclusive; in this order, the first that applies."""

    INTEGRITY = "integrity"
    REQUIRED = "required"
    INSTRUMENT = "instrument"
    SCOPE = "scope"
    INFRASTRUCTURE = "infrastructure"
    TASK_FAILED = "task-failed"
    EXCLUDED = "excluded"
    N_TOO_SMALL = "n-too-small"
    UNBOUNDED = "unbounded"
    CENSORED = "censored"
    RARE_EVENT = "rare-event"
    RESOLUTION = "resolution"
    LINEARISATION = "linearisation"
    DRIFT = "drift"
    STRADDLES = "straddles"


class Alternative(msgspec.Struct, kw_only=True, frozen=True, gc=False):
    """What the verdict would be if repeats that were set aside counted after all."""

    counted: tuple[str, ...]
    """Ids of those that count here."""
    verdict: Verdict
    estimate: float | None
    interval: tuple[float, float] | None
    n: int


class Judgement(msgspec.Struct, kw_only=True, frozen=True, gc=False):
    """A verdict with everything that it rests on. Numbers are in the prediction's unit."""

    prediction: str
    verdict: Verdict
    reason: Reason | None
    detail: str | None
    """One line for people: what exactly straddles, drifts, is missing; what would decide it."""
    estimate: float | None
    interval: tuple[float, float] | None
    """An infinite side is ``±inf``; ``None`` where there is no interval at all."""
    confidence: float
    """Level achieved by the method: 0.984 for a median of seven."""
    method: str
    statistic: str
    n: int
    """Independent repeats (blocks) that the interval rests on; the smaller arm's."""
    planned: int | None
    excluded: int
    flags: tuple[str, ...]
    repeats: tuple[str, ...]
    """Ids of the repeats used."""
    set_aside: tuple[str, ...] = ()
    """Ids of the invalid and excluded repeats, in run order."""
    alternatives: tuple[Alternative, ...] = ()
    """With each of those that were set aside, and with all of them; empty where none was."""
