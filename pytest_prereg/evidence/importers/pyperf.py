"""Files of pyperf, also compressed: a process is the repeat, and its values are samples within.

A suite is ``{"version": "1.0", "metadata": …, "benchmarks": [{"metadata": …, "runs": …}]}``; what all runs
or all benchmarks have in common stands one level up. A run without ``values`` only calibrated; warm-ups are
kept apart by pyperf itself.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

from pytest_prereg.evidence.importers.documents import (
    entries_of,
    list_of,
    may_have,
    object_of,
    read_document,
    text_of,
)
from pytest_prereg.evidence.importers.found import FoundBenchmark, FoundRepeat
from pytest_prereg.evidence.importers.numbers import Readings, written
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_prereg.evidence.importers.complaints import Complaints

_VERSION = "1.0"
_UNITS = {"second": "s", "byte": "byte", "integer": "1"}
_OF_A_RUN = {"mem_max_rss": "byte", "mem_peak_pagefile_usage": "byte", "duration": "s"}
"""Numbers that pyperf notes of each process, with their units."""
_TOLD = ("name", "description", "perf_version", "python_version", "python_implementation", "timer", "date")
_GZIP = b"\x1f\x8b"
_HEAD = 1 << 14
_LARGEST = 1 << 28


class _Pyperf:
    name = "pyperf"
    repeat = "a process"

    def recognises(self, name: str, data: bytes) -> bool:
        del name
        if data.startswith(_GZIP):
            try:
                data = zlib.decompressobj(wbits=31).decompress(data[:_HEAD], _HEAD)
            except zlib.error:
                return False
        return may_have(data, ("benchmarks", "runs"))

    def read(self, data: bytes, complaints: Complaints) -> list[FoundBenchmark]:
        document = object_of(read_document(_unpacked(data, complaints), complaints))
        _check_version(document.get("version"), complaints)
        if not list_of(document.get("benchmarks")):
            complaints.fail("PR110", 'the file holds no benchmark: its list "benchmarks" is empty or missing')
        common = object_of(document.get("metadata"))
        entries = entries_of("benchmarks", document["benchmarks"], complaints)
        found = [
            _benchmark(number, at, one, common, complaints) for number, (at, one) in enumerate(entries, 1)
        ]
        complaints.raise_if_any()
        return found


def _unpacked(data: bytes, complaints: Complaints) -> bytes:
    if not data.startswith(_GZIP):
        return data
    stream = zlib.decompressobj(wbits=31)
    try:
        unpacked = stream.decompress(data, _LARGEST)
    except zlib.error as error:
        complaints.fail("PR110", f"the file can't be decompressed: {error}")
    if not stream.eof:
        size = f"it holds more than {_LARGEST >> 20} MiB" if stream.unconsumed_tail else "its end is missing"
        complaints.fail("PR110", f"the file can't be decompressed: {size}")
    if stream.unused_data:
        complaints.fail("PR110", "the file can't be decompressed: something follows its end")
    return unpacked


def _check_version(version: Any, complaints: Complaints) -> None:
    if version != _VERSION:
        what = "names no version" if version is None else f"is of version {written(version)}"
        complaints.fail(
            "PR127",
            f"the file {what} of pyperf's format; {quoted(_VERSION)} is known",
            advice="Load it with a pyperf that reads it, and save it anew: pyperf convert OLD --stdout > NEW",
        )


def _benchmark(
    number: int, at: str, one: dict[str, Any], common: dict[str, Any], complaints: Complaints
) -> FoundBenchmark:
    about = {**common, **object_of(one.get("metadata"))}
    name = text_of(about.get("name")) or f"benchmark {number}"
    every = entries_of(f"{at}.runs", one.get("runs"), complaints)
    runs = [(place, run) for place, run in every if "values" in run]
    repeats = [
        _process(position, place, run, about, complaints) for position, (place, run) in enumerate(runs, 1)
    ]
    refusal = None if runs else "it holds no values: all its processes only calibrated"
    return FoundBenchmark(name=name, repeats=tuple(repeats), refusal=refusal)


def _process(
    position: int, at: str, run: dict[str, Any], about: dict[str, Any], complaints: Complaints
) -> FoundRepeat:
    """A process: its values, and what pyperf noted of it."""
    here = {**about, **object_of(run.get("metadata"))}
    label, given = f"process {position}", here.get("unit", "second")
    unit = _UNITS.get(given) if isinstance(given, str) else None
    if unit is None:
        complaints.fail("PR127", f"{label} at {at} is in the unknown unit {written(given)}")
    if here.get("name") != about.get("name", here.get("name")):
        complaints.add(
            "PR117", f"{label} at {at} is of {written(here['name'])}, not of {written(about['name'])}"
        )
    found = Readings()
    found.add("values", run["values"])
    for name in _OF_A_RUN:
        if name in here:
            found.add(name, here[name])
    return FoundRepeat(
        label=label,
        at=at,
        readings=found.readings,
        units={**_OF_A_RUN, "values": unit},
        unreadable=found.unreadable,
        diagnostics=_told(here, list_of(run.get("warmups"))),
        machine=text_of(here.get("cpu_model_name")),
    )


def _told(here: dict[str, Any], warmups: Iterable[Any]) -> dict[str, Any]:
    told = {key: here[key] for key in _TOLD if isinstance(here.get(key), str)}
    apart = sum(1 for _ in warmups)
    return told | ({"warmups": apart} if apart else {})


IMPORTER = _Pyperf()
