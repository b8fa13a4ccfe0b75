"""When a series may end early: the looks of a stopping rule, and which repeats each of them sees.

Looks that were registered share the error: each is asked at ``1 - (1 - confidence) / K`` (Bonferroni), so any
estimand may have them. The anytime rule looks after every repeat at the full confidence, since the intervals
of a confidence sequence hold all at once (Wang and Ramdas 2025).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pytest_prereg.judge.faults import index_of
from pytest_prereg.judge.samples import block_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from pytest_prereg.evidence.model import RecordedRepeat
    from pytest_prereg.registry.model import Stopping

SMALLEST_N = 3
"""Where the anytime rule looks first."""


class Look(NamedTuple):
    """One time at which a verdict may be given."""

    confidence: float | None
    """``None`` for the prediction's own."""
    n: int | None = None
    """Repeats of each arm that it sees; ``None`` for all."""
    words: str | None = None
    """When that is: ``at look 1 of 3``."""


def looks_of(stopping: Stopping, planned: int, confidence: float) -> Iterator[Look]:
    """The looks of a rule in turn; ``planned`` is the most repeats of each arm."""
    if stopping.anytime:
        for n in range(min(SMALLEST_N, planned), planned + 1):
            yield Look(confidence, n, f"after {n} of at most {planned} repeats")
        return
    total = len(stopping.looks)
    for number, n in enumerate(stopping.looks, 1):
        yield Look(1 - (1 - confidence) / total, n, f"at look {number} of {total}")


class Course(NamedTuple):
    """The repeats of a series in the order in which a stopping rule comes to see them."""

    repeats: list[RecordedRepeat]
    """In run order."""
    places: dict[str, int]
    """Place of each repeat by its id, from 1: its index, or where arms are paired its block."""
    settled: int
    """As many repeats of each arm are there without a gap."""
    planned: int
    """The most repeats of each arm."""

    def seen_at(self, look: Look) -> list[RecordedRepeat]:
        """The repeats that a look sees; the last one sees all."""
        if look.n is None or look.n >= self.planned:
            return self.repeats
        return [repeat for repeat in self.repeats if self.places[repeat.id] <= look.n]

    @property
    def is_complete(self) -> bool:
        """Whether every planned repeat is there."""
        return self.settled >= self.planned


def course_of(
    repeats: list[RecordedRepeat], arms: Collection[str], planned: Mapping[str, int], *, paired: bool
) -> Course:
    """Put the repeats of ``arms`` in the order of a stopping rule; ``planned`` counts repeats by arm."""
    most = min((planned[arm] for arm in arms), default=0)
    places = _places(repeats, most, paired=paired)
    slots = {(repeat.arm, repeat.index) for repeat in repeats}
    if all((arm, index) in slots for arm in arms for index in range(1, planned[arm] + 1)):
        return Course(repeats, places, most, most)
    there = {(repeat.arm, places[repeat.id]) for repeat in repeats}
    settled = next(n for n in range(most + 1) if any((arm, n + 1) not in there for arm in arms))
    return Course(repeats, places, settled, most)


def faults_seen_at(look: Look, faults: Sequence[str]) -> Sequence[str]:
    """The infrastructure faults of the repeats that a look sees."""
    if look.n is None:
        return faults
    return [fault for fault in faults if index_of(fault) <= look.n]


def _places(repeats: Sequence[RecordedRepeat], most: int, *, paired: bool) -> dict[str, int]:
    """Blocks that somebody else numbered are counted in their order."""
    if not paired:
        return {repeat.id: repeat.index for repeat in repeats}
    blocks = sorted({block_of(repeat) for repeat in repeats})
    if blocks and not (blocks[0] >= 1 and blocks[-1] <= most):
        place = {block: number for number, block in enumerate(blocks, 1)}
        return {repeat.id: place[block_of(repeat)] for repeat in repeats}
    return {repeat.id: block_of(repeat) for repeat in repeats}
