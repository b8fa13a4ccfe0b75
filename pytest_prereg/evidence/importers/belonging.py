"""What keeps files from being repeats of one arm: another benchmark, a seed that comes again.

What only looks like it is told with the import: the order of the files, and a server that had no time to
start.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from pytest_prereg.errors import Problem
from pytest_prereg.evidence.file_origins import origins_of
from pytest_prereg.evidence.naming import shown
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from pytest_prereg.evidence.files import SessionFile
    from pytest_prereg.evidence.importers.taking import TakenFile

_BY_NUMBER = "If they are the same by another name, select them by number: --select 1"
_OF_THEIR_OWN = "Independent runs have seeds of their own."
_STARTING = 5.0
"""Seconds; no server of a model starts and is warm in less."""
_WHEN = "%Y%m%d-%H%M%S"
_DATES = ("began", "date", "datetime")


def is_by_number(select: str | None) -> bool:
    """Whether a benchmark is selected by its number, whatever it is called."""
    return select is not None and select.isascii() and select.isdigit()


def of_different_benchmarks(files: Sequence[TakenFile]) -> Iterator[Problem]:
    """Yield a PR126 problem for each file of another benchmark than the first: they are no repeats of it."""
    for first, file in ((files[0], each) for each in files[1:]):
        if file.benchmark is None or first.benchmark is None:
            if file.benchmark != first.benchmark:
                rows, other = (file, first) if file.benchmark is None else (first, file)
                message = f"{shown(rows.path)} has plain rows, and {shown(other.path)} is a file of a tool"
                yield Problem(
                    code="PR126", message=message, path=shown(file.path), advice="Import them apart."
                )
        elif file.benchmark != first.benchmark:
            message = (
                f"the file's benchmark is {quoted(file.benchmark)}, and that of {shown(first.path)} "
                f"is {quoted(first.benchmark)}; repeats of one arm are of one benchmark"
            )
            yield Problem(code="PR126", message=message, path=shown(file.path), advice=_BY_NUMBER)


def of_another_benchmark(file: TakenFile, evidence: Iterable[SessionFile]) -> Iterator[Problem]:
    """Yield a PR126 problem if an arm has repeats of another benchmark than the file's."""
    for session, name in _others(file, evidence):
        message = (
            f"the file's benchmark is {quoted(file.benchmark)}, and its arm has repeats of {quoted(name)}, "
            f"imported as {quoted(session.name)}; repeats of one arm are of one benchmark"
        )
        yield Problem(code="PR126", message=message, path=shown(file.path), advice=_BY_NUMBER)
        return


def _others(file: TakenFile, evidence: Iterable[SessionFile]) -> Iterator[tuple[SessionFile, str]]:
    """Yield the sessions in which an arm of a file has another benchmark, and the name of that."""
    arms = {repeat.arm for repeat in file.repeats}
    for session in evidence if file.benchmark is not None else ():
        if arms.isdisjoint(attempt.arm for attempt in session.attempts):
            continue
        for origin in origins_of(session.header):
            if (name := origin.get("benchmark")) is not None and name != file.benchmark:
                yield session, str(name)


def of_one_seed(files: Sequence[TakenFile]) -> Iterator[Problem]:
    """Yield a PR117 problem for each repeat of the seed of an earlier one of its arm: it may be its copy."""
    first: dict[tuple[str, str], TakenFile] = {}
    for file in files:
        for repeat in file.repeats:
            seed = repeat.diagnostics.get("seed")
            if seed is None:
                continue
            key = (repeat.arm, str(seed))
            if key in first:
                message = f"{repeat.label} has seed {key[1]}, as one of {shown(first[key].path)} has"
                yield _of_seed(file, message, repeat.line)
            first.setdefault(key, file)


def seeds_of(file: TakenFile) -> dict[str, list[str]]:
    """Return the seeds of each arm."""
    found: dict[str, list[str]] = {}
    for repeat in file.repeats:
        if "seed" in repeat.diagnostics:
            found.setdefault(repeat.arm, []).append(str(repeat.diagnostics["seed"]))
    return found


def of_a_seed_before(
    files: Iterable[TakenFile], evidence: Iterable[SessionFile], sessions: Collection[str]
) -> Iterator[Problem]:
    """Yield a PR117 problem for each file with a seed that a session of the same series has of its arm."""
    before: dict[tuple[str, str], str] = {}
    for session in evidence:
        for origin in origins_of(session.header) if session.name.rpartition("/")[2] in sessions else ():
            seeds = origin.get("seeds")
            for arm, several in seeds.items() if isinstance(seeds, dict) else ():
                before |= {(arm, str(seed)): session.name for seed in several}
    for file in files:
        for arm, several in seeds_of(file).items():
            if again := next((seed for seed in several if (arm, seed) in before), None):
                name = before[arm, again]
                yield _of_seed(file, f"seed {again} was imported already, as {quoted(name)}")


def _of_seed(file: TakenFile, message: str, line: int | None = None) -> Problem:
    return Problem(code="PR117", message=message, path=shown(file.path), line=line, advice=_OF_THEIR_OWN)


def notices(files: Sequence[TakenFile], evidence: Iterable[SessionFile]) -> list[list[str]]:
    """Return what somebody should know of each file: what it is of, and how it follows the one before it."""
    told: list[list[str]] = []
    for file in files:
        others = [f"imports of this arm ({name})" for _, name in _others(file, evidence)]
        if file.benchmark != files[0].benchmark:
            others.append(f"{shown(files[0].path)} ({files[0].benchmark})")
        what = f"it is of another benchmark, {quoted(file.benchmark)}, than"
        told.append([f"{what} {other}" for other in others[:1]])
    for position, file in enumerate(files):
        for other in files[max(position - 1, 0) : position]:
            told[position] += _following(file, other)
    return told


def _following(file: TakenFile, before: TakenFile) -> Iterator[str]:
    """Yield what is odd about when a file was written, beside the one that was given before it."""
    here, there = _when(file), _when(before)
    if here is None or type(here) is not type(there):
        return
    if here < there:
        yield f"it is older than {shown(before.path)}; repeats count in the order in which files are given"
    seconds = _between(file, before)
    if seconds is not None and 0 <= seconds < _STARTING:
        yield f"it began {seconds:g} s after {shown(before.path)} had ended: no server starts anew in that"


def _when(file: TakenFile) -> Any:
    """Return when the first repeat of a file was, as its tool writes it; ``None`` where it does not."""
    told = file.repeats[0].diagnostics if file.repeats else {}
    return next((told[name] for name in _DATES if isinstance(told.get(name), str | float)), None)


def _between(file: TakenFile, before: TakenFile) -> float | None:
    """Return the seconds from the end of one run against a server, which is its date, to the next one."""
    try:
        ended = dt.datetime.strptime(str(_when(before)), _WHEN)  # noqa: DTZ007  # both of one clock
        next_ended = dt.datetime.strptime(str(_when(file)), _WHEN)  # noqa: DTZ007
        lasted = float(file.repeats[0].diagnostics["duration"])
    except (KeyError, ValueError, TypeError):
        return None
    return (next_ended - ended).total_seconds() - lasted
