"""A study's id is its own for life: registrations and evidence are found by it, wherever their files lie."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

from pytest_prereg.errors import Problem
from pytest_prereg.registry.load import find_studies
from pytest_prereg.registry.refusals import quoted
from pytest_prereg.registry.toml import shown

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_prereg.registry.model import Study


def check_namesakes(study: Study) -> list[Problem]:
    """Return PR002 for each other study of the project that has the same id."""
    folder = study.path.parent
    root = folder.parent if folder.name == "predictions" else folder
    others = (path for path in find_studies(root) if path.absolute() != study.path)
    return [_problem(study, path) for path in others if _id_of(path) == study.id]


def _id_of(path: Path) -> object:
    """The id that a prediction file states; ``None`` where it can't be read, which loading it tells."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8")).get("study")
    except (OSError, ValueError, RecursionError):
        return None
    return table.get("id") if isinstance(table, dict) else None


def _problem(study: Study, other: Path) -> Problem:
    return Problem(
        code="PR002",
        path=shown(study.path),
        message=f"study id {quoted(study.id)} is that of {shown(other)}, too",
        advice="Registrations and evidence are kept by it; give the newer study an id of its own.",
    )
