"""Files of Google Benchmark (``--benchmark_out``): repetitions, all of one process, and their aggregates.

Rows of ``run_type`` ``iteration`` are repetitions; aggregates (mean, median, stddev, cv, BigO, RMS) are never
read. Before version 1.5 rows had no ``run_type``, and aggregates are told by the ends of their names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_prereg.evidence.importers.documents import (
    entries_of,
    may_have,
    object_of,
    read_document,
    text_of,
)
from pytest_prereg.evidence.importers.found import FoundBenchmark, FoundRepeat
from pytest_prereg.evidence.importers.numbers import Readings, finite_number, written
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_prereg.evidence.importers.complaints import Complaints

_SCHEMAS = (None, 1)
_AGGREGATES = ("_mean", "_median", "_stddev", "_cv", "_BigO", "_RMS")
_NO_READING = frozenset(
    {"family_index", "per_family_instance_index", "repetitions", "repetition_index", "threads"}
    | {"error_occurred", "skipped"}
)
_TIMES = ("real_time", "cpu_time")
_UNITS = ("ns", "us", "ms", "s")
_MOST = 1 << 31
_TOLD = ("date", "executable", "library_version", "library_build_type")

Row = tuple[str, dict[str, Any]]
"""Where the document has an entry, and what is in it."""


class _GoogleBenchmark:
    name = "google-benchmark"
    repeat = "a process"

    def recognises(self, name: str, data: bytes) -> bool:
        del name
        return may_have(data, ("context", "benchmarks"), ("time_unit", "num_cpus"))

    def read(self, data: bytes, complaints: Complaints) -> list[FoundBenchmark]:
        document = object_of(read_document(data, complaints))
        context = object_of(document.get("context"))
        if (schema := context.get("json_schema_version")) not in _SCHEMAS:
            message = f"the file is of version {quoted(schema)} of Google Benchmark's format; 1 is known"
            complaints.fail("PR127", message)
        rows = entries_of("benchmarks", document.get("benchmarks"), complaints)
        for at, row in rows:
            if text_of(row.get("run_name")) is None and text_of(row.get("name")) is None:
                complaints.add("PR110", f"{at} names no benchmark")
        complaints.raise_if_any()
        groups = _groups(rows)
        if not groups:
            complaints.fail("PR110", "the file holds no benchmark, aggregates apart")
        told = {key: context[key].rpartition("/")[2] for key in _TOLD if isinstance(context.get(key), str)}
        found = [_benchmark(name, members, told, complaints) for name, members in groups.items()]
        complaints.raise_if_any()
        return found


def _groups(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the repetitions of each benchmark."""
    names = {text_of(row.get("name")) for _, row in rows}
    groups: dict[str, list[Row]] = {}
    for at, row in rows:
        name = text_of(row.get("run_name")) or text_of(row.get("name"))
        if name and not _is_aggregate(row, names):
            groups.setdefault(name, []).append((at, row))
    return groups


def _is_aggregate(row: dict[str, Any], names: set[str | None]) -> bool:
    if "run_type" in row:
        return row["run_type"] != "iteration" or "aggregate_name" in row
    name = text_of(row.get("name")) or ""
    base = next((name.removesuffix(end) for end in _AGGREGATES if name.endswith(end)), None)
    if base is None:
        return False
    beside = {f"{base}{end}" for end in _AGGREGATES} - {name}
    return base in names or "big_o" in row or "rms" in row or not beside.isdisjoint(names)


def _benchmark(
    name: str, found: Sequence[Row], told: dict[str, Any], complaints: Complaints
) -> FoundBenchmark:
    rows = [row for _, row in found]
    ran = [(at, row) for at, row in found if not row.get("skipped")]
    repeats = [_repetition(number, at, row, told, complaints) for number, (at, row) in enumerate(ran, 1)]
    refusal = None
    if not repeats:
        refusal = f"it was skipped: {text_of(rows[0].get('skip_message')) or 'no reason is given'}"
    elif (there := _repetitions(rows)) > len(rows):
        refusal = f"{len(rows)} of its {there} repetitions are here, and all of them are of one process"
    elif len(repeats) > 1:
        refusal = f"its {len(repeats)} repetitions are of one process"
    is_whole = len(repeats) > 1 and _repetitions(rows) <= len(rows)
    return FoundBenchmark(
        name=name,
        repeats=tuple(repeats),
        refusal=refusal,
        declared_by=("session",) if is_whole else (),
    )


def _repetitions(rows: Sequence[dict[str, Any]]) -> int:
    """Return how many repetitions there were, as rows say since version 1.5: all are written, or none."""
    numbers = [finite_number(row.get("repetitions")) or 0.0 for row in rows]
    numbers += [(finite_number(row.get("repetition_index")) or 0.0) + 1 for row in rows]
    return int(min(max(numbers), _MOST))


def _repetition(
    number: int, at: str, row: dict[str, Any], told: dict[str, Any], complaints: Complaints
) -> FoundRepeat:
    """All numbers of a row, counters included; its times are in the row's own unit."""
    unit = row.get("time_unit")
    if "time_unit" in row and unit not in _UNITS:
        complaints.add("PR127", f"repetition {number} at {at} is in the unknown unit of time {written(unit)}")
    found = Readings()
    for key, value in row.items():
        if key in _TIMES or (key not in _NO_READING and not isinstance(value, str | dict)):
            found.add(key, value)
    has_failed = bool(row.get("error_occurred"))
    return FoundRepeat(
        label=f"repetition {number}",
        at=at,
        readings=found.readings,
        units=dict.fromkeys(_TIMES, str(unit)) if "time_unit" in row else {},
        unreadable=found.unreadable,
        diagnostics=told,
        failed=(text_of(row.get("error_message")) or "it says so, and not why") if has_failed else None,
    )


IMPORTER = _GoogleBenchmark()
