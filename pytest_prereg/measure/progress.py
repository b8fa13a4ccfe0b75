"""How far a session is, as whoever shows it is told: never a value."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_prereg.evidence.model import Outcome
from pytest_prereg.measure.devices import measuring
from pytest_prereg.measure.failures import said

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from pytest_prereg.evidence.model import Finished, Started

NOTICED_SECONDS = 2.0
"""A wait that is no longer needs no words."""
AGAIN_SECONDS = 60.0
"""One that goes on is told of again."""


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
    """Says that a session waits for which other one, and since when: a silent wait looks like a fault."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._since: float | None = None
        self._said: float | None = None

    def repeat(self, now: Progress) -> None:
        """Take in how far the session is, as it is told before each repeat and while one has to wait."""
        moment = time.monotonic()
        if not now.waiting:
            self._since = None
        elif self._since is None:
            self._since = moment
        elif moment - self._since >= NOTICED_SECONDS and self._is_due(moment):
            self._said = moment
            self._say(waiting_text(measuring(), time.time() - (moment - self._since)))

    def _is_due(self, moment: float) -> bool:
        return self._said is None or moment - self._said >= AGAIN_SECONDS


class FailureNotice:
    """Says once that every arm failed when it first ran, of its own fault: the rest may be bought in vain.

    What is registered is run all the same. It is told only of an experiment whose failures are no answers.
    """

    def __init__(self, experiment: str, arms: Collection[str], say: Callable[[str], None]) -> None:
        self._experiment, self._arms, self._say = experiment, {*arms}, say
        self._failed: dict[str, Finished] = {}
        self._is_told = False

    def ended(self, started: Started, finished: Finished) -> None:
        """Take in how a repeat ended; what the machinery lost is run again and says nothing."""
        if self._is_told or started.warmup or finished.outcome is Outcome.INFRASTRUCTURE:
            return
        self._is_told = finished.outcome is not Outcome.TASK_FAILED
        self._failed.setdefault(started.arm, finished)
        if not self._is_told and self._failed.keys() == self._arms:
            self._is_told = True
            self._say(failing_text(self._experiment, next(iter(self._failed.values()))))


def failing_text(experiment: str, first: Finished) -> str:
    """Return that every arm failed, why the first one did, and that the rest is run all the same."""
    why = said(first)
    return (
        f"{experiment}: every arm failed at its first repeat{f' ({why})' if why else ''}\n"
        "    The rest is run all the same, as registered; Ctrl-C stops here, and what ran is kept."
    )


def waiting_text(processes: list[int], since: float) -> str:
    """Return for whom a session waits, and since when.

    ``waiting since 17:56:03 for the machine: another session (process 27478) measures on it``

    Args:
        processes: The ones that hold it, as far as they are known.
        since: When the wait began, in seconds since the epoch; it is told as local time.
    """
    begun = time.strftime("%H:%M:%S", time.localtime(since))
    if len(processes) > 1:
        whose = f"other sessions (processes {', '.join(map(str, processes))}) measure"
    else:
        which = f" (process {processes[0]})" if processes else ""
        whose = f"another session{which} measures"
    return f"waiting since {begun} for the machine: {whose} on it"
