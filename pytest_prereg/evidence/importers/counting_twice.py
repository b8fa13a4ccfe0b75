"""Refusing numbers that would count twice: a file that was taken in, or its numbers in another shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.errors import Problem
from pytest_prereg.evidence.file_origins import digests_of, origins_of
from pytest_prereg.evidence.naming import shown
from pytest_prereg.evidence.same_numbers import exact_metrics, holds_the_same, numbers_by_arm, numbers_of
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_prereg.evidence.files import SessionFile
    from pytest_prereg.evidence.importers.taking import TakenFile
    from pytest_prereg.registry.model import Experiment

_SHARED = "Arms that are compared with the same repeats belong into one experiment."
_NO_REPEAT = "Two benchmarks of one file are no repeats of each other: give the other one an arm of its own."
_TWICE = "the same numbers can't count twice"


def given_twice(files: Sequence[TakenFile]) -> Iterator[Problem]:
    """Yield a PR119 problem for each file whose numbers an earlier one of the same import holds."""
    for position, file in enumerate(files):
        for other in files[:position]:
            if what := _same(file, other):
                yield Problem(code="PR119", message=f"{what} {shown(other.path)}", path=shown(file.path))
                break


def _same(file: TakenFile, other: TakenFile) -> str | None:
    if file.digest == other.digest:
        return "the file is given twice, also as"
    if file.readings is not None and file.readings == other.readings:
        return "its numbers are given twice, also in"
    if holds_the_same(numbers_by_arm(file.repeats), numbers_by_arm(other.repeats)):
        return "its numbers, all or some of them, are given twice, also in"
    return None


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
                advice = "Independent runs have seeds of their own."
                yield Problem(
                    code="PR117", message=message, path=shown(file.path), line=repeat.line, advice=advice
                )
            first.setdefault(key, file)


def of_different_benchmarks(files: Sequence[TakenFile]) -> Iterator[Problem]:
    """Yield a PR126 problem for each file of another benchmark than the first: they are no repeats of it."""
    for first, file in ((files[0], each) for each in files[1:]):
        if file.benchmark != first.benchmark:
            message = (
                f"the file's benchmark is {quoted(file.benchmark)}, and that of {shown(first.path)} "
                f"is {quoted(first.benchmark)}; repeats of one arm are of one benchmark"
            )
            advice = "If they are the same by another name, select them by number: --select 1"
            yield Problem(code="PR126", message=message, path=shown(file.path), advice=advice)


def imported_before(
    taken: TakenFile, experiment: Experiment, evidence: Mapping[str, Iterable[SessionFile]]
) -> Iterator[Problem]:
    """Yield a PR119 problem if the numbers of a file are evidence already, of this experiment or another.

    A file that was imported, and one whose numbers were: in another order, format or selection. And one with
    the numbers of what was measured, or tried, here: counted exactly, they may come again.
    """
    exact = exact_metrics(experiment)
    for file in evidence[experiment.id]:
        if what := _of_this(taken, file, exact):
            yield _refused(f"{what}, as {quoted(file.name)}; {_TWICE}", taken)
            return
        if other := _other_benchmark(taken, file):
            what = f"its benchmark {quoted(other)} was imported for the same arm, as {quoted(file.name)}"
            yield _refused(what, taken, _NO_REPEAT)
            return
    new = numbers_of(taken.repeats)
    for name, files in evidence.items():
        for file in files if name != experiment.id else ():
            if taken.digest in digests_of(file.header) and not new.keys().isdisjoint(
                numbers_of(file.attempts)
            ):
                what = f"the file was imported already, for {quoted(name)}"
                yield _refused(f"{what}, as {quoted(file.name)}; {_TWICE}", taken, _SHARED)
                return


def _of_this(taken: TakenFile, file: SessionFile, exact: frozenset[str]) -> str | None:
    """Why a session of the same experiment has the numbers of a file."""
    origins = origins_of(file.header)
    for origin in origins:
        if (
            origin.get("digest") == taken.digest
            and origin.get("benchmark", taken.benchmark) == taken.benchmark
        ):
            return "the file was imported already"
        if taken.readings is not None and origin.get("readings") == taken.readings:
            return "its numbers were imported already"
    without = frozenset() if origins else exact
    new = numbers_by_arm(taken.repeats, without=without)
    if not holds_the_same(new, numbers_by_arm(file.attempts, without=without)):
        return None
    where = "imported" if origins else "measured here"
    return f"its repeats were {where} already, all or some of them"


def _other_benchmark(taken: TakenFile, file: SessionFile) -> str | None:
    """Return the benchmark that a session has of the same file, in the same arm."""
    if {one.arm for one in taken.repeats}.isdisjoint(one.arm for one in file.attempts):
        return None
    origins = (origin for origin in origins_of(file.header) if origin.get("digest") == taken.digest)
    return next((str(origin.get("benchmark")) for origin in origins), None)


def _refused(message: str, taken: TakenFile, advice: str | None = None) -> Problem:
    return Problem(code="PR119", message=message, path=shown(taken.path), advice=advice)
