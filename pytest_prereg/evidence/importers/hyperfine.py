"""Files of hyperfine (``--export-json``): every run is a process of its own, and a repeat.

``times`` are seconds whatever unit was shown. User and system time, mean, median, minimum and maximum are one
number for all runs of a command, so no run has them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pytest_prereg.evidence.importers.documents import entries_of, may_have, object_of, read_document, text_of
from pytest_prereg.evidence.importers.found import FoundBenchmark, FoundRepeat
from pytest_prereg.evidence.importers.numbers import Readings, finite_number
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_prereg.evidence.importers.complaints import Complaints

_PER_RUN = {"times": "s", "memory_usage_byte": "byte", "exit_codes": "1"}
_OF_ALL = {
    **dict.fromkeys(("user", "system"), "is kept as a mean over all runs only: none of them has it"),
    **dict.fromkeys(
        ("mean", "stddev", "median", "min", "max"), "is of all runs together: none of them has it"
    ),
}
_CLOSE = 1e-6
"""It computes them of the very times that it writes; times smaller than that are none of a process."""
_NO_TIMES = 'it holds a summary only, without the "times" of its runs; export it anew with --export-json'


class _Hyperfine:
    name = "hyperfine"
    repeat = "a run"

    def recognises(self, name: str, data: bytes) -> bool:
        del name
        return may_have(data, ("results", "command"), ("times", "median"))

    def read(self, data: bytes, complaints: Complaints) -> list[FoundBenchmark]:
        results = object_of(read_document(data, complaints)).get("results")
        if not isinstance(results, list) or not results:
            complaints.fail("PR110", 'the file holds no command: its list "results" is empty or missing')
        entries = entries_of("results", results, complaints)
        found = [_command(number, at, one, complaints) for number, (at, one) in enumerate(entries, 1)]
        complaints.raise_if_any()
        return found


def _command(number: int, at: str, one: dict[str, Any], complaints: Complaints) -> FoundBenchmark:
    name = text_of(one.get("command")) or f"command {number}"
    columns = {key: one[key] for key in _PER_RUN if isinstance(one.get(key), list)}
    count = len(columns.get("times", ()))
    for key, values in columns.items():
        if len(values) != count:
            message = f'{quoted(name)} at {at} has {len(values)} {quoted(key)} for {count} "times"'
            complaints.add("PR110", message)
            return FoundBenchmark(name=name, repeats=())
    about = {key: value for key, value in object_of(one.get("parameters")).items() if text_of(value)}
    if problem := _differing(one, columns.get("times", ())):
        complaints.add(
            "PR117", f"{quoted(name)} at {at} {problem}: runs are missing from it, or it was changed"
        )
    runs = ({key: values[position] for key, values in columns.items()} for position in range(count))
    summaries = {key: value for key in _OF_ALL if (value := finite_number(one.get(key))) is not None}
    return FoundBenchmark(
        name=name,
        repeats=tuple(_run(position, at, run, about) for position, run in enumerate(runs, 1)),
        summaries=summaries,
        summary_units=dict.fromkeys(summaries, "s"),
        refusal=None if count else _NO_TIMES,
    )


def _differing(one: dict[str, Any], times: Sequence[Any]) -> str | None:
    """Return what a command says of all its runs together that is not so of those that are there."""
    numbers = [number for time in times if (number := finite_number(time)) is not None]
    if not numbers or len(numbers) < len(times):
        return None
    for key, own in (
        ("mean", math.fsum(numbers) / len(numbers)),
        ("min", min(numbers)),
        ("max", max(numbers)),
    ):
        told = finite_number(one.get(key))
        if told is not None and not math.isclose(told, own, rel_tol=_CLOSE, abs_tol=_CLOSE):
            return f'has the {key} {told:g} s, while that of its {len(numbers)} "times" is {own:g} s'
    return None


def _run(position: int, at: str, run: dict[str, Any], about: dict[str, Any]) -> FoundRepeat:
    found = Readings()
    for key, value in run.items():
        found.add(key, value)
    return FoundRepeat(
        label=f"run {position}",
        at=f"{at}.times[{position - 1}]",
        readings=found.readings,
        units=_PER_RUN,
        unreadable=_OF_ALL | found.unreadable,
        diagnostics=about,
        failed=_failure(run),
        failed_by="exit_codes",
    )


def _failure(run: dict[str, Any]) -> str | None:
    """Why a run failed: a status other than 0, or none, which hyperfine writes of one that a signal ended."""
    if "exit_codes" not in run or finite_number(run["exit_codes"]) == 0:
        return None
    status = run["exit_codes"]
    return "a signal ended it" if status is None else f"it ended with exit status {quoted(status)[1:-1]}"


IMPORTER = _Hyperfine()
