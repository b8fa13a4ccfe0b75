"""Taking in evidence that was measured elsewhere: it fills the open series, or opens the next."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from pytest_prereg.errors import EvidenceError, Problem
from pytest_prereg.evidence.environment import describe_versions
from pytest_prereg.evidence.holds import ExperimentHold
from pytest_prereg.evidence.importers.rows import import_rows
from pytest_prereg.evidence.model import Finished, Header, Outcome, Started
from pytest_prereg.evidence.naming import blob_id, repeat_id, shown, utc_now
from pytest_prereg.evidence.parsing import FORMAT_VERSION
from pytest_prereg.evidence.same_numbers import exact_metrics, holds_the_same, numbers_by_arm, numbers_of
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
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_prereg.evidence.files import SessionFile
    from pytest_prereg.evidence.importers.repeats import ImportedRepeat
    from pytest_prereg.evidence.importers.rows import Form, ImportedRows
    from pytest_prereg.evidence.model import Line, Series
    from pytest_prereg.registry.model import Experiment, Study

_ALGORITHM = "sha1"
_SHARED = "Arms that are compared with the same repeats belong into one experiment."


def import_file(
    study: Study,
    experiment: Experiment,
    path: Path,
    *,
    predictions: Mapping[str, str],
    arm: str | None = None,
    form: Form | None = None,
    head: str | None = None,
    dirty: bool | None = None,
    closed: Collection[int] = (),
    algorithm: str = _ALGORITHM,
) -> Path:
    """Write what the file at ``path`` holds as a session file with origin ``imported``, and return that.

    The repeats go into the slots of the first incomplete series in which all their arms are open, or into a
    new series. More of them than planned are kept, and decide nothing.

    Args:
        study: whose evidence it becomes.
        experiment: of the study.
        path: a CSV or JSON file of rows.
        predictions: registration digest by prediction id, of those that the experiment feeds.
        arm: the arm of rows that name none.
        form: ``csv`` or ``json``, where the file's name doesn't say it.
        head: commit at HEAD.
        dirty: whether the work tree differs from it.
        closed: numbers of series that take in nothing more, whatever arms they lack.
        algorithm: the hash by which the repository names files.

    Raises:
        EvidenceError: the file, or its place among the evidence, is wrong; then nothing was written.

    """
    with ExperimentHold.take(study.evidence_folder, experiment.id):
        evidence = read_study_evidence(study)
        files = evidence[experiment.id]
        rows = import_rows(path, experiment, arm, form=form)
        _refuse_second_import(rows, experiment, files, path)
        _refuse_of_another(rows, evidence, experiment.id, path)
        every_series = assemble(experiment, files)
        able = [one for one in every_series if one.number not in closed and not was_left(one, every_series)]
        series = _target(rows.repeats, able, experiment, predictions, path)
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
            imported=_origin(path, rows, arm, algorithm),
        )
        lines = list(_lines(header, rows.repeats, series, attempts_by_repeat(files)))
        return write_session(study.evidence_folder, header, lines)


def _origin(path: Path, rows: ImportedRows, arm: str | None, algorithm: str) -> dict[str, Any]:
    """Return what the header keeps of the file that the repeats came from.

    Its ``blob`` is what git calls it: so the history can tell whether it was there before.
    """
    origin: dict[str, Any] = {
        "name": path.name,
        "format": rows.format,
        "digest": rows.digest,
        "blob": blob_id(rows.data, algorithm),
        "rows": rows.rows,
    }
    if arm is not None:
        origin["arm"] = arm
    if rows.units_assumed:
        origin["units-assumed"] = list(rows.units_assumed)
    return origin


def _refuse_second_import(
    rows: ImportedRows, experiment: Experiment, files: Sequence[SessionFile], path: Path
) -> None:
    """Refuse a file that was imported, and one whose numbers were: in another order, format or selection.

    And one with the numbers of what was measured, or tried, here: counted exactly, they may come again.
    """
    exact = exact_metrics(experiment)
    new, telling = numbers_by_arm(rows.repeats), numbers_by_arm(rows.repeats, without=exact)
    for file in files:
        imported = file.header.imported if file.header else None
        if imported is not None and imported.get("digest") == rows.digest:
            what = "the file was imported already"
        elif imported is not None and holds_the_same(new, numbers_by_arm(file.attempts)):
            what = "its repeats were imported already, all or some of them"
        elif imported is None and holds_the_same(telling, numbers_by_arm(file.attempts, without=exact)):
            what = "its repeats were measured here already, all or some of them"
        else:
            continue
        raise _counted_twice(what, file, path)


def _refuse_of_another(
    rows: ImportedRows, evidence: Mapping[str, Iterable[SessionFile]], experiment: str, path: Path
) -> None:
    """Refuse a file of which another experiment has the same numbers: they would count as independent."""
    new = numbers_of(rows.repeats)
    for name, files in evidence.items():
        for file in files if name != experiment else ():
            imported = (file.header.imported if file.header else None) or {}
            if imported.get("digest") == rows.digest and not new.keys().isdisjoint(numbers_of(file.attempts)):
                raise _counted_twice(
                    f"the file was imported already, for {quoted(name)}", file, path, _SHARED
                )


def _counted_twice(what: str, file: SessionFile, path: Path, advice: str | None = None) -> EvidenceError:
    message = f"{what}, as {quoted(file.name)}; the same numbers can't count twice"
    return EvidenceError(Problem(code="PR119", message=message, path=shown(path), advice=advice))


def _target(
    repeats: Sequence[ImportedRepeat],
    every_series: Sequence[Series],
    experiment: Experiment,
    predictions: Mapping[str, str],
    path: Path,
) -> Series | None:
    """Return the incomplete series that the repeats go into, or ``None`` for a new one."""
    arms = {repeat.arm for repeat in repeats}
    for series in every_series:
        if series.complete or not is_current(series, None, predictions):
            continue
        wanting = arms & _open_arms(series, experiment)
        if wanting and wanting != arms:
            message = (
                f"series {series.number} of {quoted(experiment.id)} still wants {listed(sorted(wanting))} "
                f"but has all of {listed(sorted(arms - wanting))}; give what it wants a file of its own"
            )
            raise EvidenceError(Problem(code="PR118", message=message, path=shown(path)))
        if wanting:
            _check_blocks(repeats, series, path)
            return series
    return None


def _open_arms(series: Series, experiment: Experiment) -> set[str]:
    if series.planned is None:
        return unfilled(series.repeats, experiment.arms, numbers(experiment))
    return {arm for arm, _ in open_slots(series, experiment)}


def _check_blocks(repeats: Sequence[ImportedRepeat], series: Series, path: Path) -> None:
    """Refuse a repeat whose block its arm has already: no telling which one pairs with the other arms."""
    if series.pairing != "block":
        return
    taken = {(repeat.arm, repeat.block) for repeat in series.repeats}
    problems = [
        Problem(
            code="PR116",
            message=f"series {series.number} has block {repeat.block} of this arm already",
            path=shown(path),
            line=repeat.line,
        )
        for repeat in repeats
        if (repeat.arm, repeat.block) in taken
    ]
    if problems:
        raise EvidenceError(problems)


def _lines(
    header: Header, repeats: Sequence[ImportedRepeat], series: Series | None, attempts: Counter[str]
) -> Iterator[Line]:
    """Yield a ``started`` and a ``finished`` line for each repeat, in run order."""
    slots = _Slots(series)
    for repeat in repeats:
        index = slots.next(repeat.arm)
        name = repeat_id(header.experiment, header.series, repeat.arm, index)
        attempt = attempts[name] + 1
        yield Started(repeat=name, arm=repeat.arm, index=index, attempt=attempt, block=repeat.block)
        yield Finished(
            repeat=name,
            attempt=attempt,
            outcome=Outcome.OK,
            values=repeat.values,
            diagnostics=repeat.diagnostics | {"label": repeat.label},
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
