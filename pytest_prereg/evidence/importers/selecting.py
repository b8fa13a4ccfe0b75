"""Which benchmark of a file is meant, and the readings that an experiment's metrics name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.evidence.importers.found import said_of
from pytest_prereg.registry.durations import is_point_in_time, seconds_in
from pytest_prereg.registry.refusals import nearest, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_prereg.evidence.importers.complaints import Complaints
    from pytest_prereg.evidence.importers.found import FoundBenchmark, FoundRepeat
    from pytest_prereg.evidence.model import Value

_MOST_NAMES = 60
_BYTES = frozenset({"byte", "bytes", "B"})


def select_benchmark(
    found: Sequence[FoundBenchmark], select: str | None, complaints: Complaints
) -> FoundBenchmark:
    """Return the one benchmark that a file holds, or the one that is selected.

    Args:
        found: All of them.
        select: A name, an alias that only one has, or a number from 1 in the order of the file.
        complaints: Of the file.

    Raises:
        EvidenceError: PR126: several and none is selected, or there is none of that name.
    """
    if select is None and len(found) == 1:
        return found[0]
    if select is None:
        what = f"the file holds {len(found)} benchmarks, and none is selected"
        complaints.fail("PR126", what, advice=_choice(found, range(len(found))))
    named = _called(select, found)
    if len(named) == 1:
        return found[named[0]]
    what = f"{len(named)} benchmarks are called" if named else "the file holds no benchmark"
    match = None if named else nearest(select, (name for one in found for name in (one.name, *one.aliases)))
    hint = f" (did you mean {quoted(match)}?)" if match else ""
    advice = _choice(found, named or range(len(found)))
    return complaints.fail("PR126", f"{what} {quoted(select)}{hint}", advice=advice)


def _called(select: str, found: Sequence[FoundBenchmark]) -> list[int]:
    """Return the positions of the benchmarks that are meant."""
    named = [position for position, one in enumerate(found) if one.name == select]
    named = named or [position for position, one in enumerate(found) if select in one.aliases]
    is_number = select.isascii() and select.isdigit() and 0 < int(select[:9]) <= len(found)
    return named or ([int(select[:9]) - 1] if is_number else [])


def _choice(found: Sequence[FoundBenchmark], positions: Sequence[int]) -> str:
    several = [f"  {position + 1}  {found[position].name}" for position in positions[:_MOST_NAMES]]
    more = [f"  … and {len(positions) - _MOST_NAMES} more"] if len(positions) > _MOST_NAMES else []
    return "\n".join(["Select one, by its name or its number:", *several, *more])


def values_of(
    benchmark: FoundBenchmark,
    repeats: Sequence[FoundRepeat],
    fields: Mapping[str, tuple[str, str]],
    complaints: Complaints,
) -> list[dict[str, Value]]:
    """Return the value of each metric in each of ``repeats``; what is wrong goes to ``complaints``.

    Args:
        benchmark: Whose repeats they are.
        repeats: Those that must have the readings.
        fields: By metric, the reading that it is and the unit that is declared.
        complaints: Of the file.
    """
    values: list[dict[str, Value]] = [{} for _ in repeats]
    for metric, (reading, unit) in fields.items():
        wrong: dict[tuple[str, str, str | None], list[FoundRepeat]] = {}
        for repeat, taken in zip(repeats, values, strict=True):
            problem = _problem(benchmark, repeat, metric, reading, unit)
            if problem:
                wrong.setdefault(problem, []).append(repeat)
            else:
                taken[metric] = repeat.readings[reading]
        for (code, message, advice), members in wrong.items():
            complaints.add(code, f"{_named(members)}{message}", line=members[0].line, advice=advice)
    return values


def failure_of(repeat: FoundRepeat, fields: Mapping[str, tuple[str, str]]) -> str | None:
    """Return why a repeat failed; ``None`` where a metric reads what tells it: then it is data."""
    is_data = repeat.failed_by is not None and any(name == repeat.failed_by for name, _ in fields.values())
    return None if is_data else repeat.failed


def _named(repeats: Sequence[FoundRepeat]) -> str:
    others = f" (and {len(repeats) - 1} more)" if len(repeats) > 1 else ""
    return f"{said_of(repeats[0])}{others}: " if repeats[0].label else ""


def _problem(
    benchmark: FoundBenchmark, repeat: FoundRepeat, metric: str, reading: str, unit: str
) -> tuple[str, str, str | None] | None:
    """Return code, message and advice, or ``None`` if the reading is there, finite, and in the unit."""
    if reading in repeat.unreadable:
        return "PR112", f"{quoted(reading)} {repeat.unreadable[reading]}", None
    if reading not in repeat.readings:
        if reading in benchmark.summaries:
            return "PR115", f"{quoted(reading)} is one number for all repeats, and of none of them", None
        return missing(metric, reading, repeat.readings)
    given = repeat.units.get(reading, unit)
    if not is_same_unit(given, unit):
        return other_unit(metric, reading, given, unit)
    if clock := point_in_time(repeat.readings[reading], unit):
        return "PR112", f"{quoted(reading)} {clock}", None
    return None


def missing(metric: str, reading: str, there: Mapping[str, object]) -> tuple[str, str, str | None]:
    """Return code, message and advice where a reading is not there: the nearest, and what there is."""
    match = nearest(reading, there)
    hint = f" (did you mean {quoted(match)}?)" if match else ""
    names = sorted(there)
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    shown = ", ".join(names[:_MOST_NAMES]) + more
    advice = f'There is: {shown}\nName the one that is meant: {metric} = {{ from = "…", unit = "…" }}'
    what = f"no reading {quoted(reading)}" + ("" if reading == metric else f" for metric {quoted(metric)}")
    return "PR115", f"{what}{hint}", advice if names else None


def other_unit(metric: str, reading: str, given: str, unit: str) -> tuple[str, str, str | None]:
    """Return code, message and advice where a reading is in another unit than is declared."""
    message = f"{quoted(reading)} is in {quoted(given)}, but {quoted(metric)} is declared in {quoted(unit)}"
    return "PR114", message, f'Nothing is converted: declare it with unit = "{given}".'


def is_same_unit(one: str, other: str) -> bool:
    """Whether two units are one, differently written; no dimension is looked into."""
    if one == other or {one, other} <= _BYTES:
        return True
    second = seconds_in(one)
    return second is not None and second == seconds_in(other)


def point_in_time(value: Value, unit: str) -> str | None:
    """Return why a value in a unit of time is no duration, in words that follow its name."""
    several = value if isinstance(value, list) else [value]
    clock = next((each for each in several if is_point_in_time(each, unit)), None)
    return None if clock is None else f"has {clock!r} {unit}, a point in time, not a duration"
