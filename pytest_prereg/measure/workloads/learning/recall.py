"""What an attempt that was cut short had sampled and paid for, to be found again and not bought twice."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pytest_prereg.measure.instruments.reading import NOWHERE, Reached
from pytest_prereg.measure.workloads.learning.checkpoint import Began, Sampled, Settled, Stepped

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_prereg.measure.workloads.learning.checkpoint import Measured, Record
    from pytest_prereg.measure.workloads.learning.reward_ledger import Receipt

WORKLOAD_VERSION = "1"


class Recall:
    """Records of a journal, by what is looked up: of steps that are done again, or were begun."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._rounds: dict[tuple[int, int], Sampled] = {}
        self._receipts: dict[int, list[Receipt]] = {}
        self._measured: dict[int, Measured] = {}
        self.began: list[int] = []
        """Per attempt, how many steps were done when it began."""
        for record in records:
            match record:
                case Sampled():
                    self._rounds[record.step, record.round] = record
                case Settled():
                    self._receipts.setdefault(record.step, []).append(record.receipt)
                case Stepped():
                    self._measured[record.measured.step] = record.measured
                case Began():
                    self.began.append(record.step)

    def round(self, step: int, number: int) -> Sampled | None:
        """Return a round of rollouts that was sampled."""
        return self._rounds.get((step, number))

    def reached(self, step: int) -> Reached:
        """Return the peak of memory up to the last of a step's rounds that was sampled, in bytes, or 0."""
        found = (each.reached for (of, _), each in self._rounds.items() if of == step)
        return reduce(Reached.highest, found, NOWHERE)

    def receipts(self, step: int) -> list[Receipt]:
        """Return the rewards of a step that were paid."""
        return self._receipts.get(step, [])

    def measured(self, step: int) -> Measured | None:
        """Return what a step measured when it was done first."""
        return self._measured.get(step)

    def all_measured(self) -> list[Measured]:
        """Return what was measured, in the order of steps."""
        return list(self._measured.values())
