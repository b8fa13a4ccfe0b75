"""What HEAD has of a study: its lock, the code that is measured, and evidence that may have grown since."""

from __future__ import annotations

import shlex
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_prereg.audit.history.git import Repository
from pytest_prereg.errors import Problem, StudyError
from pytest_prereg.evidence.naming import SUFFIX, blob_id, shown
from pytest_prereg.evidence.sidecars import SUFFIX as SIDECAR
from pytest_prereg.evidence.sidecars import is_intact
from pytest_prereg.registry.lock import parse_lock
from pytest_prereg.registry.scripts import files_named
from pytest_prereg.registry.sources import source_files
from pytest_prereg.registry.subjects import data_files, subject_files
from pytest_prereg.registry.trees import tree_digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pytest_prereg.registry.lock import Lock
    from pytest_prereg.registry.model import Experiment, Study


def committed_lock(repository: Repository | None, study: Study) -> Lock | None:
    """Return the lock as HEAD has it; ``None`` without git or a commit, or where there is none of the study.

    Raises:
        StudyError: It can't be read, as by :func:`parse_lock`.
    """
    if repository is None or repository.head() is None:
        return None
    data = repository.file_at("HEAD", study.lock_path)
    try:
        lock = None if data is None else parse_lock(data, f"HEAD:{shown(study.lock_path)}")
    except StudyError as error:
        place = shlex.quote(shown(study.lock_path))
        advice = f"Find one that can be read, and commit it: git log --oneline -- {place}"
        raise StudyError([replace(problem, advice=advice) for problem in error.problems]) from None
    return lock if lock is None or lock.study == study.id else None


def uncommitted_code(repository: Repository, study: Study, experiment: Experiment) -> list[Path]:
    """Return the modules that an experiment runs and that are not in HEAD's tree as they are.

    Comments and formatting count no more than in its source digest. A module that git is told to ignore, or
    that another repository keeps, only has to be there if it is the experiment's own.

    Raises:
        StudyError: its subject is not there (PR042).
    """
    source = experiment.source
    own = source.path.resolve() if source is not None and source.path is not None else None
    files = source_files(study, experiment)
    before = repository.contents(f"HEAD:{repository.relative(path) or ''}" for path in files)
    return [
        path
        for path, committed in zip(files, before, strict=True)
        if not _is_committed(repository, path, committed, is_own=path == own)
    ]


def _is_committed(repository: Repository, path: Path, committed: bytes | None, *, is_own: bool) -> bool:
    if committed is None:
        return not (is_own or repository.files_below(path))
    now = path.read_bytes()
    return committed == now or tree_digest(committed) == tree_digest(now)


def uncommitted_files(study: Study, experiment: Experiment) -> list[Path]:
    """Return what a command's arguments name and no commit will have: whoever repeats it lacks that.

    Scripts, which are code, what is registered as data or subject, and the file that results are read from
    are left out.
    """
    known = {*_declared(study, experiment)}
    if experiment.table.read is not None:
        known.add((study.folder / experiment.table.read.file).resolve())
    named = [path for path in files_named(study, experiment) if path not in known]
    repository = Repository.find(study.folder) if named else None
    return [path for path in named if repository is None or not repository.is_tracked(path)]


def _declared(study: Study, experiment: Experiment) -> Iterator[Path]:
    for files in (data_files, subject_files):
        with suppress(StudyError):  # a glob that matches nothing is told of where it is registered
            yield from (path.resolve() for path in files(study, experiment))


def check_committed(repository: Repository | None, folder: Path) -> list[Problem]:
    """Return a problem for each session file or sidecar below ``folder`` that is no more as HEAD has it.

    Without a repository or a commit there is nothing to compare with.
    """
    if repository is None or repository.head() is None:
        return []
    place = repository.relative(folder)
    blobs = repository.blobs_at("HEAD", place) if place is not None else {}
    committed = {
        repository.root / path: blob for path, blob in blobs.items() if path.endswith((SUFFIX, SIDECAR))
    }
    return list(_altered(repository, committed))


def _altered(repository: Repository, committed: dict[Path, str]) -> Iterator[Problem]:
    present = dict(_contents(committed))
    other = [
        path
        for path, data in present.items()
        if data is None or blob_id(data, repository.algorithm) != committed[path]
    ]
    for path, before in zip(other, repository.contents(committed[path] for path in other), strict=True):
        data = present[path]
        if data is None:
            yield _problem(path, "is gone")
        elif before is None or not _is_kept(path, data, before):
            yield _problem(path, "is not what was committed")


def _is_kept(path: Path, data: bytes, before: bytes) -> bool:
    """Whether a session file has only grown, or a sidecar still holds its numbers, however packed."""
    return is_intact(path.name, data) if path.name.endswith(SIDECAR) else data.startswith(before)


def _contents(paths: Iterable[Path]) -> Iterator[tuple[Path, bytes | None]]:
    """Yield what is in each file, ``None`` if it is gone; one that can't be read says so when it is read."""
    for path in paths:
        try:
            yield path, path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            yield path, None
        except OSError:
            continue


def _problem(path: Path, what: str) -> Problem:
    """Return what is wrong with a file: it is named at the place of the folder where it is a sidecar."""
    place = path.parent if path.name.endswith(SIDECAR) else path
    return Problem(
        code="PR207",
        message=f'evidence "{path.relative_to(place.parent.parent)}" {what}',
        path=shown(place),
        advice=f"Bring it back: git checkout HEAD -- {shlex.quote(shown(path))}\n"
        "What must not count is excluded with a reason, never removed.",
    )
