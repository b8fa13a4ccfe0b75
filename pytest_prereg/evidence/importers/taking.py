"""From a file, of whatever format, to the independent repeats of an experiment."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pytest_prereg.evidence.importers.complaints import Complaints
from pytest_prereg.evidence.importers.contents import contents_of
from pytest_prereg.evidence.importers.found import said_of
from pytest_prereg.evidence.importers.recognising import importer_for
from pytest_prereg.evidence.importers.repeats import ImportedRepeat
from pytest_prereg.evidence.importers.rows import import_rows
from pytest_prereg.evidence.importers.selecting import failure_of, is_same_unit, select_benchmark, values_of
from pytest_prereg.evidence.importers.sketches import copies_in, sketch_of
from pytest_prereg.evidence.lines import digest
from pytest_prereg.evidence.naming import shown
from pytest_prereg.registry.model import ONLY_ARM
from pytest_prereg.registry.refusals import listed, quoted, suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_prereg.evidence.importers.found import FoundBenchmark, FoundRepeat, Importer
    from pytest_prereg.evidence.importers.rows import Form
    from pytest_prereg.evidence.model import Value
    from pytest_prereg.registry.model import Experiment

_TELLING = 3
"""So many distinct numbers are no accident when they come again."""


class TakenFile(msgspec.Struct, kw_only=True, frozen=True):
    """A file as independent repeats, and what its header is to say of it."""

    path: Path
    data: bytes
    digest: str
    repeats: list[ImportedRepeat]
    """In run order."""
    origin: dict[str, Any]
    """``format``, what was selected, and what was taken for granted."""

    @property
    def benchmark(self) -> str | None:
        """The benchmark that was taken; ``None`` of plain rows."""
        return self.origin.get("benchmark")

    @property
    def readings(self) -> str | None:
        """A digest of all numbers of that benchmark, however the file is written."""
        return self.origin.get("readings")

    @property
    def sketch(self) -> list[str]:
        """By which those numbers are known although some were changed; empty of plain rows."""
        sketch: list[str] = self.origin.get("sketch", [])
        return sketch


def take_file(
    path: Path,
    experiment: Experiment,
    *,
    arm: str | None = None,
    form: str | None = None,
    select: str | None = None,
) -> TakenFile:
    """Return the repeats that the file at ``path`` holds.

    Args:
        path: A file of another tool, or of rows.
        experiment: Whose arms, metrics and units they must be of.
        arm: The arm of repeats that name none.
        form: The format, where its content doesn't say it.
        select: The benchmark that is meant, where the file holds several.

    Raises:
        EvidenceError: PR110 to PR117 and PR125 to PR127, all that is wrong with the file at once.
    """
    complaints = Complaints(shown(path))
    data = contents_of(path, complaints)
    importer = importer_for(path, data, form, complaints)
    if isinstance(importer, str):
        if select is not None:
            complaints.fail("PR126", f"rows are of no benchmark, and {quoted(select)} is selected")
        return _of_rows(path, data, experiment, arm, importer)
    found = importer.read(data, complaints)
    complaints.raise_if_any()
    benchmark = select_benchmark(found, select, complaints)
    repeats = _repeats(benchmark, importer.repeat, experiment, arm, complaints)
    origin = _origin(importer, benchmark, experiment)
    return TakenFile(path=path, data=data, digest=digest(data), repeats=repeats, origin=origin)


def _of_rows(path: Path, data: bytes, experiment: Experiment, arm: str | None, form: Form) -> TakenFile:
    rows = import_rows(path, experiment, arm, form=form, data=data)
    origin: dict[str, Any] = {"format": rows.format, "rows": rows.rows}
    if rows.units_assumed:
        origin["units-assumed"] = list(rows.units_assumed)
    return TakenFile(path=path, data=rows.data, digest=rows.digest, repeats=rows.repeats, origin=origin)


def _repeats(
    benchmark: FoundBenchmark, repeat: str, experiment: Experiment, arm: str | None, complaints: Complaints
) -> list[ImportedRepeat]:
    _check_independent(benchmark, repeat, experiment, complaints)
    of_arm = _arm(experiment, arm, complaints)
    fields = _fields(experiment)
    values = _values(benchmark, fields, complaints)
    for copy, original in copies_in(benchmark.repeats):
        message = f"{said_of(copy)} has the very numbers of {said_of(original)}: it is a copy, and no repeat"
        complaints.add("PR117", message, line=copy.line)
    complaints.raise_if_any()
    pairs = enumerate(zip(benchmark.repeats, values, strict=True), 1)
    return [_repeat(index, one, of_arm, taken, failure_of(one, fields)) for index, (one, taken) in pairs]


def _fields(experiment: Experiment) -> dict[str, tuple[str, str]]:
    """Return by metric the reading that it is, and its unit."""
    return {name: (metric.source or name, metric.unit) for name, metric in experiment.metrics.items()}


def _origin(importer: Importer, benchmark: FoundBenchmark, experiment: Experiment) -> dict[str, Any]:
    origin: dict[str, Any] = {
        "format": importer.name,
        "benchmark": benchmark.name,
        "repeat": importer.repeat,
        "repeats": len(benchmark.repeats),
    }
    if readings := _readings_digest(benchmark.repeats):
        origin["readings"] = readings
    if sketch := sketch_of(benchmark.repeats):
        origin["sketch"] = sketch
    return origin | _taken_for_granted(benchmark, experiment)


def _check_independent(
    benchmark: FoundBenchmark, repeat: str, experiment: Experiment, complaints: Complaints
) -> None:
    unit = experiment.table.unit
    if benchmark.refusal is None or unit in benchmark.declared_by:
        return
    if not benchmark.declared_by:
        complaints.add("PR125", f"{quoted(benchmark.name)} has no repeats: {benchmark.refusal}")
        return
    declared = " or ".join(f'unit = "{one}"' for one in benchmark.declared_by)
    complaints.add(
        "PR125",
        f"{quoted(benchmark.name)}: {benchmark.refusal}, and not independent",
        advice=f"A repeat is {repeat}: run it once for each, and import all files together;\n"
        f"or declare before they are seen that they count as independent: {declared} in "
        f"[experiments.{experiment.id}].",
    )


def _arm(experiment: Experiment, arm: str | None, complaints: Complaints) -> str:
    """Return the arm that all repeats of a tool's file are of; no file says it."""
    arms = experiment.arms
    named = [one for one in arms if one != ONLY_ARM]
    if arm is None and len(arms) == 1:
        return next(iter(arms))
    if arm is None:
        complaints.add("PR113", f"the file names no arm (there are {listed(arms)}); give --arm")
    elif arm not in arms:
        hint = suggestion(arm, named, "its arms") if named else "; it has no arms"
        complaints.add("PR113", f"experiment {quoted(experiment.id)} has no arm {quoted(arm)}{hint}")
    return arm or ONLY_ARM


def _values(
    benchmark: FoundBenchmark, fields: Mapping[str, tuple[str, str]], complaints: Complaints
) -> list[dict[str, Value]]:
    """Return the values of each repeat; of one that failed those that it has, and none is asked for."""
    asked = [one for one in benchmark.repeats if failure_of(one, fields) is None]
    taken = iter(values_of(benchmark, asked, fields, complaints))
    return [
        next(taken) if failure_of(one, fields) is None else dict(_readable(one, fields))
        for one in benchmark.repeats
    ]


def _readable(repeat: FoundRepeat, fields: Mapping[str, tuple[str, str]]) -> Iterable[tuple[str, Value]]:
    for metric, (reading, unit) in fields.items():
        if reading in repeat.readings and is_same_unit(repeat.units.get(reading, unit), unit):
            yield metric, repeat.readings[reading]


def _repeat(
    index: int, repeat: FoundRepeat, arm: str, values: dict[str, Value], failed: str | None
) -> ImportedRepeat:
    return ImportedRepeat(
        arm=arm,
        label=repeat.label,
        index=index,
        line=repeat.line,
        block=None,
        machine=repeat.machine,
        values=values,
        diagnostics=repeat.diagnostics,
        samples={},
        failed=failed,
    )


def _taken_for_granted(benchmark: FoundBenchmark, experiment: Experiment) -> dict[str, Any]:
    """Return what a header flags: open units, declared independence, and what else somebody should know."""
    assumed = {
        metric
        for metric, (reading, _) in _fields(experiment).items()
        if any(reading in one.readings and reading not in one.units for one in benchmark.repeats)
    }
    granted: dict[str, Any] = {"units-assumed": sorted(assumed)} if assumed else {}
    if benchmark.refusal is not None:
        granted["declared-independent"] = {"unit": experiment.table.unit, "although": benchmark.refusal}
    notices = [
        f"{one.label}: {one.diagnostics['notice']}"
        for one in benchmark.repeats
        if "notice" in one.diagnostics
    ]
    return granted | ({"notices": notices} if notices else {})


def _readings_digest(repeats: Iterable[FoundRepeat]) -> str | None:
    """Return a digest of all numbers, or ``None`` of so few that they may come again by chance."""
    every = [sorted(repeat.readings.items()) for repeat in repeats]
    flat = (value if isinstance(value, list) else [value] for one in every for _, value in one)
    if len({number for several in flat for number in several}) < _TELLING:
        return None
    return f"sha256:{hashlib.sha256(msgspec.json.encode(every)).hexdigest()}"
