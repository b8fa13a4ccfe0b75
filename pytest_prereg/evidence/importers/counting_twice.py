"""Refusing numbers that would count twice: a file that was taken in, or its numbers in another shape."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from pytest_prereg.errors import Problem
from pytest_prereg.evidence.file_origins import digests_of, origins_of
from pytest_prereg.evidence.importers.sketches import are_alike, is_fine
from pytest_prereg.evidence.naming import shown
from pytest_prereg.evidence.same_numbers import exact_metrics, holds_the_same, numbers_by_arm, numbers_of
from pytest_prereg.registry.durations import seconds_in
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from pytest_prereg.evidence.files import SessionFile
    from pytest_prereg.evidence.importers.taking import TakenFile
    from pytest_prereg.evidence.same_numbers import Repeat
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
    if are_alike(file.sketch, other.sketch):
        return "its numbers, but for some that were changed, are given twice, also in"
    if holds_the_same(numbers_by_arm(file.repeats), numbers_by_arm(other.repeats)):
        return "its numbers, all or some of them, are given twice, also in"
    return None


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


def same_in_two_arms(
    taken: Sequence[TakenFile], experiment: Experiment, evidence: Iterable[SessionFile]
) -> Iterator[Problem]:
    """Yield a PR119 problem for each file with an arm whose times are those of another arm.

    What else is measured may well be the same in two arms, with the same seeds; a time never is, unless it
    was read from a coarse clock.
    """
    without = {name for name, metric in experiment.metrics.items() if not _is_of_time(metric.unit)}
    several: list[Sequence[Repeat]] = [file.repeats for file in taken]
    several += [file.attempts for file in evidence]
    everywhere = _times_by_arm(itertools.chain.from_iterable(several), without)
    for file in taken:
        same = (
            f"the repeats of arm {quoted(arm)} are those of arm {quoted(other)}, all or most of them"
            for arm, own in _times_by_arm(file.repeats, without).items()
            for other, theirs in everywhere.items()
            if other != arm and holds_the_same(own, theirs)
        )
        yield from (_refused(f"{what}; {_TWICE}", file) for what in itertools.islice(same, 1))


def _times_by_arm(repeats: Iterable[Repeat], without: Container[str]) -> dict[str, Counter[str]]:
    """Return the times of each arm that no coarse clock gave; ``without`` metrics that are none."""
    by_arm: dict[str, list[Repeat]] = {}
    for repeat in repeats:
        times = (value for name, value in repeat.values.items() if name not in without)
        if any(any(map(is_fine, time)) if isinstance(time, list) else is_fine(time) for time in times):
            by_arm.setdefault(repeat.arm, []).append(repeat)
    return {arm: numbers_of(several, without=without) for arm, several in by_arm.items()}


def _is_of_time(unit: str) -> bool:
    """Whether a unit is one of time, or something per time."""
    return seconds_in(unit) is not None or seconds_in(unit.rpartition("/")[2]) is not None


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
        if are_alike(taken.sketch, origin.get("sketch")):
            return "its numbers, but for some that were changed, were imported already"
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
