"""Training logs of MLPerf: ``:::MLLOG`` lines among any other text; a log is of one run, which is one repeat.

The score is the time from ``run_start`` to ``run_stop``. A run that was aborted, or never stopped, is kept as
one that failed: under MLPerf's rules it counts as infinitely slow, and is not left out.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_prereg.evidence.importers.found import FoundBenchmark, FoundRepeat
from pytest_prereg.evidence.importers.numbers import Readings, finite_number, written

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_prereg.evidence.importers.complaints import Complaints

_MARK = ":::MLLOG"
_OLDER = (":::MLPv", ":::MLL ")
"""How versions 0.5 and 0.6 marked their lines."""
_SCALING = b'"scaling_factor"'
_TOLD = (
    "seed",
    "global_batch_size",
    "submission_org",
    "submission_division",
    "submission_platform",
    "submission_status",
)
_TRAINING = frozenset({"init_start", "run_start", "run_stop", "submission_benchmark", "global_batch_size"})
_NAME = "mlperf"
_COUNT = "samples_count"


class _Event(NamedTuple):
    """One line of the log."""

    line: int
    key: str
    time: float | None
    """In milliseconds."""
    value: Any
    metadata: dict[str, Any]


class _MLPerf:
    name = "mlperf"
    repeat = "a run"

    def recognises(self, name: str, data: bytes) -> bool:
        del name
        is_scaling = data.lstrip().startswith(b"{") and _SCALING in data and len(data) < 200  # noqa: PLR2004
        return _MARK.encode() + b" " in data or is_scaling or any(mark.encode() in data for mark in _OLDER)

    def read(self, data: bytes, complaints: Complaints) -> list[FoundBenchmark]:
        text = data.decode("utf-8", "replace")
        events = _events(text, complaints)
        if not events and _SCALING in data:
            message = "this is a scaling.json of MLPerf: it corrects a score by how fast runs converge"
            complaints.fail("PR127", message, advice="Import the log of each run; nothing is scaled here.")
        if not events and any(mark in text for mark in _OLDER):
            complaints.fail("PR127", "the log is of MLPerf 0.6 or older; :::MLLOG lines are read")
        if not any(event.key in _TRAINING for event in events):
            what = "lines, but none of a training run" if events else "line"
            advice = "Logs of training are read, and none of inference." if events else None
            complaints.fail("PR127", f"the file has {'' if events else 'no '}{_MARK} {what}", advice=advice)
        complaints.raise_if_any()
        return [_benchmark(events, complaints)]


IMPORTER = _MLPerf()


def _events(text: str, complaints: Complaints) -> list[_Event]:
    """Return the events of a log; its last line may be torn."""
    lines = text.split("\n")
    events = []
    for number, line in enumerate(lines, 1):
        _, mark, entry = line.rpartition(_MARK)
        if not mark:
            continue
        event = _event(number, entry)
        if event is not None:
            events.append(event)
        elif number < len(lines):
            complaints.add("PR110", f"a {_MARK} line can't be read: {written(entry.strip())}", line=number)
    return events


def _event(number: int, entry: str) -> _Event | None:
    try:
        said = json.loads(entry)
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict) or not isinstance(said.get("key"), str):
        return None
    metadata = said.get("metadata")
    return _Event(
        line=number,
        key=said["key"],
        time=finite_number(said.get("time_ms")),
        value=said.get("value"),
        metadata=metadata if isinstance(metadata, dict) else {},
    )


def _benchmark(events: Sequence[_Event], complaints: Complaints) -> FoundBenchmark:
    start, stop = _only("run_start", events, complaints), _only("run_stop", events, complaints)
    found = Readings()
    failed = _failure(start, [event for event in events if event.key == "run_stop"])
    _take_time(found, start, stop, failed, complaints)
    _take_evaluations(found, events, stop)
    _take_statistics(found, events)
    complaints.raise_if_any()
    name = _last("submission_benchmark", events)
    return FoundBenchmark(
        name=name.value if name is not None and isinstance(name.value, str) else _NAME,
        repeats=(
            FoundRepeat(
                label="the run",
                line=(start or events[0]).line,
                readings=found.readings,
                units={"time_to_train": "s"} if "time_to_train" in found.readings else {},
                unreadable=found.unreadable,
                diagnostics=_diagnostics(events, start, stop),
                failed=failed,
            ),
        ),
    )


def _only(key: str, events: Iterable[_Event], complaints: Complaints) -> _Event | None:
    """Return the event of a key that a run has once; several ranks may have told the same."""
    there = [event for event in events if event.key == key]
    other = next((event for event in there if event.time != there[0].time), None)
    if other is not None:
        message = f"{key} is there twice, first in line {there[0].line}: a log must be of one run"
        complaints.add("PR117", message, line=other.line)
    return there[0] if there else None


def _last(key: str, events: Iterable[_Event]) -> _Event | None:
    return next((event for event in reversed(list(events)) if event.key == key), None)


def _failure(start: _Event | None, stops: Iterable[_Event]) -> str | None:
    """Return why a run failed: one of several ranks that say so is enough."""
    if start is None:
        return "it ended before run_start"
    told = [stop.metadata.get("status") for stop in stops]
    if not told:
        return "it has no run_stop"
    other = [status for status in told if status != "success"]
    return f"run_stop says status {written(other[0])}" if other else None


def _take_time(
    found: Readings, start: _Event | None, stop: _Event | None, failed: str | None, complaints: Complaints
) -> None:
    times = [event.time for event in (start, stop) if event is not None]
    for event in (start, stop):
        if event is not None and event.time is None:
            complaints.add("PR112", f"time_ms of {event.key} is no finite number", line=event.line)
    if failed is not None or len(times) < 2 or None in times:  # noqa: PLR2004
        found.unreadable["time_to_train"] = f"was never reached: {failed}"
        return
    began, ended = (time for time in times if time is not None)
    if ended < began and stop is not None:
        complaints.add("PR112", "run_stop is before run_start", line=stop.line)
    found.add("time_to_train", (ended - began) / 1000)


def _take_evaluations(found: Readings, events: Sequence[_Event], stop: _Event | None) -> None:
    evaluations = [event for event in events if event.key in {"eval_accuracy", "eval_error"}]
    for key in dict.fromkeys(event.key for event in evaluations):
        values = [event.value for event in evaluations if event.key == key]
        found.add(key, values[-1])
        found.add(f"{key}_each", values)
    counted = [event for event in (*evaluations, stop) if event is not None and _COUNT in event.metadata]
    if counted:
        found.add(_COUNT, counted[-1].metadata[_COUNT])


def _take_statistics(found: Readings, events: Iterable[_Event]) -> None:
    """Take what was tracked during the run, such as its throughput: samples within it."""
    tracked: dict[str, list[Any]] = {}
    for event in events:
        if event.key == "tracked_stats" and isinstance(event.value, dict):
            for name, value in event.value.items():
                tracked.setdefault(name, []).append(value)
    for name, values in tracked.items():
        if name not in found.readings and name not in found.unreadable:
            found.add(name, values)


def _diagnostics(events: Sequence[_Event], start: _Event | None, stop: _Event | None) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for key in _TOLD:
        values = list(dict.fromkeys(_text(event.value) for event in events if event.key == key))
        if values:
            told[key] = values[0] if len(values) == 1 else values
    if start is not None and start.time is not None:
        told["began"] = start.time
    if stop is not None:
        told["status"] = _text(stop.metadata.get("status"))
    return told


def _text(value: Any) -> str:
    return value if isinstance(value, str) else written(value)
