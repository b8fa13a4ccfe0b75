"""Criterion.rs: ``sample.json`` of both ages, ``estimates.json`` and ``raw.csv``.

All samples of a file are of one process, so a file is one repeat. Other files beside these hold no time.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pytest_prereg.evidence.importers.documents import read_document
from pytest_prereg.evidence.importers.found import FoundBenchmark, FoundRepeat
from pytest_prereg.evidence.importers.numbers import Readings, finite_number, value_of, written
from pytest_prereg.evidence.importers.records import read_records
from pytest_prereg.registry.refusals import listed, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_prereg.evidence.importers.complaints import Complaints
    from pytest_prereg.evidence.importers.records import Record

_UNIT = "ns"
"""Of wall time, which is what the JSON files are taken to hold: they do not say."""
_NAME = "criterion"
_RAW = b"group,function,value,"
_COUNT = "iteration_count"
_MEASURED = ("sample_measured_value", "sample_time_nanos")
_STATISTICS = {
    "mean": "Mean",
    "median": "Median",
    "median_abs_dev": "MedianAbsDev",
    "slope": "Slope",
    "std_dev": "StdDev",
}
"""By its name, what an estimate was called before version 0.3.4."""
_ESTIMATED = frozenset({"mean", "median", "Mean", "Median"})
_ADVICE = "Import new/sample.json of each process."
_FLAT = "is not fitted where each sample has as many iterations"
_FENCES = 4
_LONGEST_HEAD = 400


class _Criterion:
    name = "criterion"
    repeat = "a process"

    def recognises(self, name: str, data: bytes) -> bool:
        del name
        head = data[:_LONGEST_HEAD].lstrip(b"\xef\xbb\xbf \t\r\n")
        if head.startswith(_RAW):
            return _COUNT.encode() in head
        if head.startswith(b"["):
            return _is_old_sample(head) or _is_fences(data)
        marks = (b'"sampling_mode"', b'"point_estimate"', b'"directory_name"')
        return head.startswith(b"{") and any(mark in head for mark in marks)

    def read(self, data: bytes, complaints: Complaints) -> list[FoundBenchmark]:
        if data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(_RAW):
            return _raw(read_records(data, is_json=False, complaints=complaints), complaints)
        document = read_document(data, complaints)
        if isinstance(document, dict) and "iters" in document and "times" in document:
            is_linear = document.get("sampling_mode") == "Linear"
            return [_sample(document, ("iters", "times"), complaints, is_linear=is_linear)]
        if _is_pair(document):
            return [_sample(document, (0, 1), complaints, is_linear=True)]
        if not isinstance(document, dict) or document.keys().isdisjoint(_ESTIMATED):
            complaints.fail("PR127", _what_else(document), advice=_ADVICE)
        return [_estimates(document, complaints)]


IMPORTER = _Criterion()


def _is_old_sample(head: bytes) -> bool:
    return head.replace(b" ", b"").replace(b"\n", b"").startswith(b"[[") and b'"' not in head


def _is_fences(data: bytes) -> bool:
    """Whether the file is a ``tukey.json``: four numbers and nothing else."""
    parts = data.strip(b"\xef\xbb\xbf \t\r\n").removeprefix(b"[").removesuffix(b"]").split(b",", _FENCES)
    return len(parts) == _FENCES and all(
        finite_number(part.decode("ascii", "replace").strip()) is not None for part in parts
    )


def _is_pair(document: Any) -> bool:
    """Whether it is a sample as it was written before version 0.3: iterations, then times."""
    return isinstance(document, list) and len(document) == 2 and all(isinstance(o, list) for o in document)  # noqa: PLR2004


def _what_else(document: Any) -> str:
    if isinstance(document, dict) and "directory_name" in document:
        return "this is a benchmark.json of criterion: it names a benchmark and holds no time"
    if isinstance(document, list) and len(document) == _FENCES and isinstance(value_of(document), list):
        return "this is a tukey.json of criterion: it holds the fences of outliers and no time"
    return "this is no sample.json, estimates.json or raw.csv of criterion"


def _sample(
    document: Any, places: tuple[Any, Any], complaints: Complaints, *, is_linear: bool
) -> FoundBenchmark:
    """Return the samples, each as time per iteration, and what criterion computes of them.

    Args:
        document: The file.
        places: Where it has the iterations, and the times.
        complaints: Of the file.
        is_linear: Whether the iterations rise from sample to sample.
    """
    iterations, times = (document[place] for place in places)
    if not isinstance(iterations, list) or not isinstance(times, list) or len(iterations) != len(times):
        complaints.fail("PR110", "iterations and times of the sample are not two lists of one length")
    counts, totals = value_of(iterations), value_of(times)
    at, then = (f"[{place}]" if isinstance(place, int) else place for place in places)
    if isinstance(counts, str):
        complaints.fail("PR112", f"{at} {counts}")
    if isinstance(totals, str):
        complaints.fail("PR112", f"{then} {totals}")
    readings = _per_iteration(_list(counts), _list(totals), complaints, is_linear=is_linear)
    return _benchmark(_NAME, readings, {} if is_linear else {"slope": _FLAT}, _UNIT)


def _list(value: float | list[float]) -> list[float]:
    return value if isinstance(value, list) else [value]


def _per_iteration(
    counts: Sequence[float], totals: Sequence[float], complaints: Complaints, *, is_linear: bool
) -> Readings:
    if min(counts) <= 0:
        complaints.fail("PR112", f"a sample has {min(counts):g} iterations")
    found = Readings()
    each = [total / count for count, total in zip(counts, totals, strict=True)]
    found.add("time", each)
    found.add("mean", _sum(each) / len(each))
    found.add("median", _median(sorted(each)))
    if is_linear:
        squares = _sum(count * count for count in counts)
        products = _sum(count * total for count, total in zip(counts, totals, strict=True))
        found.add("slope", products / squares if squares else math.nan)
    return found


def _sum(values: Iterable[float]) -> float:
    """Return the sum, added in order as criterion does.

    Mean, median and slope are then those of estimates.json to the last bit: so the numbers of a process are
    known again, whichever of its files they come from.
    """
    total = 0.0
    for value in values:
        total += value
    return total


def _median(ordered: Sequence[float]) -> float:
    last = len(ordered) - 1
    below, above = ordered[last // 2], ordered[(last + 1) // 2]
    return below + (above - below) * 0.5


def _benchmark(name: str, found: Readings, unreadable: dict[str, str], unit: str) -> FoundBenchmark:
    repeat = FoundRepeat(
        label="the process",
        readings=found.readings,
        units=dict.fromkeys(found.readings, unit),
        unreadable=found.unreadable | unreadable,
    )
    return FoundBenchmark(name=name, repeats=(repeat,))


def _estimates(document: Mapping[str, Any], complaints: Complaints) -> FoundBenchmark:
    """Return the estimates; their names were capitalised once."""
    if "std_dev" not in document and "StdDev" not in document:
        what = "this is a change/estimates.json of criterion: it compares two processes and holds no time"
        complaints.fail("PR127", what, advice=_ADVICE)
    found = Readings()
    for name, capitalised in _STATISTICS.items():
        estimate = document.get(name, document.get(capitalised))
        found.add(name, estimate.get("point_estimate") if isinstance(estimate, dict) else estimate)
    return _benchmark(_NAME, found, {"time": "is a list of samples, which only sample.json has"}, _UNIT)


def _raw(records: Sequence[Record], complaints: Complaints) -> list[FoundBenchmark]:
    groups: dict[tuple[str, ...], list[Record]] = {}
    for record in records:
        parts = tuple(str(record.cells.get(part, "")) for part in ("group", "function", "value"))
        groups.setdefault(parts, []).append(record)
    found = [
        _raw_benchmark("/".join(filter(None, parts)) or _NAME, rows, complaints)
        for parts, rows in groups.items()
    ]
    complaints.raise_if_any()
    return [one for one in found if one is not None]


def _raw_benchmark(name: str, rows: Sequence[Record], complaints: Complaints) -> FoundBenchmark | None:
    samples = [sample for row in rows if (sample := _raw_sample(row, complaints)) is not None]
    units = {str(row.cells.get("unit", _UNIT)) for row in rows}
    if len(units) > 1:
        complaints.add("PR117", f"{quoted(name)} is in {listed(sorted(units))}", line=rows[0].line)
    if len(samples) < len(rows) or len(units) > 1:
        return None
    counts, totals = zip(*samples, strict=True)
    is_linear = len(set(counts)) > 1  # which this file does not say; linear counts are d, 2d, 3d and so on
    found = _per_iteration(counts, totals, complaints, is_linear=is_linear)
    return _benchmark(name, found, {} if is_linear else {"slope": _FLAT}, units.pop())


def _raw_sample(row: Record, complaints: Complaints) -> tuple[float, float] | None:
    """Return iterations and time of a row, or complain."""
    column = next((name for name in _MEASURED if name in row.cells), _MEASURED[0])
    count, total = finite_number(row.cells.get(_COUNT)), finite_number(row.cells.get(column))
    if count is None or count <= 0:
        complaints.add("PR112", f"{_COUNT} is {written(row.cells.get(_COUNT))}", line=row.line)
    if total is None:
        complaints.add("PR112", f"{column} is {written(row.cells.get(column))}", line=row.line)
    return None if count is None or count <= 0 or total is None else (count, total)
