"""Whether readings can have an interval at all: enough of them, nothing cut off, logarithms where taken.

For every estimand that rests on a t or a chi-square distribution.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from pytest_prereg.judge.censoring import cut_off, untested_tail
from pytest_prereg.judge.findings import Finding, too_few
from pytest_prereg.judge.model import Reason

if TYPE_CHECKING:
    from pytest_prereg.judge.findings import Doubt
    from pytest_prereg.judge.question import Question
    from pytest_prereg.judge.samples import Reading

SMALLEST_N = 3


def blank_finding(question: Question, columns: list[list[Reading]], method: str) -> Finding:
    """A finding without numbers on these readings; n is the smaller arm's."""
    if len(columns) == 1:
        readings, n = columns[0], len(columns[0])
    else:
        readings, n = _all_of(columns), min(map(len, columns))
    repeats = tuple([reading.repeat.id for reading in readings])
    return Finding(level=question.confidence, method=method, n=n, repeats=repeats)


def unfit(question: Question, columns: list[list[Reading]], n: int) -> Doubt | None:
    """Why these readings have no interval at all."""
    if n < SMALLEST_N:
        per_arm = " per arm" if len(columns) > 1 and not question.paired else ""
        return too_few(SMALLEST_N, n, "block" if question.paired else "repeat", per_arm)
    readings = columns[0] if len(columns) == 1 else _all_of(columns)
    if question.takes_logs:
        for reading in readings:
            if reading.low <= 0 and not reading.cut:
                detail = f"repeat {reading.repeat.id} is {reading.low:.10g}, which has no logarithm"
                return Reason.UNBOUNDED, detail
    return cut_off(question, readings)


def _all_of(columns: list[list[Reading]]) -> list[Reading]:
    return [reading for column in columns for reading in column]


def described(question: Question, blank: Finding, method: str, flags: tuple[str, ...]) -> Finding:
    """``blank`` with the method and flags of its interval, and what was never seen to be cut off."""
    tail = untested_tail(question, len(blank.repeats)) if question.caps else None
    if tail is None:
        return blank if method == blank.method and not flags else replace(blank, method=method, flags=flags)
    flag, note = tail
    return replace(blank, method=method, flags=(*flags, flag), note=note)
