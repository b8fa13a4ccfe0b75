"""The git command that comes next, as a shell takes it in the current folder."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_prereg.audit.history.git import Repository

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_prereg.evidence.sessions import SessionFile


class Place(NamedTuple):
    """What is to be added: a file or a folder, or what a pattern stands for after that."""

    path: Path
    pattern: str = ""
    """For the shell, so it is not quoted: ``*`` or ``/*.py``."""


def commit_command(
    folder: Path, places: Sequence[Place], message: str, *, needed: Sequence[Path] = ()
) -> str:
    """Return the command that commits places of a study in one commit.

    Outside of the study's repository it goes there by itself, and where there is none it begins one. What git
    is told to ignore is added all the same: without it the commit would not be what it is for.

    Args:
        folder: The study's.
        places: In the order in which they are named.
        message: Of the commit.
        needed: Files that places stand for and without which the commit is in vain.
    """
    here, repository = Path.cwd(), Repository.find(folder)
    is_inside = _is_inside(here, folder, repository)
    base = here if is_inside else folder
    git = "git" if is_inside else f"git -C {_quoted(folder, here)}"
    paths = [*needed, *(place.path for place in places if not place.pattern)]
    force = "--force " if repository and any(is_ignored(repository, path) for path in paths) else ""
    added = " ".join(f"{_quoted(place.path, base)}{place.pattern}" for place in places)
    command = f"{git} add {force}{added} && {git} commit -m {shlex.quote(message)}"
    return command if repository else f"{_init(folder, here)} && {command}"


def push_command(folder: Path, ref: str) -> str:
    """Return the command that makes a ref of a study's repository known to others."""
    here, repository = Path.cwd(), Repository.find(folder)
    git = "git" if _is_inside(here, folder, repository) else f"git -C {_quoted(folder, here)}"
    return f"{git} push origin {shlex.quote(ref)}"


def whole_history(repository: Repository | None) -> str | None:
    """Return how to have what a shallow clone lacks, tags included; ``None`` for any other one."""
    if repository is None or not repository.shallow:
        return None
    return "git fetch --unshallow --tags (in CI: fetch-depth: 0 and fetch-tags: true)"


def _is_inside(here: Path, folder: Path, repository: Repository | None) -> bool:
    """Whether git, run here, would take the study's repository for its own."""
    if repository is None:
        return here.resolve().is_relative_to(folder.resolve())
    around = Repository.find(here)
    return around is not None and around.root == repository.root


def is_ignored(repository: Repository, path: Path) -> bool:
    """Whether git is told to ignore a file that is there; one that it tracks it never ignores."""
    return path.is_file() and not (repository.files_below(path) or repository.keeper(path))


def _init(folder: Path, here: Path) -> str:
    return "git init" if folder.resolve() == here.resolve() else f"git init {_quoted(folder, here)}"


def _quoted(path: Path, base: Path) -> str:
    return shlex.quote(os.path.relpath(path, base))


def newest(files: Mapping[str, Sequence[SessionFile]]) -> list[Path]:
    """Return the last session file of each experiment: what git ignores of them it ignores of all."""
    return [several[-1].path for several in files.values() if several]
