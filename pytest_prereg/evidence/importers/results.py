"""What a command left behind, read as the readings of one repeat."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from pytest_prereg.evidence.importers.catalogue import PLAIN, importer_of
from pytest_prereg.evidence.importers.complaints import Complaints
from pytest_prereg.evidence.importers.contents import contents_of
from pytest_prereg.evidence.importers.documents import read_documents
from pytest_prereg.evidence.importers.found import FoundBenchmark, FoundRepeat, said_of
from pytest_prereg.evidence.importers.numbers import Readings, value_of
from pytest_prereg.evidence.importers.records import read_records
from pytest_prereg.evidence.importers.selecting import failure_of, select_benchmark, values_of
from pytest_prereg.evidence.naming import shown
from pytest_prereg.registry.refusals import listed, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_prereg.evidence.importers.documents import Document
    from pytest_prereg.evidence.model import Value

_ROW = frozenset({"metric", "value"})
_LABEL = ""
"""No name: what is wrong is wrong with the file."""
_NOTHING = object()
_MOST_LEAVES = 1000
_DEEPEST = 20


def read_result(
    path: Path, form: str, fields: Mapping[str, tuple[str, str]], *, select: str | None = None
) -> dict[str, Value]:
    """Return the value of each metric; repeats and samples that the file holds become samples.

    Args:
        path: the file.
        form: its format, one of ``FORMATS`` or an importer's that a plugin brings.
        fields: by metric, the name of the reading in the file and the unit that is declared.
        select: the benchmark that is meant, where the file may hold several.

    Raises:
        EvidenceError: all that is wrong with the file at once.
    """
    complaints = Complaints(shown(path))
    data = contents_of(path, complaints)
    benchmark = _benchmark(data, form, fields, select, complaints)
    (values,) = values_of(benchmark, benchmark.repeats, fields, complaints)
    complaints.raise_if_any()
    return values


def _benchmark(
    data: bytes,
    form: str,
    fields: Mapping[str, tuple[str, str]],
    select: str | None,
    complaints: Complaints,
) -> FoundBenchmark:
    """Return a benchmark of one repeat: all that the file says."""
    if form in PLAIN:
        if select is not None:
            complaints.fail("PR126", f"{form} holds no benchmarks, and {quoted(select)} is selected")
        wanted = [reading for reading, _ in fields.values()]
        said = _csv(data, complaints) if form == "csv" else _json(data, wanted, complaints)
        return FoundBenchmark(name=_LABEL, repeats=(said,))
    found = importer_of(form, complaints).read(data, complaints)
    complaints.raise_if_any()
    selected = select_benchmark(found, select, complaints)
    summed_up = all(reading in selected.summaries for reading, _ in fields.values())
    if selected.refusal and not selected.repeats and not summed_up:
        complaints.fail("PR125", f"{quoted(selected.name)} has no repeats: {selected.refusal}")
    for repeat in selected.repeats:
        if failed := failure_of(repeat, fields):
            complaints.add("PR115", f"{said_of(repeat)} failed: {failed}", line=repeat.line)
    return FoundBenchmark(name=selected.name, repeats=(_joined(selected),))


def _joined(benchmark: FoundBenchmark) -> FoundRepeat:
    """Return all repeats of a benchmark as one; what only some of them have, none has."""
    repeats = benchmark.repeats
    readings: dict[str, Value] = dict(benchmark.summaries)
    unreadable: dict[str, str] = {}
    units = dict(benchmark.summary_units)
    for name in dict.fromkeys(name for one in repeats for name in (*one.readings, *one.unreadable)):
        if name in readings:
            continue
        lacking = [one for one in repeats if name not in one.readings]
        if lacking:
            unreadable[name] = lacking[0].unreadable.get(name, f"is missing in {lacking[0].label}")
        else:
            readings[name] = _samples([one.readings[name] for one in repeats])
            units |= next(({name: one.units[name]} for one in repeats if name in one.units), {})
    return FoundRepeat(label=_LABEL, readings=readings, units=units, unreadable=unreadable)


def _samples(values: Sequence[Value]) -> Value:
    flat = [each for value in values for each in (value if isinstance(value, list) else [value])]
    return flat[0] if len(flat) == 1 else flat


def _csv(data: bytes, complaints: Complaints) -> FoundRepeat:
    """A column is a reading, its rows are samples; an empty cell among others is none."""
    records = read_records(data, is_json=False, complaints=complaints)
    complaints.raise_if_any()
    found = Readings()
    for column in dict.fromkeys(column for record in records for column in record.cells):
        empty = next((record.line for record in records if column not in record.cells), None)
        if empty is not None:
            found.unreadable[column] = f"is empty in line {empty}"
        else:
            found.add(column, [record.cells[column] for record in records])
    return _one(found)


def _json(data: bytes, wanted: Iterable[str], complaints: Complaints) -> FoundRepeat:
    """Rows of ``metric,value``, or whatever the dotted paths lead to; of several documents, in each."""
    documents = read_documents(data, complaints)
    rows = _rows([document.value for document in documents])
    return _of_rows(rows) if rows is not None else _of_paths(documents, dict.fromkeys(wanted))


def _rows(values: list[Any]) -> list[dict[str, Any]] | None:
    several = values[0] if len(values) == 1 and isinstance(values[0], list) else values
    are_rows = several and all(isinstance(one, dict) and one.keys() >= _ROW for one in several)
    return several if are_rows else None


def _of_rows(rows: Iterable[dict[str, Any]]) -> FoundRepeat:
    by_metric: dict[str, list[Any]] = {}
    units: dict[str, set[str]] = {}
    for row in rows:
        name = str(row["metric"])
        by_metric.setdefault(name, []).append(row["value"])
        if row.get("unit") is not None:
            units.setdefault(name, set()).add(str(row["unit"]))
    found = Readings()
    for name, values in by_metric.items():
        if len(units.get(name, ())) > 1:
            found.unreadable[name] = f"is in several units: {listed(sorted(units[name]))}"
        else:
            found.add(name, values)
    return _one(found, {name: min(several) for name, several in units.items()})


def _of_paths(documents: Sequence[Document], wanted: Iterable[str]) -> FoundRepeat:
    found = Readings()
    found.readings |= dict(islice(_leaves(documents[0].value), _MOST_LEAVES))  # what there is to name
    for path in wanted:
        found.readings.pop(path, None)
        values = [_at(document.value, path.split(".")) for document in documents]
        lacking = [document for document, value in zip(documents, values, strict=True) if value is _NOTHING]
        if not lacking:
            found.add(path, values[0] if len(values) == 1 else values)
        elif len(lacking) < len(documents):
            found.unreadable[path] = f"is missing in line {lacking[0].line}"
    return _one(found)


def _at(value: Any, steps: Sequence[str]) -> Any:
    """Return what a dotted path leads to; a key may hold dots itself, and of a list a step is a position."""
    if not steps:
        return value
    if isinstance(value, list):
        step = steps[0]
        is_position = step.isascii() and step.isdigit() and int(step[:9]) < len(value)
        return _at(value[int(step[:9])], steps[1:]) if is_position else _NOTHING
    for length in range(len(steps), 0, -1) if isinstance(value, dict) else ():
        key = ".".join(steps[:length])
        if key in value and (found := _at(value[key], steps[length:])) is not _NOTHING:
            return found
    return _NOTHING


def _leaves(value: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, Value]]:
    """Yield the paths to numbers and to lists of them, as far down as anybody would name one."""
    read = value_of(value) if not isinstance(value, str | dict) else ""
    if not isinstance(read, str):
        yield path, read
    elif isinstance(value, dict | list) and depth < _DEEPEST:
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, below in pairs:
            yield from _leaves(below, f"{path}.{key}" if path else str(key), depth + 1)


def _one(found: Readings, units: dict[str, str] | None = None) -> FoundRepeat:
    """Return what was found as one repeat; a list of one number is that number."""
    readings = {
        name: value[0] if isinstance(value, list) and len(value) == 1 else value
        for name, value in found.readings.items()
    }
    return FoundRepeat(label=_LABEL, readings=readings, units=units or {}, unreadable=found.unreadable)
