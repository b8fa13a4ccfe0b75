"""From readings to independent repeats: samples gathered, groups collapsed, contradictions refused."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from pytest_prereg.evidence.model import Value
from pytest_prereg.registry.refusals import nearest, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_prereg.evidence.importers.complaints import Complaints
    from pytest_prereg.evidence.importers.rows import Row
    from pytest_prereg.registry.model import Experiment


_DIGITS = 15


class ImportedRepeat(msgspec.Struct, kw_only=True, frozen=True):
    """One independent repeat that was measured elsewhere."""

    arm: str
    label: str
    """What the file calls it: the group's name, or the repeat's."""
    index: int
    """1-based, within the arm, in the order of the file."""
    line: int | None
    """Where the file first mentions it, if it has lines."""
    block: int | None
    machine: str | None
    values: dict[str, Value]
    diagnostics: dict[str, Any]
    samples: dict[str, int]
    failed: str | None = None
    """Why the task failed, if it did."""


def collapse(rows: Iterable[Row], experiment: Experiment, complaints: Complaints) -> list[ImportedRepeat]:
    """Return the independent repeats that the ``rows`` add up to, in the order of the file."""
    units: dict[object, list[Row]] = {}
    for row in rows:
        units.setdefault(row.unit, []).append(row)
    counts: Counter[str] = Counter()
    repeats = []
    for members in units.values():
        arm = members[0].arm
        counts[arm] += 1
        repeats.append(_repeat(members, counts[arm], experiment, complaints))
    if experiment.pairing == "block":
        _check_blocks(repeats, complaints)
    return repeats


def _repeat(
    rows: Sequence[Row], index: int, experiment: Experiment, complaints: Complaints
) -> ImportedRepeat:
    first = rows[0]
    label = first.group or first.repeat
    _check_metrics(rows, experiment, complaints)
    readings = _readings(rows)
    reduce = _samples if first.group is None else _mean_of_means
    values = {metric: reduce(by_repeat) for metric, by_repeat in readings.items()}
    block = _agreed(rows, "block", complaints)
    return ImportedRepeat(
        arm=first.arm,
        label=label,
        index=index,
        line=first.line,
        block=int(label) if block is None and _is_number(label) else block,
        machine=_agreed(rows, "machine", complaints),
        values={metric: value for metric, value in values.items() if metric in experiment.metrics},
        diagnostics={metric: value for metric, value in values.items() if metric not in experiment.metrics},
        samples={}
        if first.group is None
        else {metric: _count(by_repeat) for metric, by_repeat in readings.items()},
    )


def _readings(rows: Iterable[Row]) -> dict[str, dict[str, list[float]]]:
    """Return the values by metric and repeat."""
    readings: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        readings.setdefault(row.metric, {}).setdefault(row.repeat, []).append(row.value)
    return readings


def _samples(by_repeat: dict[str, list[float]]) -> Value:
    (values,) = by_repeat.values()
    return values[0] if len(values) == 1 else values


def _mean_of_means(by_repeat: dict[str, list[float]]) -> float:
    return _mean([_mean(values) for values in by_repeat.values()])


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _count(by_repeat: dict[str, list[float]]) -> int:
    return sum(map(len, by_repeat.values()))


def _is_number(label: str) -> bool:
    return label.isascii() and label.isdigit() and len(label) <= _DIGITS


def _agreed(rows: Sequence[Row], column: str, complaints: Complaints) -> Any:
    """Return what all rows of a repeat say in ``column``."""
    first = getattr(rows[0], column)
    for row in rows:
        other = getattr(row, column)
        if other != first:
            message = f"{_named(row)} has two entries for {column}: {quoted(first)} and {quoted(other)}"
            complaints.add("PR117", message, line=row.line)
            break
    return first


def _check_metrics(rows: Iterable[Row], experiment: Experiment, complaints: Complaints) -> None:
    """Complain about each repeat that lacks a declared metric, where it is first mentioned."""
    by_repeat: dict[str, list[Row]] = {}
    for row in rows:
        by_repeat.setdefault(row.repeat, []).append(row)
    for members in by_repeat.values():
        there = {row.metric for row in members}
        for metric in experiment.metrics:
            if metric not in there:
                other = nearest(metric, there.difference(experiment.metrics))
                hint = f"; is {quoted(other)} meant?" if other else ""
                message = f"{_named(members[0])} has no {quoted(metric)}{hint}"
                complaints.add("PR115", message, line=members[0].line)


def _check_blocks(repeats: Iterable[ImportedRepeat], complaints: Complaints) -> None:
    """Complain where arms can't be paired: a repeat without a block, or two of one arm in one block."""
    taken: dict[tuple[str, int], str] = {}
    for repeat in repeats:
        if repeat.block is None:
            message = f"repeat {quoted(repeat.label)} can't be paired: it is no number, and no block is given"
            complaints.add("PR116", message, line=repeat.line)
        elif (repeat.arm, repeat.block) in taken:
            other = taken[repeat.arm, repeat.block]
            message = (
                f"repeat {quoted(repeat.label)} is in block {repeat.block}, as {quoted(other)} of this arm is"
            )
            complaints.add("PR116", message, line=repeat.line)
        else:
            taken[repeat.arm, repeat.block] = repeat.label


def _named(row: Row) -> str:
    """Return what a message calls the repeat of ``row``."""
    of_arm = f" of arm {quoted(row.arm)}" if row.arm else ""
    return f"repeat {quoted(row.repeat)}{of_arm}"
