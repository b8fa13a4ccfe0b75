"""A study's id is its own for life: registrations and evidence are found by it, wherever their files lie."""

from __future__ import annotations

import tomllib
from contextlib import suppress
from typing import TYPE_CHECKING

from pytest_prereg.errors import Problem, StudyError
from pytest_prereg.registry.load import find_studies
from pytest_prereg.registry.lock_file import read_lock
from pytest_prereg.registry.plain_files import read_plain
from pytest_prereg.registry.refusals import quoted
from pytest_prereg.registry.toml import shown

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pytest_prereg.registry.lock_file import Lock
    from pytest_prereg.registry.model import Study


def check_namesakes(study: Study, registered: Iterable[Path] = ()) -> list[Problem]:
    """Return PR002 for each other study that has the same id, of the project or ``registered`` elsewhere.

    Args:
        study: The one that is asked for.
        registered: Prediction files of the repository with a lock beside them. Copies of this very study,
            as it is or as it once was, are no others.
    """
    folder = study.path.parent
    root = folder.parent if folder.name == "predictions" else folder
    beside = [path.absolute() for path in find_studies(root)]
    known = {path.resolve() for path in beside}
    elsewhere = (path for path in registered if path.resolve() not in known)
    return [
        *(_problem(study, path) for path in beside if path != study.path and id_of(path) == study.id),
        *(_problem(study, path) for path in elsewhere if _is_another(study, path)),
    ]


def id_of(path: Path) -> object:
    """Return the id that a prediction file states; ``None`` where it can't be read, or is none."""
    try:
        table = tomllib.loads(read_plain(path).decode()).get("study")
    except (OSError, ValueError, RecursionError):
        return None
    return table.get("id") if isinstance(table, dict) else None


def _is_another(study: Study, path: Path) -> bool:
    if path.resolve() == study.path.resolve() or id_of(path) != study.id:
        return False
    own, other = (_lock(each) for each in (study.lock_path, path.with_suffix(".lock")))
    return not (own and other and (_is_earlier(own, other) or _is_earlier(other, own)))


def _lock(path: Path) -> Lock | None:
    with suppress(StudyError):
        return read_lock(path)
    return None


def _is_earlier(lock: Lock, other: Lock) -> bool:
    """Whether another lock registers all that one does, as it is or amended."""
    return all(
        name in other.predictions
        and entry.digest in {other.predictions[name].digest, *_replaced(other, name)}
        for name, entry in lock.predictions.items()
    )


def _replaced(lock: Lock, name: str) -> Iterable[str]:
    return (one.old for one in lock.predictions[name].amendments if one.key == "digest")


def _problem(study: Study, other: Path) -> Problem:
    return Problem(
        code="PR002",
        path=shown(study.path),
        message=f"study id {quoted(study.id)} is that of {shown(other)}, too",
        advice="Registrations and evidence are kept by it; give the newer study an id of its own.",
    )
