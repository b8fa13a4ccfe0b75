"""Ways from a version back into the work tree, whichever version is meant: by ``PATH``, and by arguments."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_prereg.registry.commands import texts_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from pytest_prereg.registry.model import Experiment

_OF_AN_ENVIRONMENT = "pyvenv.cfg"


def path_within(path: str, work_tree: Path, tree: Path) -> str:
    """Return a ``PATH`` whose folders in the work tree are those of a version instead.

    Virtual environments stay, for the tools in them: what their Pythons import is looked at by itself.
    """
    return os.pathsep.join(_within(folder, work_tree, tree) for folder in path.split(os.pathsep))


def _within(folder: str, work_tree: Path, tree: Path) -> str:
    found = Path(os.path.realpath(folder))
    if not Path(folder).is_absolute() or not found.is_relative_to(work_tree):
        return folder
    if (found.parent / _OF_AN_ENVIRONMENT).is_file():
        return folder
    return str(tree / found.relative_to(work_tree))


def leading_back(experiment: Experiment, arm: str, work_tree: Path, files: Collection[str]) -> str | None:
    """Return a file of the work tree that an arm's command or server names, ``None`` if neither does.

    What a version has itself is named from its folder. What it lacks, such as data that git ignores, may be
    the work tree's, unless it is the program.
    """
    for program, *arguments in texts_of(experiment, arm):
        if Path(program).is_absolute() and Path(os.path.realpath(program)).is_relative_to(work_tree):
            return program
        for text in arguments:
            for path in _named(text, work_tree):
                if path in files:
                    return str(work_tree / path)
    return None


def _named(text: str, folder: Path) -> Iterator[str]:
    """Yield the paths below a folder that a text has, also within a line for a shell."""
    for found in re.finditer(re.escape(f"{folder}/") + r"([^\s'\"`;|&<>()]+)", text):
        yield os.path.normpath(found[1])
    real = Path(os.path.realpath(text)) if Path(text).is_absolute() else None
    if real is not None and real.is_relative_to(folder):
        yield real.relative_to(folder).as_posix()
