"""Where predictions stand, in words: their order, what the lock records of them, and how many there are."""

from __future__ import annotations

import math
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

from pytest_prereg.judge.findings import plural
from pytest_prereg.judge.numbers import number_text

if TYPE_CHECKING:
    from pytest_prereg.audit.audited import Audited, Recorded
    from pytest_prereg.report.findings.reported import Reported

_PLAIN = "registered", "registered", "confirmatory"
"""Status, order and standing that need no word."""


def is_plain(one: Audited, compared: str | None) -> bool:
    """Whether a prediction is registered as it should be, and its record is what it was before."""
    return (one.status, one.order, one.standing) == _PLAIN and not is_changed(one, compared)


def is_changed(one: Audited, compared: str | None) -> bool:
    """Whether its record differs from the one that it is compared with; never where there is none."""
    return compared is not None and one.base != one.head


def stands_text(one: Audited) -> str:
    """Return where one stands: ``exploratory: mismatch``, ``withdrawn (counted as refuted): why``."""
    if one.status == "withdrawn":
        return f"withdrawn{' (counted as refuted)' if one.is_counted else ''}: {one.withdrawal}"
    if one.status == "removed":
        return "no longer in the study"
    return f"{one.standing}: {one.order}"


def recorded_text(recorded: Recorded | None) -> str:
    """Return a record as ``supported, 0.98 [0.95, 1.01] s, n 30``; ``nothing`` where there is none."""
    if recorded is None:
        return "nothing"
    count = f"n {recorded.n}" if recorded.n is not None else ""
    return ", ".join(filter(None, (recorded.verdict, recorded.reason, numbers(recorded), count)))


def numbers(recorded: Recorded) -> str:
    """Return the estimate with its interval and unit, whatever was written there; empty where it has none."""
    if recorded.estimate is None and recorded.interval is None:
        return ""
    sides = recorded.interval and tuple(map(finite, recorded.interval))
    with suppress(OverflowError):  # close to the largest number there is, rounding leaves the range
        return number_text(finite(recorded.estimate), sides, recorded.unit)
    return "numbers too large to be shown"


def finite(value: float | None) -> float | None:
    """Return a number as one that can be printed, or ``None``."""
    with suppress(OverflowError):
        return float(value) if value is not None and math.isfinite(value) else None
    return None


def in_order_of_interest(reported: Reported) -> list[Audited]:
    """Return all predictions, those first of which more is to be said than that they are registered."""
    return sorted(reported.predictions, key=lambda one: is_plain(one, reported.compared))


def standings(reported: Reported) -> list[str]:
    """Return how many predictions are confirmatory, by grade, and what is recorded of them, a line each.

    What was withdrawn is counted by itself, and its verdict only where it stays counted.
    """
    if not reported.is_loaded:
        return ["no prediction was looked at: what is wrong above has to be mended first"]
    whole = plural(len(reported.predictions), "prediction")
    lines = [f"{whole}: {' · '.join(_parts(reported)) or 'none'}"]
    counted = (one for one in reported.predictions if one.status != "withdrawn" or one.is_counted)
    verdicts = Counter(one.head.verdict for one in counted if one.head)
    told = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
    return [*lines, f"{plural(verdicts.total(), 'recorded verdict')}: {told}"] if verdicts else lines


def _parts(reported: Reported) -> list[str]:
    """Return the counts of those that stand, and of those that are withdrawn."""
    there = [one for one in reported.predictions if one.status in ("registered", "unregistered")]
    parts = []
    for standing in ("confirmatory", "replication", "exploratory"):
        orders = Counter(one.order for one in there if one.standing == standing)
        grades = ", ".join(f"{count} {order}" for order, count in orders.most_common())
        if orders:
            parts.append(f"{orders.total()} {standing} ({grades})")
    removed = sum(one.status == "removed" for one in reported.predictions)
    parts += [f"{removed} no longer in the study"] if removed else []
    return [part for part in (", ".join(parts), _withdrawn(reported)) if part]


def _withdrawn(reported: Reported) -> str:
    withdrawn = [one for one in reported.predictions if one.status == "withdrawn"]
    counted = sum(one.is_counted for one in withdrawn)
    which = f"{counted} of them " if counted < len(withdrawn) else ""
    return (
        f"{len(withdrawn)} withdrawn" + (f", {which}counted as refuted" if counted else "")
        if withdrawn
        else ""
    )
