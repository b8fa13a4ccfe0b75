"""How far a session is, as whoever shows it is told: never a value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a session is when it is about to launch a repeat, or waits until it may."""

    experiment: str
    arm: str
    index: int
    block: int
    """1-based; of a warm-up that of the repeat which it is for."""
    attempt: int
    done: int
    """Slots settled, those of earlier sessions included."""
    planned: int
    blocks: int
    """Planned ones: of a series that may end early the most that there can be."""
    may_end_early: bool
    seconds_left: float | None
    """By what the arms have taken so far, in earlier sessions and pilots, too."""
    usd: float
    """What the session has cost so far."""
    warmup: bool = False
    """Whether the repeat counts for nothing."""
    waiting: bool = False
    """Whether somebody else holds the machine, so that nothing runs."""
