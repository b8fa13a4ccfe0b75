"""The ledger of rewards: one per trajectory, paid once, and never to another.

A reward comes back from elsewhere, late, twice or out of order. What it is for stands on its receipt: the id
of a trajectory and the digest of what was graded.
"""

from __future__ import annotations

import math
from enum import StrEnum
from threading import Lock
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_prereg.measure.workloads.learning.rollouts import Trajectory

WORKLOAD_VERSION = "1"


class RewardUnavailableError(Exception):
    """What gives a reward could not be reached: a fault of the infrastructure, and no verdict on the task."""


class LedgerError(ValueError):
    """A receipt that no trajectory may be rewarded by, or a reward that isn't there."""


class Ending(StrEnum):
    """How the grading of a completion ended."""

    GRADED = "graded"
    TIMED_OUT = "timed-out"
    """The completion took longer than it may: its own failure, and a reward of 0."""


class Grade(msgspec.Struct, frozen=True, kw_only=True):
    """What a completion is worth."""

    reward: float
    ending: Ending = Ending.GRADED

    def __post_init__(self) -> None:
        # One and the same type, or what is read back from a journal would not be what was written.
        if not hasattr(type(self.reward), "__float__"):
            raise TypeError(f"a reward is a number, and not {self.reward!r}")
        msgspec.structs.force_setattr(self, "reward", float(self.reward))
        if not math.isfinite(self.reward):
            raise ValueError(
                f"a reward of {self.reward} is none; where there is no verdict, raise RewardUnavailableError"
            )
        if self.ending is Ending.TIMED_OUT and self.reward:
            raise ValueError(f"a completion that timed out can't have a reward of {self.reward:g}; give 0")


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """The grade of one trajectory."""

    trajectory: str
    """Its id."""
    digest: str
    """Of what was graded."""
    attempt: int
    """The how manieth, from 1; those before it were faults."""
    grade: Grade
    seconds: float
    """For how long it was graded, faults included."""
    waited: float = 0.0
    """For how long the accelerator had stood still for the rewards of the step by then."""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """A fault of the infrastructure that gives rewards."""

    trajectory: str
    attempt: int
    seconds: float
    reason: str


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one trajectory."""

    digest: str
    receipt: Receipt | None = None
    """``None``: not settled."""


class LedgerState(msgspec.Struct, frozen=True, kw_only=True):
    """All that a ledger holds, to go on from."""

    entries: dict[str, Entry] = {}
    faults: list[Fault] = []
    late: int = 0


class Ledger:
    """Settles each trajectory once; any thread may hand in receipts."""

    def __init__(self, state: LedgerState | None = None) -> None:
        state = state or LedgerState()
        self._entries = dict(state.entries)
        self._faults = list(state.faults)
        self._late = state.late
        self._lock = Lock()

    @property
    def late(self) -> int:
        """How many receipts came for what was settled."""
        return self._late

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Every fault, in the order in which they were told."""
        return tuple(self._faults)

    def state(self) -> LedgerState:
        """Return what it holds."""
        with self._lock:
            return LedgerState(entries=dict(self._entries), faults=list(self._faults), late=self._late)

    def open(self, trajectories: Iterable[Trajectory]) -> None:
        """Expect a reward for each.

        Raises:
            LedgerError: One of that id was opened before.
        """
        with self._lock:
            for each in trajectories:
                if each.id in self._entries:
                    raise LedgerError(f"trajectory {each.id} was opened before; an id stands for one alone")
                self._entries[each.id] = Entry(digest=each.digest)

    def settle(self, receipt: Receipt) -> bool:
        """Settle a trajectory; return whether that was new: what is settled stays, and a late one is counted.

        Raises:
            LedgerError: No such trajectory was opened, or it isn't what was graded.
        """
        with self._lock:
            entry = self._entry(receipt.trajectory, receipt.digest, "the receipt")
            if entry.receipt is not None:
                self._late += 1
                return False
            self._entries[receipt.trajectory] = msgspec.structs.replace(entry, receipt=receipt)
            return True

    def note(self, fault: Fault) -> None:
        """Count a fault; it settles nothing."""
        with self._lock:
            self._faults.append(fault)

    def is_settled(self, trajectory: Trajectory) -> bool:
        """Whether a trajectory has its reward."""
        return self._entry(trajectory.id, trajectory.digest, "what is asked for").receipt is not None

    def receipts(self, trajectories: Sequence[Trajectory]) -> list[Receipt]:
        """Return the receipt of each, in their order.

        Raises:
            LedgerError: One has none, or is not what was opened under its id.
        """
        found = []
        for each in trajectories:
            receipt = self._entry(each.id, each.digest, "what is asked for").receipt
            if receipt is None:
                raise LedgerError(f"trajectory {each.id} has no reward yet")
            found.append(receipt)
        return found

    def _entry(self, trajectory: str, digest: str, what: str) -> Entry:
        entry = self._entries.get(trajectory)
        if entry is None:
            raise LedgerError(f'no trajectory "{trajectory}" was opened, and {what} names it')
        if entry.digest != digest:
            raise LedgerError(
                f"trajectory {trajectory} has the digest {entry.digest[:12]}, and {what} {digest[:12]}: "
                "a reward is for what was graded alone"
            )
        return entry
