"""How far a session is, as whoever shows it is told: never a value."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_prereg.measure.devices import measuring

if TYPE_CHECKING:
    from collections.abc import Callable

NOTICED_SECONDS = 2.0
"""A wait that is no longer needs no words."""


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


class WaitNotice:
    """Says, once, that a session waits for another one, and for which: a silent wait looks like a fault."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._since: float | None = None
        self._is_said = False

    def repeat(self, now: Progress) -> None:
        """Take in how far the session is, as it is told before each repeat and while one has to wait."""
        if not now.waiting:
            self._since = None
        elif self._since is None:
            self._since = time.monotonic()
        elif not self._is_said and time.monotonic() - self._since >= NOTICED_SECONDS:
            self._is_said = True
            self._say(waiting_text(measuring()))


def waiting_text(processes: list[int]) -> str:
    """Return for whom a session waits: ``waiting for another session (process 27478) that measures``."""
    if len(processes) > 1:
        return f"waiting for other sessions (processes {', '.join(map(str, processes))}) that measure"
    which = f" (process {processes[0]})" if processes else ""
    return f"waiting for another session{which} that measures"
