"""NVIDIA nvbench, JSON version 1: numbers are written as text, each state of a benchmark is one of its own.

All samples of a file are of one process, so a file is one repeat of each state. What ``--jsonbin`` wrote
beside it is not read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_prereg.evidence.importers.documents import entries_of, read_document
from pytest_prereg.evidence.importers.found import FoundBenchmark, FoundRepeat
from pytest_prereg.evidence.importers.numbers import Readings, written

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_prereg.evidence.importers.complaints import Complaints

_VERSION = 1
_UNITS = {"duration": "s", "percentage": "1", "byte_rate": "byte/s", "bytes": "byte", "frequency": "Hz"}
"""By the hint of a summary; what counts elements leaves their unit to the experiment."""
_IN_FILES = "nv/json/"
_ERROR = "Unexpected error"
_NO_NAME = re.compile(r"[^A-Za-z0-9]+")

Object = dict[str, Any]


class _Nvbench:
    name = "nvbench"
    repeat = "a process"

    def recognises(self, name: str, data: bytes) -> bool:
        del name
        marks = (b'"benchmarks"', b'"states"', b'"summaries"')
        return all(mark in data for mark in marks)

    def read(self, data: bytes, complaints: Complaints) -> list[FoundBenchmark]:
        root = read_document(data, complaints)
        if not isinstance(root, dict) or "benchmarks" not in root:
            complaints.fail("PR127", "this is no JSON output of nvbench: it has no benchmarks")
        _check_version(root, complaints)
        devices = {
            written(device.get("id")): device for _, device in _objects(root, "devices", "", complaints)
        }
        version = _text(_within(root, "meta", "version", "nvbench", "git_version"))
        found = [
            _benchmark(benchmark, (at, state), devices, version, complaints)
            for place, benchmark in _objects(root, "benchmarks", "", complaints)
            for at, state in _objects(benchmark, "states", place, complaints)
        ]
        if not found:
            complaints.fail("PR110", "the file names benchmarks and no state of one that was run")
        return found


IMPORTER = _Nvbench()


def _check_version(root: Object, complaints: Complaints) -> None:
    major = _within(root, "meta", "version", "json", "major")
    if major is None:
        message = "the file says no version of nvbench's JSON"
        complaints.fail("PR127", message, advice="Write it with nvbench of 2022 or later.")
    if major != _VERSION or isinstance(major, bool):
        complaints.fail("PR127", f"version {written(major)} of nvbench's JSON is unknown; version 1 is read")


def _within(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _objects(holder: Object, key: str, at: str, complaints: Complaints) -> list[tuple[str, Object]]:
    """Return a list of objects, each with its place; ``null`` is how an empty one is written."""
    value, place = holder.get(key), f"{at}.{key}" if at else key
    if not isinstance(value, list | None):
        complaints.fail("PR110", f"{place} is {written(value)}, and no list of objects")
    entries = entries_of(place, value, complaints)
    complaints.raise_if_any()
    return entries


def _benchmark(
    benchmark: Object,
    found: tuple[str, Object],
    devices: Mapping[str, Object],
    version: str | None,
    complaints: Complaints,
) -> FoundBenchmark:
    at, state = found
    name, config = str(benchmark.get("name")), str(state.get("name"))
    told = _objects(state, "axis_values", at, complaints)
    axes = [f"{axis.get('name')}={axis.get('value')}" for _, axis in told]
    if isinstance(benchmark.get("devices"), list) and len(benchmark["devices"]) > 1:
        axes.insert(0, f"Device={state.get('device')}")
    refusal = _refusal(state)
    return FoundBenchmark(
        name=f"{name}[{','.join(axes)}]" if axes else name,
        aliases=(f"{name} [{config}]", config, name),
        repeats=() if refusal else (_repeat(at, state, devices, version, complaints),),
        refusal=refusal,
    )


def _repeat(
    at: str, state: Object, devices: Mapping[str, Object], version: str | None, complaints: Complaints
) -> FoundRepeat:
    found, units = Readings(), dict[str, str]()
    summaries = _objects(state, "summaries", at, complaints)
    for naming in (_short, _whole):
        names = [naming(str(summary.get("tag"))) for _, summary in summaries]
        for name, (place, summary) in zip(names, summaries, strict=True):
            if names.count(name) > 1:
                found.unreadable.setdefault(name, "is what several summaries of the file are called")
            _take(name, (place, summary), found, units, complaints)
    device = _text(devices.get(written(state.get("device")), {}).get("name"))
    told = {"device": device, "nvbench": version}
    return FoundRepeat(
        label="the process",
        at=at,
        readings=found.readings,
        units={name: unit for name, unit in units.items() if name in found.readings},
        unreadable=found.unreadable,
        diagnostics={key: value for key, value in told.items() if value is not None},
        failed=_failure(state),
    )


def _whole(tag: str) -> str:
    return tag


def _short(tag: str) -> str:
    """Return a tag as a metric may be called: ``nv/cold/time/gpu/mean`` is ``cold_time_gpu_mean``."""
    if tag.startswith(_IN_FILES):
        tag = tag.partition(":")[2]
    return _NO_NAME.sub("_", tag.removeprefix("nv/")).strip("_")


def _take(
    name: str,
    placed: tuple[str, Object],
    found: Readings,
    units: dict[str, str],
    complaints: Complaints,
) -> None:
    """Sort the value of a summary, which comes with its place, into ``found``, under ``name``."""
    if name in found.readings or name in found.unreadable:
        return
    at, summary = placed
    told = [one for _, one in _objects(summary, "data", at, complaints)]
    data = {str(one.get("name")): one.get("value") for one in told}
    unit = _UNITS.get(str(summary.get("hint")))
    if [one.get("name") for one in told].count("value") > 1:
        found.unreadable[name] = "has several values"
    elif "value" in data:
        found.add(name, data["value"])
        units |= {name: unit} if unit else {}
    elif "filename" in data:
        found.unreadable[name] = f"is in a file of its own, {written(data['filename'])}, which is not read"


def _failure(state: Object) -> str | None:
    """Return why a state failed; what threw an exception is written as skipped."""
    reason = _text(state.get("skip_reason")) or ""
    return reason if state.get("is_skipped") and reason.startswith(_ERROR) else None


def _refusal(state: Object) -> str | None:
    if not state.get("is_skipped") or _failure(state):
        return None
    return f"it was skipped: {_text(state.get('skip_reason')) or 'no reason is given'}"


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
