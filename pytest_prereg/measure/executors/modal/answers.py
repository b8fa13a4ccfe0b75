"""What a container has answered, held to what a container of this package's can answer.

Bodies run beside what answers for them, and what is kept with the marks others can write, too: what no
supervisor says is no result, and none of it gets into the evidence.
"""

from __future__ import annotations

import itertools
import math
import time
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.evidence.model import Outcome
from pytest_prereg.measure.executors import wire
from pytest_prereg.measure.executors.base import Result
from pytest_prereg.measure.executors.modal.messages import Answer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.measure.executors.modal.calls import End

ENDS = frozenset(
    {Outcome.OK, Outcome.TIMEOUT, Outcome.TASK_FAILED, Outcome.INVALID, Outcome.INFRASTRUCTURE},
)
"""How an attempt can end; all else is concluded from evidence, or decided by a rule."""
MOST_RESTARTS = 100


def is_of(end: End, whose: str) -> bool:
    """Return whether what a call came to is an answer for that repeat."""
    try:
        return isinstance(end, bytes) and _answer(end).whose == whose
    except wire.GarbledError:
        return False


def instead_of(end: End, whose: str) -> str:
    """Return the call that runs a repeat in place of the one that came to this, "" where none does."""
    return _answer(end).instead if isinstance(end, bytes) and is_of(end, whose) else ""


def result_in(answer: bytes, whose: str, launched: float | None) -> Result:
    """Return a container's result, with the time until it had begun: that only our own clock can tell.

    Args:
        answer: What the container said.
        whose: Of which repeat it has to be.
        launched: When, by this process; ``None`` of what an earlier session launched.
    """
    try:
        said = _answer(answer)
    except wire.GarbledError as error:
        return _refused(str(error))
    if said.whose != whose:
        return _refused("what was answered is of another repeat")
    if wrong := next(_wrong_in(said.result), None):
        return _refused(f"what was answered has {wrong}")
    return _timed(said.result, launched)


def _answer(answer: bytes) -> Answer:
    said: Answer = wire.decode(answer, Answer)
    return said


def _refused(why: str) -> Result:
    return Result(outcome=Outcome.INFRASTRUCTURE, cause="answer", error=why)


def _wrong_in(result: Result) -> Iterator[str]:
    """Yield what no container says that nothing but this package has spoken for."""
    if result.outcome not in ENDS:
        yield f'"{result.outcome}" for its outcome'
    if not 0 <= result.restarts <= MOST_RESTARTS:
        yield f"{result.restarts} restarts"
    if any(not math.isfinite(value) or value < 0 for value in result.seconds.values()):
        yield "seconds that no clock shows"
    several = (value if isinstance(value, list) else [value] for value in result.values.values())
    if not all(map(math.isfinite, itertools.chain.from_iterable(several))):
        yield "a value that is no number"


def _timed(result: Result, launched: float | None) -> Result:
    """Return a result with its time in the queue; none lasts longer than it has been waited for."""
    total = result.seconds.get("total")
    if launched is None or total is None or result.restarts:
        return result
    since = time.monotonic() - launched
    times = {**result.seconds, "queue": max(0.0, since - total), "total": min(total, since)}
    return msgspec.structs.replace(result, seconds=times)
