"""A prediction file to a study: all that is wrong with it is told at once, with the line.

Nothing is imported or run: experiments are found by their syntax trees, and units are left to ``lock``.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from pytest_prereg.errors import Problem, StudyError
from pytest_prereg.registry import sources
from pytest_prereg.registry.executors import check_executors
from pytest_prereg.registry.experiments import build_experiments
from pytest_prereg.registry.guards import check_family, check_guards
from pytest_prereg.registry.instruments import mistaken_for
from pytest_prereg.registry.model import Study
from pytest_prereg.registry.plain_files import read_plain
from pytest_prereg.registry.predictions import build_predictions
from pytest_prereg.registry.refusals import RefusedError, quoted
from pytest_prereg.registry.relations import check_relations
from pytest_prereg.registry.structure import Complaints, checked_file, label
from pytest_prereg.registry.tables import ExecutorsTable
from pytest_prereg.registry.toml import read, shown
from pytest_prereg.registry.unit_text import normal_unit

if TYPE_CHECKING:
    from pytest_prereg.registry.declarations import Declared
    from pytest_prereg.registry.tables import ConstantTable, InstrumentTable, PredictionsFile


def find_studies(folder: Path) -> list[Path]:
    """The studies of a folder: ``predictions.toml``, then ``predictions/*.toml`` by name."""
    alone = folder / "predictions.toml"
    return [path for path in (alone, *sorted((folder / "predictions").glob("*.toml"))) if path.exists()]


def load_study(path: Path, *, text: str | None = None) -> Study:
    """The study that a prediction file describes.

    Args:
        path: The file; experiments and evidence are looked for beside it.
        text: What the file says, where that is not to be read from ``path`` (an earlier version of it).

    Raises:
        StudyError: Everything that is wrong, in the order of its lines.
    """
    try:
        return _load(path, _read(path) if text is None else text)
    except RecursionError:
        raise StudyError(
            Problem(code="PR001", path=shown(path), message="is nested too deeply to be read")
        ) from None


def _load(path: Path, text: str) -> Study:
    data, positions, problems = read(text, shown(path))
    complaints = Complaints(shown(path), positions)
    complaints.problems += problems
    file = checked_file(data, complaints)
    _check_paths(file, complaints)
    _check_constants(file.constants or {}, complaints)
    _check_instruments(file, complaints)
    check_executors(file.executors, complaints)
    experiments = build_experiments(file, _declared(file, path, complaints), complaints)
    predictions = build_predictions(file, experiments, complaints)
    check_relations(file, experiments, predictions, complaints)
    check_guards(file, experiments, complaints)
    check_family(file, experiments, predictions, complaints)
    if complaints.problems:
        raise StudyError(
            sorted(complaints.problems, key=lambda problem: (problem.path != shown(path), problem.line or 0))
        )
    return Study(
        id=file.study.id,
        table=file.study,
        path=path.absolute(),
        constants=file.constants or {},
        instruments=file.instruments or {},
        executors=file.executors or ExecutorsTable(),
        experiments=experiments,
        predictions=predictions,
    )


def study_bytes(path: Path) -> bytes:
    """What a prediction file holds.

    Raises:
        StudyError: PR001, if it can't be read, or is no file.
    """
    try:
        return read_plain(path)
    except OSError as error:
        message = f"can't be read: {error.strerror}"
        raise StudyError(Problem(code="PR001", path=shown(path), message=message)) from error


def _read(path: Path) -> str:
    try:
        return study_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"is not UTF-8: byte {error.start} is {error.object[error.start]:#04x}"
        raise StudyError(Problem(code="PR001", path=shown(path), message=message)) from None


def _declared(file: PredictionsFile, path: Path, complaints: Complaints) -> dict[str, Declared]:
    """What the study's modules declare; they are only looked at if an experiment names a function."""
    if all(table.fixture is None for table in (file.experiments or {}).values()):
        return {}
    try:
        return sources.find_experiments(file.study, path.absolute().parent)
    except StudyError as error:
        complaints.problems += [_relative(problem) for problem in error.problems]
    except OSError as error:
        message = f"experiments can't be read: {error.strerror}: {quoted(error.filename)}"
        complaints.add(("study", "experiments"), "PR041", message)
    complaints.mute(("fixtures",))
    return {}


def _relative(problem: Problem) -> Problem:
    return problem if problem.path is None else replace(problem, path=shown(Path(problem.path)))


def _check_paths(file: PredictionsFile, complaints: Complaints) -> None:
    if not file.study.id.isprintable() or "\n" in file.study.id:
        complaints.add(("study", "id"), "PR006", f'[study]: "id" is {quoted(file.study.id)}')
    for key, entries in (("evidence", [file.study.evidence]), ("experiments", file.study.experiments or [])):
        for entry in entries:
            if not entry.strip() or not entry.isprintable() or PurePosixPath(entry).is_absolute():
                message = f"[study]: {quoted(key)} is {quoted(entry)}; it must be a path beside the file"
                complaints.add(("study", key), "PR005", message)


def _check_constants(constants: dict[str, ConstantTable], complaints: Complaints) -> None:
    for name, constant in constants.items():
        keys = ("constants", name)
        try:
            normal_unit(constant.unit)
        except RefusedError as refusal:
            complaints.refuse((*keys, "unit"), label(keys), refusal)
        if constant.interval and not constant.interval[0] <= constant.value <= constant.interval[1]:
            message = f'{label(keys)}: "interval" does not hold "value", which is {quoted(constant.value)}'
            complaints.add((*keys, "interval"), "PR005", message)


def _check_instruments(file: PredictionsFile, complaints: Complaints) -> None:
    for name, instrument in (file.instruments or {}).items():
        _check_name(("instruments", name), name, complaints)
        _check_trust(("instruments", name), instrument, complaints)


def _check_name(keys: tuple[str, str], name: str, complaints: Complaints) -> None:
    """Whether nobody could take an instrument of the study's own for one of the package's."""
    if not name.strip():
        complaints.add(keys, "PR006", f"{label(keys)}: an instrument needs a name")
    elif (own := mistaken_for(name)) is not None:
        message = f"{label(keys)} reads like {quoted(own)}, which is the package's"
        complaints.add(keys, "PR007", message, f"Write {quoted(own)}, or give yours a name of its own.")


def _check_trust(keys: tuple[str, str], instrument: InstrumentTable, complaints: Complaints) -> None:
    given: list[Any] = [instrument.calibrated_by, (instrument.trusted or "").strip()]
    if sum(bool(reason) for reason in given) != 1:
        message = (
            f'{label(keys)} must have either "calibrated-by", with predictions, or "trusted", with a reason'
        )
        complaints.add(keys, "PR005", message)
