"""Repeats that were cut off: what timeouts and capped samples leave to say about a mean or a ratio."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.judge.model import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_prereg.judge.findings import Doubt
    from pytest_prereg.judge.question import Question
    from pytest_prereg.judge.samples import Reading

RARE_TO = 4
"""As many events as say that there is a tail, and too few to say how heavy."""
UNTESTED = "tail-untested"
_KINDS = {
    "-": "difference of means",
    "/": "ratio",
    "ratio-of-sums": "ratio",
    "sd": "standard deviation",
    "plateau": "largest difference",
    "increasing": "smallest step",
    "exponent": "exponent",
}


def cut_off(question: Question, readings: Iterable[Reading]) -> Doubt | None:
    """Why a mean, difference or ratio of these readings decides nothing: something in them was cut off."""
    events = sum([reading.cut for reading in readings])
    if not events:
        return None
    what = "timeouts or samples at a cap" if events > 1 else "timeout or sample at a cap"
    kind = _KINDS.get(question.operator or question.statistic, "mean")
    if events <= RARE_TO:
        return Reason.RARE_EVENT, f"{events} {what} seen: how often and how long decides the {kind}"
    return Reason.CENSORED, f"{events} {what}: the {kind} has no value without what was cut off"


def untested_tail(question: Question, n: int) -> tuple[str, str] | None:
    """The flag of a metric whose cap was never reached, and how often that could still happen."""
    if not question.caps:
        return None
    rate = 1 - ((1 - question.confidence) / 2) ** (1 / n)
    return UNTESTED, f"no repeat reached the cap: up to {100 * rate:.2g} % of repeats still may"
