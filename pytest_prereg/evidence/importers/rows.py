"""Plain rows, ``arm,repeat,metric,value,unit``: one reading a row, in CSV or JSON.

Optional columns are ``block``, ``machine`` and ``group``. Rows equal in arm, repeat and metric are samples
of one repeat. Rows of one ``group``, the independence unit, collapse into one repeat: the mean over the
group's repeats of each metric. Run order is the order of the file; so is the numbering of an arm's repeats,
whatever their labels.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from pytest_prereg.evidence.importers.complaints import Complaints
from pytest_prereg.evidence.importers.contents import contents_of
from pytest_prereg.evidence.importers.no_rows import refuse_comments, refuse_no_rows
from pytest_prereg.evidence.importers.records import read_records
from pytest_prereg.evidence.importers.repeats import ImportedRepeat, collapse
from pytest_prereg.evidence.lines import digest
from pytest_prereg.evidence.naming import shown
from pytest_prereg.registry.durations import is_point_in_time
from pytest_prereg.registry.model import ONLY_ARM
from pytest_prereg.registry.refusals import listed, quoted, suggestion

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_prereg.evidence.importers.records import Record
    from pytest_prereg.registry.model import Experiment

Form = Literal["csv", "json"]
COLUMNS = ("arm", "repeat", "metric", "value", "unit", "block", "machine", "group")
_NEEDED = ("repeat", "metric", "value")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"[0-9]{1,15}")


class Row(NamedTuple):
    """One reading."""

    line: int
    arm: str
    repeat: str
    metric: str
    value: float
    block: int | None
    machine: str | None
    group: str | None

    @property
    def unit(self) -> tuple[str, bool, str]:
        """What counts as one repeat: the group where there is one."""
        return (self.arm, self.group is not None, self.group or self.repeat)


class ImportedRows(msgspec.Struct, kw_only=True, frozen=True):
    """A file of rows as independent repeats, and what was taken for granted."""

    repeats: list[ImportedRepeat]
    """In run order."""
    rows: int
    format: str
    data: bytes
    """All that is in the file."""
    digest: str
    """Of that."""
    units_assumed: tuple[str, ...]
    """Metrics whose rows named no unit: the declared one was taken."""


def import_rows(
    path: Path,
    experiment: Experiment,
    arm: str | None = None,
    *,
    form: Form | None = None,
    data: bytes | None = None,
) -> ImportedRows:
    """Read rows of ``experiment`` from a CSV file, or from JSON where the name ends so.

    Args:
        path: the file.
        experiment: whose arms, metrics and units the rows must be of.
        arm: the arm of the rows that name none.
        form: what the file is, whatever it is called.
        data: what is in it, where it was read already: it may be another by now.

    Raises:
        EvidenceError: PR110 to PR117, all that is wrong with the file at once.

    """
    complaints = Complaints(shown(path))
    if data is None:
        data = contents_of(path, complaints)
    is_json = form == "json" if form else path.suffix.lower() in {".json", ".jsonl", ".ndjson"}
    if not is_json:
        refuse_comments(data, complaints)
    records = read_records(data, is_json=is_json, complaints=complaints)
    _check_columns(records, complaints)
    reader = _RowReader(experiment, arm, complaints)
    rows = [row for record in records if (row := reader.row(record)) is not None]
    repeats = collapse(rows, experiment, complaints)
    complaints.raise_if_any()
    return ImportedRows(
        repeats=repeats,
        rows=len(rows),
        format="json" if is_json else "csv",
        data=data,
        digest=digest(data),
        units_assumed=tuple(sorted(reader.units_assumed)),
    )


def _check_columns(records: list[Record], complaints: Complaints) -> None:
    first_lines: dict[str, int] = {}
    for record in records:
        for column in record.cells:
            first_lines.setdefault(column, record.line)
    refuse_no_rows(records, first_lines, _NEEDED, complaints)
    for column, line in first_lines.items():
        if column not in COLUMNS:
            complaints.add(
                "PR111", f"unknown column {quoted(column)}{suggestion(column, COLUMNS, 'known')}", line=line
            )
    missing = [column for column in _NEEDED if column not in first_lines]
    if missing:
        complaints.fail(
            "PR111", f"no row has {listed(missing)}; the columns are {quoted(','.join(COLUMNS[:5]))}"
        )


class _RowReader:
    """Makes rows of records; what can't be one is complained about."""

    def __init__(self, experiment: Experiment, arm: str | None, complaints: Complaints) -> None:
        self._experiment = experiment
        self._typed_arm = arm
        self._complaints = complaints
        self.units_assumed: set[str] = set()
        if arm is not None and arm not in experiment.arms:
            complaints.fail("PR113", self._unknown_arm(arm))

    def row(self, record: Record) -> Row | None:
        arm, value = self._arm(record), self._value(record)
        repeat, metric = self._name(record, "repeat"), self._name(record, "metric")
        block, is_fine = self._block(record)
        if metric is not None:
            is_fine &= self._unit_fits(record, metric) and self._is_no_clock(record, metric, value)
        if arm is None or repeat is None or metric is None or value is None or not is_fine:
            return None
        machine, group = _text(record.cells.get("machine")), _text(record.cells.get("group"))
        return Row(record.line, arm, repeat, metric, value, block, machine, group)

    def _complain(self, record: Record, code: str, message: str) -> None:
        self._complaints.add(code, message, line=record.line)

    def _arm(self, record: Record) -> str | None:
        arms = self._experiment.arms
        named = _text(record.cells.get("arm"))
        if named is None:
            named = self._typed_arm or (next(iter(arms)) if len(arms) == 1 else None)
            if named is None:
                message = (
                    f'the row names no arm (there are {listed(arms)}); add a column "arm", or give --arm'
                )
                self._complain(record, "PR113", message)
        elif named not in arms:
            self._complain(record, "PR113", self._unknown_arm(named))
            return None
        elif self._typed_arm not in {None, named}:
            message = f"the row is of arm {quoted(named)}, but --arm {self._typed_arm} was given"
            self._complain(record, "PR113", message)
            return None
        return named

    def _unknown_arm(self, name: str) -> str:
        arms = [arm for arm in self._experiment.arms if arm != ONLY_ARM]
        hint = suggestion(name, arms, "its arms") if arms else "; it has no arms"
        return f"experiment {quoted(self._experiment.id)} has no arm {quoted(name)}{hint}"

    def _name(self, record: Record, column: str) -> str | None:
        cell = record.cells.get(column)
        text = _text(cell)
        if text is None:
            self._complain(record, "PR117", f"the row names no {column}")
        elif not isinstance(cell, str | int) or isinstance(cell, bool):
            message = f"{column} {quoted(cell)} is neither text nor a whole number"
            self._complain(record, "PR117", message)
            return None
        return text

    def _value(self, record: Record) -> float | None:
        cell = record.cells.get("value")
        number = _number(cell)
        if number is None:
            what = "the row has no value" if cell is None else f"value {quoted(cell)} is not a finite number"
            self._complain(record, "PR112", f"{what}; write digits and one point, no separators, no unit")
        return number

    def _block(self, record: Record) -> tuple[int | None, bool]:
        text = _text(record.cells.get("block"))
        if text is None:
            return None, True
        if not _WHOLE.fullmatch(text):
            self._complain(record, "PR116", f"block {quoted(text)} is not a whole number")
            return None, False
        return int(text), True

    def _unit_fits(self, record: Record, metric: str) -> bool:
        declared = self._experiment.metrics.get(metric)
        if declared is None:
            return True
        unit = _text(record.cells.get("unit"))
        if unit is None:
            self.units_assumed.add(metric)
        elif unit != declared.unit:
            message = f"unit {quoted(unit)}, but {quoted(metric)} is declared in {quoted(declared.unit)}"
            self._complain(record, "PR114", f"{message}; nothing is converted: write the values in that unit")
            return False
        return True

    def _is_no_clock(self, record: Record, metric: str, value: float | None) -> bool:
        """Whether a time is one that passed: what a clock said tells nothing, and drowns what differs."""
        declared = self._experiment.metrics.get(metric)
        if declared is None or value is None or not is_point_in_time(value, declared.unit):
            return True
        cell = f"value {quoted(str(record.cells['value']))} of {quoted(metric)} in {declared.unit}"
        self._complain(record, "PR112", f"{cell} is a point in time, not a duration; subtract the start")
        return False


def _text(cell: Any) -> str | None:
    """Return a label: text, or a whole number from JSON."""
    if isinstance(cell, str):
        return cell.strip() or None
    return None if cell is None else str(cell)


def _number(cell: Any) -> float | None:
    if isinstance(cell, str):
        number = float(cell) if _NUMBER.fullmatch(cell) else math.nan
    elif isinstance(cell, int | float) and not isinstance(cell, bool):
        try:
            number = float(cell)
        except OverflowError:
            return None
    else:
        return None
    return number if math.isfinite(number) else None
