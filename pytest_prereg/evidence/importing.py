"""Taking in evidence that was measured elsewhere: it fills the open series, or opens the next."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from pytest_prereg.errors import EvidenceError, Problem
from pytest_prereg.evidence.environment import describe_versions
from pytest_prereg.evidence.holds import ExperimentHold
from pytest_prereg.evidence.import_commands import typed_options
from pytest_prereg.evidence.importers.belonging import (
    is_by_number,
    notices,
    of_a_seed_before,
    of_another_benchmark,
    of_different_benchmarks,
    of_one_seed,
    seeds_of,
)
from pytest_prereg.evidence.importers.counting_twice import given_twice, imported_before, same_in_two_arms
from pytest_prereg.evidence.importers.taking import take_file
from pytest_prereg.evidence.model import Finished, Header, Outcome, Started
from pytest_prereg.evidence.naming import blob_id, repeat_id, shown, utc_now
from pytest_prereg.evidence.parsing import FORMAT_VERSION
from pytest_prereg.evidence.series import (
    assemble,
    attempts_by_repeat,
    is_current,
    next_number,
    numbers,
    open_slots,
    unfilled,
    was_left,
)
from pytest_prereg.evidence.sessions import known_digests, read_study_evidence
from pytest_prereg.evidence.writing import write_session
from pytest_prereg.registry.refusals import listed, quoted

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_prereg.evidence.files import SessionFile
    from pytest_prereg.evidence.importers.repeats import ImportedRepeat
    from pytest_prereg.evidence.importers.taking import TakenFile
    from pytest_prereg.evidence.model import Line, Series
    from pytest_prereg.registry.model import Experiment, Study

_ALGORITHM = "sha1"


def import_files(
    study: Study,
    experiment: Experiment,
    paths: Sequence[Path],
    *,
    predictions: Mapping[str, str],
    arm: str | None = None,
    form: str | None = None,
    select: str | None = None,
    head: str | None = None,
    dirty: bool | None = None,
    closed: Collection[int] = (),
    algorithm: str = _ALGORITHM,
) -> Path:
    """Write what the files at ``paths`` hold as one session with origin ``imported``, and return its file.

    The repeats go into the slots of the first incomplete series in which all their arms are open, or into a
    new series. More of them than planned are kept, and decide nothing.

    Args:
        study: whose evidence it becomes.
        experiment: of the study.
        paths: files of another tool, or CSV or JSON files of rows; each has repeats of its own.
        predictions: registration digest by prediction id, of those that the experiment feeds.
        arm: the arm of repeats that name none.
        form: the format, where the files' content doesn't say it.
        select: the benchmark that is meant, where a file holds several.
        head: commit at HEAD.
        dirty: whether the work tree differs from it.
        closed: numbers of series that take in nothing more, whatever arms they lack.
        algorithm: the hash by which the repository names files.

    Raises:
        EvidenceError: a file, or its place among the evidence, is wrong; then nothing was written.

    """
    with ExperimentHold.take(study.evidence_folder, experiment.id):
        evidence = read_study_evidence(study)
        files = evidence[experiment.id]
        taken = _taken(paths, experiment, evidence, arm=arm, form=form, select=select)
        every_series = assemble(experiment, files)
        able = [one for one in every_series if one.number not in closed and not was_left(one, every_series)]
        series = _target(taken, able, experiment, predictions, files)
        header = Header(
            version=FORMAT_VERSION,
            study=study.id,
            experiment=experiment.id,
            series=series.number if series else next_number(every_series),
            origin="imported",
            planned=series.planned if series else experiment.planned,
            pairing=experiment.pairing,
            seed="",
            source=None,
            predictions=dict(predictions),
            head=head,
            dirty=dirty,
            session=os.urandom(8).hex(),
            created=utc_now(),
            executor="import",
            environment={},
            versions=describe_versions(),
            known=known_digests(file for group in evidence.values() for file in group),
            imported=_origin(taken, algorithm) | typed_options(arm, form, select),
        )
        lines = list(_lines(header, taken, series, attempts_by_repeat(files)))
        return write_session(study.evidence_folder, header, lines)


def _taken(
    paths: Sequence[Path],
    experiment: Experiment,
    evidence: Mapping[str, Sequence[SessionFile]],
    *,
    arm: str | None,
    form: str | None,
    select: str | None,
) -> list[TakenFile]:
    """Return all files as repeats, or tell all that is wrong with any of them."""
    taken: list[TakenFile] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            taken.append(take_file(path, experiment, arm=arm, form=form, select=select))
        except EvidenceError as error:
            problems += error.problems
    files = evidence[experiment.id]
    for file in taken:
        problems += imported_before(file, experiment, evidence)
    problems += given_twice(taken)
    problems += of_one_seed(taken)
    if not problems:
        problems += same_in_two_arms(taken, experiment, files)
    if not is_by_number(select):
        problems += of_different_benchmarks(taken)
        problems += (problem for file in taken for problem in of_another_benchmark(file, files))
    problems += _blocks_given_twice(taken, experiment)
    if problems:
        raise EvidenceError(problems)
    told = zip(taken, notices(taken, files), strict=True)
    return [_with_notices(file, several) for file, several in told]


def _with_notices(file: TakenFile, more: list[str]) -> TakenFile:
    """Return a file whose header says, beside its seeds, what somebody should know of it."""
    several = [*file.origin.get("notices", ()), *more]
    seeds = seeds_of(file)
    said = ({"seeds": seeds} if seeds else {}) | ({"notices": several} if several else {})
    return replace(file, origin=file.origin | said)


def _blocks_given_twice(taken: Sequence[TakenFile], experiment: Experiment) -> Iterator[Problem]:
    """Yield a problem for each repeat whose block another file has of its arm; of one file that is known."""
    first: dict[tuple[str, int], TakenFile] = {}
    for file in taken if experiment.pairing == "block" else ():
        for repeat in file.repeats:
            if repeat.block is None:
                continue
            other = first.setdefault((repeat.arm, repeat.block), file)
            if other is not file:
                message = f"{shown(other.path)} has block {repeat.block} of this arm, too"
                yield Problem(code="PR116", message=message, path=shown(file.path), line=repeat.line)


def _origin(taken: Sequence[TakenFile], algorithm: str) -> dict[str, Any]:
    """Return what the header keeps of the file that the repeats came from, or of each of several."""
    every = [_file_origin(file, algorithm) for file in taken]
    return every[0] if len(every) == 1 else {"files": every}


def _file_origin(file: TakenFile, algorithm: str) -> dict[str, Any]:
    """Return its name and content: ``blob`` is what git calls it, so the history can tell if it was there."""
    blob = blob_id(file.data, algorithm)
    return {"name": file.path.name, "digest": file.digest, "blob": blob} | file.origin


def _target(
    taken: Sequence[TakenFile],
    every_series: Sequence[Series],
    experiment: Experiment,
    predictions: Mapping[str, str],
    files: Sequence[SessionFile],
) -> Series | None:
    """Return the incomplete series that the repeats go into, or ``None`` for a new one."""
    arms = {repeat.arm for file in taken for repeat in file.repeats}
    for series in every_series:
        if series.complete or not is_current(series, None, predictions):
            continue
        wanting = arms & _open_arms(series, experiment)
        if wanting and wanting != arms:
            message = (
                f"series {series.number} of {quoted(experiment.id)} still wants {listed(sorted(wanting))} "
                f"but has all of {listed(sorted(arms - wanting))}; give what it wants a file of its own"
            )
            raise EvidenceError(Problem(code="PR118", message=message, path=shown(taken[0].path)))
        if wanting:
            _check_blocks(taken, series)
            if problems := list(of_a_seed_before(taken, files, series.sessions)):
                raise EvidenceError(problems)
            return series
    return None


def _open_arms(series: Series, experiment: Experiment) -> set[str]:
    if series.planned is None:
        return unfilled(series.repeats, experiment.arms, numbers(experiment))
    return {arm for arm, _ in open_slots(series, experiment)}


def _check_blocks(taken: Sequence[TakenFile], series: Series) -> None:
    """Refuse a repeat whose block its arm has already: no telling which one pairs with the other arms."""
    if series.pairing != "block":
        return
    filled = {(repeat.arm, repeat.block) for repeat in series.repeats if repeat.block is not None}
    problems = [
        Problem(
            code="PR116",
            message=f"series {series.number} has block {repeat.block} of this arm already",
            path=shown(file.path),
            line=repeat.line,
        )
        for file in taken
        for repeat in file.repeats
        if (repeat.arm, repeat.block) in filled
    ]
    if problems:
        raise EvidenceError(problems)


def _lines(
    header: Header, taken: Sequence[TakenFile], series: Series | None, attempts: Counter[str]
) -> Iterator[Line]:
    """Yield a ``started`` and a ``finished`` line for each repeat, in run order."""
    slots = _Slots(series)
    for file in taken:
        said = {"file": file.path.name} if len(taken) > 1 else {}
        for repeat in file.repeats:
            index = slots.next(repeat.arm)
            name = repeat_id(header.experiment, header.series, repeat.arm, index)
            attempt = attempts[name] + 1
            yield Started(repeat=name, arm=repeat.arm, index=index, attempt=attempt, block=repeat.block)
            yield _finished(name, attempt, repeat, said)


def _finished(name: str, attempt: int, repeat: ImportedRepeat, said: dict[str, str]) -> Finished:
    return Finished(
        repeat=name,
        attempt=attempt,
        outcome=Outcome.OK if repeat.failed is None else Outcome.TASK_FAILED,
        values=repeat.values,
        diagnostics=repeat.diagnostics | {"label": repeat.label} | said,
        cause=None if repeat.failed is None else "failed",
        error=repeat.failed,
        machine=repeat.machine,
        samples=repeat.samples,
    )


class _Slots:
    """Hands out the free indices of each arm: those of the open slots, then those beyond."""

    def __init__(self, series: Series | None) -> None:
        self._taken = {(repeat.arm, repeat.index) for repeat in series.repeats} if series else set()
        self._last: dict[str, int] = {}

    def next(self, arm: str) -> int:
        index = self._last.get(arm, 0) + 1
        while (arm, index) in self._taken:
            index += 1
        self._last[arm] = index
        return index
