"""Other studies of a repository that could be taken for one: all that have its id, wherever they lie."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from pytest_prereg.audit.history.git import Repository
from pytest_prereg.audit.history.lock_trees import OF_OTHERS
from pytest_prereg.errors import HistoryError
from pytest_prereg.registry.namesakes import check_namesakes, id_of

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_prereg.errors import Problem
    from pytest_prereg.registry.model import Study


def namesakes(repository: Repository | None, study: Study) -> list[Problem]:
    """Return PR002 for each other study with the same id: of the project, or tracked by git with its lock."""
    registered: list[Path] = []
    with suppress(HistoryError):  # who asks for the history is told
        locks = repository.tracked("*.lock") if repository is not None else []
        registered = [path.with_suffix(".toml") for path in locks if path.name not in OF_OTHERS]
    return check_namesakes(study, registered)


def ids_taken(folder: Path) -> set[object]:
    """Return the ids of all studies in the repository that a folder lies in, committed or not."""
    every: list[Path] = []
    with suppress(HistoryError):  # a study can be begun all the same
        repository = Repository.find(folder)
        every = repository.files_below(repository.root) if repository is not None else []
    return {id_of(path) for path in every if path.suffix == ".toml"}
