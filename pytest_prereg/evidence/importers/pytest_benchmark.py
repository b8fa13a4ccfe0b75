"""Files of pytest-benchmark: all rounds of a test are of one process, so a file is one repeat of each test.

Written by ``--benchmark-json``, with the time of every round (``data``), or by ``--benchmark-save`` and
``--benchmark-autosave``, which leave the rounds out unless ``--benchmark-save-data`` is given. Times are
seconds, and of one iteration. The format is the same in versions 3 to 5.
"""

from __future__ import annotations

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
from pytest_prereg.evidence.importers.numbers import Readings, value_of

if TYPE_CHECKING:
    from pytest_prereg.evidence.importers.complaints import Complaints

_SECONDS = (
    "min",
    "max",
    "mean",
    "stddev",
    "median",
    "iqr",
    "q1",
    "q3",
    "ld15iqr",
    "hd15iqr",
    "total",
    "data",
)
_UNITS = {**dict.fromkeys(_SECONDS, "s"), "ops": "1/s"}
_NOT_READ = frozenset({"data", "outliers"})
_NO_COMMIT = "unversioned"
_SUMMARY_ONLY = (
    "is left out: the file holds a summary only. Write it with --benchmark-json FILE, or add "
    "--benchmark-save-data to what saves it"
)


class _PytestBenchmark:
    name = "pytest-benchmark"
    repeat = "a process"

    def recognises(self, name: str, data: bytes) -> bool:
        del name
        return may_have(data, ("machine_info", "benchmarks"))

    def read(self, data: bytes, complaints: Complaints) -> list[FoundBenchmark]:
        document = object_of(read_document(data, complaints))
        if not isinstance(document.get("benchmarks"), list):
            complaints.fail("PR110", 'the file is none of pytest-benchmark: it has no list "benchmarks"')
        machine = _machine(document)
        about = _about(document)
        found = [
            _benchmark(at, one, machine, about, complaints)
            for at, one in entries_of("benchmarks", document["benchmarks"], complaints)
        ]
        if not document["benchmarks"]:
            complaints.add("PR110", 'the file holds no benchmark: its list "benchmarks" is empty')
        complaints.raise_if_any()
        return found


def _machine(document: dict[str, Any]) -> str | None:
    """The model of the CPU: ``brand`` before version 4, ``brand_raw`` since."""
    cpu = object_of(object_of(document.get("machine_info")).get("cpu"))
    return text_of(cpu.get("brand_raw")) or text_of(cpu.get("brand"))


def _about(document: dict[str, Any]) -> dict[str, Any]:
    commit = object_of(document.get("commit_info"))
    said = {
        "pytest-benchmark": document.get("version"),
        "datetime": document.get("datetime"),
        **(
            {}
            if commit.get("id") == _NO_COMMIT
            else {"commit": commit.get("id"), "dirty": commit.get("dirty")}
        ),
        "python": object_of(document.get("machine_info")).get("python_version"),
    }
    return {key: value for key, value in said.items() if isinstance(value, str | bool)}


def _benchmark(
    at: str, one: dict[str, Any], machine: str | None, about: dict[str, Any], complaints: Complaints
) -> FoundBenchmark:
    name = text_of(one.get("fullname")) or text_of(one.get("name")) or at
    short = text_of(one.get("name"))
    stats = one.get("stats")
    if not isinstance(stats, dict):
        complaints.add("PR110", f'{at} has no "stats"')
        stats = {}
    readings = _readings(stats, object_of(one.get("extra_info")))
    repeat = FoundRepeat(
        label=short or name,
        at=at,
        readings=readings.readings,
        units=_UNITS,
        unreadable=readings.unreadable,
        diagnostics=about,
        machine=machine,
    )
    return FoundBenchmark(name=name, aliases=(short,) if short else (), repeats=(repeat,))


def _readings(stats: dict[str, Any], extra: dict[str, Any]) -> Readings:
    """The statistics by their names, the rounds as ``data``, and numbers of ``extra_info``."""
    found = Readings()
    for name, value in stats.items():
        if name not in _NOT_READ:
            found.add(name, value)
    if list_of(stats.get("data")):
        found.add("data", stats["data"])
    else:
        found.unreadable["data"] = _SUMMARY_ONLY
    for name, value in extra.items():
        read = value_of(value)
        if not isinstance(read, str):
            found.readings.setdefault(f"extra_info.{name}", read)
    return found


IMPORTER = _PytestBenchmark()
