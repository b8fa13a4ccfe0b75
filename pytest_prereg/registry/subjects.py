"""What an experiment measures and what it reads: the files of ``subject`` and ``data``, and their digests.

Data are registered by content, in the source digest. A subject is not: a claim is about what its subject was
when it was decided, and a guard is judged anew for each version of it.
"""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal

from pytest_prereg.errors import Problem, StudyError
from pytest_prereg.registry.canonical import canonical_json
from pytest_prereg.registry.globs import Ground, matching
from pytest_prereg.registry.imports import repository_root
from pytest_prereg.registry.refusals import RefusedError, quoted
from pytest_prereg.registry.structure import label
from pytest_prereg.registry.toml import positions_of, shown
from pytest_prereg.registry.trees import tree_digest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_prereg.registry.model import Experiment, Study

Key = Literal["subject", "data"]

CODES: dict[Key, str] = {"subject": "PR042", "data": "PR043"}

ADVICE: dict[Key, str] = {
    "subject": "Name what is measured, relative to the prediction file: src/** is every file below src.",
    "data": "Bring the file back, or name the one that is read, relative to the prediction file.",
}
"""What to do about a glob that matches nothing."""


def subject_digest(study: Study, experiment: Experiment) -> str | None:
    """``sha256:…`` of an experiment's subject as it is now; ``None`` where none is declared.

    Files count by their path from the study's folder and by their content: Python modules as syntax trees, as
    in the source digest, so that no comment makes a new version; all others, and modules that don't parse, by
    bytes.

    Raises:
        StudyError: PR042, for each glob that matches nothing, or what is no part of a subject.
    """
    return _digest(study, experiment, "subject", subject_files(study, experiment), _content)


def data_digest(study: Study, experiment: Experiment) -> str | None:
    """``sha256:…`` of the bytes and paths of an experiment's data; ``None`` where none are declared.

    Raises:
        StudyError: PR043, for each entry of ``data`` that is not there or can't be read.
    """
    return _digest(study, experiment, "data", data_files(study, experiment), _bytes)


def subject_files(study: Study, experiment: Experiment) -> list[Path]:
    """Files of an experiment's subject, sorted; none where none is declared.

    They lie in the study's repository, or without one in its folder, and no symbolic link leads to them. The
    study's own file, lock and evidence are none of them.

    Raises:
        StudyError: PR042.
    """
    globs = experiment.table.subject
    if not globs:
        return []
    folder = study.folder.resolve()
    ground = _ground(study, "subject", within=repository_root(folder / study.path.name) or folder)
    files = _files(study, experiment, "subject", globs, ground)
    source = experiment.source
    if source and source.path and source.path.resolve() in files:
        what = f"matches {quoted(os.path.relpath(source.path, folder))}, which is the experiment itself"
        advice = "A subject is what is measured. What measures it is registered, and must not change with it."
        raise StudyError(_problem(study, experiment, ("subject",), f'"subject" {what}', advice))
    return files


def data_files(study: Study, experiment: Experiment) -> list[Path]:
    """Files that an experiment's ``data`` names, sorted; none where none are declared.

    They may lie outside of the repository, and be symbolic links, as tools for large files have them.

    Raises:
        StudyError: PR043.
    """
    globs = experiment.table.data
    return _files(study, experiment, "data", globs, _ground(study, "data", within=None)) if globs else []


def _ground(study: Study, key: Key, *, within: Path | None) -> Ground:
    folder = study.folder.resolve()
    own = (study.path.name, study.lock_path.name, study.table.evidence)
    return Ground(
        folder=folder, within=within, skipped=frozenset(folder / name for name in own), code=CODES[key]
    )


def _files(study: Study, experiment: Experiment, key: Key, globs: list[str], ground: Ground) -> list[Path]:
    """What all globs match together; whatever is wrong with any of them is told at once."""
    files: set[Path] = set()
    problems: list[Problem] = []
    for index, glob in enumerate(globs):
        try:
            found = matching(glob, ground)
            wrong, advice = f"{quoted(glob)} matches no file", ADVICE[key]
        except RefusedError as refusal:
            found, wrong, advice = [], str(refusal), refusal.advice or ADVICE[key]
        except OSError as error:
            found, wrong, advice = [], _unreadable(error), ADVICE[key]
        if not found:
            keys = (key, index)
            problems.append(_problem(study, experiment, keys, f"{quoted(key)}: {wrong}", advice))
        files.update(found)
    if problems:
        raise StudyError(problems)
    return sorted(files)


def _problem(
    study: Study, experiment: Experiment, keys: tuple[Key] | tuple[Key, int], message: str, advice: str
) -> Problem:
    table = ("experiments", experiment.id)
    return Problem(
        code=CODES[keys[0]],
        path=shown(study.path),
        line=positions_of(study.path).line(*table, *keys),
        message=f"{label(table)}: {message}",
        advice=advice,
    )


def _unreadable(error: OSError) -> str:
    return f"{quoted(error.filename)} can't be read: {error.strerror}"


def _digest(
    study: Study, experiment: Experiment, key: Key, files: list[Path], content: Callable[[Path], str]
) -> str | None:
    """The digest of a list of paths, each with the digest of the file's content; ``None`` for no files."""
    if not files:
        return None
    folder = study.folder.resolve()
    try:
        listed = sorted([_path(file, folder), content(file)] for file in files)
    except OSError as error:
        message = f"{quoted(key)}: {_unreadable(error)}"
        raise StudyError(_problem(study, experiment, (key,), message, ADVICE[key])) from None
    return f"sha256:{hashlib.sha256(canonical_json(listed)).hexdigest()}"


def _path(file: Path, folder: Path) -> str:
    """The path from the study's folder, with ``/``; names that are no UTF-8 are escaped."""
    relative = PurePath(os.path.relpath(file, folder)).as_posix()
    return os.fsencode(relative).decode("utf-8", "backslashreplace")


def _content(file: Path) -> str:
    return _tree(file.read_bytes()) if file.suffix == ".py" else _bytes(file)


_tree = lru_cache(maxsize=4096)(tree_digest)
"""Several experiments often have one subject, and of its modules few change at a time."""


def _bytes(file: Path) -> str:
    """SHA-256 of a file, in hex, as ``sha256sum`` prints it; a file of any size takes little memory."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
