"""Files of the repository that a command's arguments name: scripts that it runs, and what it may read."""

from __future__ import annotations

import shlex
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING

from pytest_prereg.registry.commands import texts_of
from pytest_prereg.registry.imports import Imported, Scope, repository_root, resolve
from pytest_prereg.registry.versions import refs_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pytest_prereg.registry.model import Experiment, Study

ENDINGS = frozenset(
    f".{name}" for name in ("bash", "jl", "js", "lua", "mjs", "php", "pl", "py", "r", "rb", "sh", "ts")
)
_FIRST = b"#!"
_INSTALLED = "node_modules"
_OF_AN_ENVIRONMENT = "pyvenv.cfg"


def scripts_of(study: Study, experiment: Experiment) -> list[Path]:
    """Scripts of the repository that a command or its server runs in any arm, in the order of their names.

    A script begins with ``#!`` or has the ending of one; of ``-m NAME`` it is the module. What is installed,
    in a virtual environment or in a hidden folder, is none of the repository's. Where arms are versions of
    the code there are none: those are known by their trees.
    """
    if experiment.kind != "command" or refs_of(experiment):
        return []
    folder = study.folder.resolve()
    within = repository_root(folder / study.path.name) or folder
    found: dict[Path, None] = {}
    every = (tuple(texts) for arm in experiment.arms for texts in texts_of(experiment, arm))
    for texts in dict.fromkeys(every):
        named = (folder / text for text in texts if text and "\0" not in text)
        found |= dict.fromkeys(path.resolve() for path in named if _is_script(path, within))
        found |= dict.fromkeys(path.resolve() for path in _modules(texts, folder, within))
    return list(found)


def files_named(study: Study, experiment: Experiment) -> list[Path]:
    """Files of the repository that a command's or its server's arguments name in any arm, scripts aside.

    They are looked for in what a shell is given to run as well, and behind the ``=`` of an option. Where arms
    are versions of the code there are none.
    """
    if experiment.kind != "command" or refs_of(experiment):
        return []
    folder = study.folder.resolve()
    within = repository_root(folder / study.path.name) or folder
    every = [text for arm in experiment.arms for texts in texts_of(experiment, arm) for text in texts]
    words = (word for text in dict.fromkeys(every) for word in _words(text))
    named = dict.fromkeys((folder / word).resolve() for word in words if _names_a_file(folder / word, within))
    scripts = {*scripts_of(study, experiment)}
    return [path for path in named if path not in scripts]


def _words(text: str) -> Iterator[str]:
    """Yield what may be the name of a file in an argument."""
    split = shlex.shlex(text, posix=True, punctuation_chars=True)
    split.whitespace_split = True
    split.commenters = ""
    words = [text]
    with suppress(ValueError):  # a quotation mark that is open is no shell's
        words += split
    for word in words:
        yield from (each for each in (word, word.partition("=")[2]) if each and "\0" not in each)


def _names_a_file(path: Path, within: Path) -> bool:
    try:
        return path.is_file() and _is_own(path.resolve(), within)
    except OSError:  # as of a text that is too long to be a name
        return False


def scope_of(study: Study, scripts: Sequence[Path]) -> Scope:
    """Where modules are found that scripts import: beside each, then in the study's folder or repository."""
    folder = study.folder.resolve()
    repository = repository_root(folder / study.path.name)
    of_repository = (repository, repository / "src") if repository else ()
    roots = dict.fromkeys([*(path.parent for path in scripts), folder, *of_repository])
    return Scope(roots=tuple(roots), within=repository or folder)


def _modules(texts: Sequence[str], folder: Path, within: Path) -> Iterator[Path]:
    """Modules that ``-m`` runs, as far as they are the repository's."""
    scope = Scope(roots=(folder,), within=within)
    for option, name in pairwise(texts):
        if option == "-m" and all(part.isidentifier() for part in name.split(".")):
            for each in (name, f"{name}.__main__"):
                yield from resolve(Imported(level=0, name=each), folder / "-", scope)


def _is_script(path: Path, within: Path) -> bool:
    try:
        if not path.is_file() or not _is_own(path.resolve(), within):
            return False
        if path.suffix.lower() in ENDINGS:
            return True
        with path.open("rb") as file:
            return file.read(len(_FIRST)) == _FIRST
    except OSError:  # as of a text that is too long to be a name
        return False


def _is_own(path: Path, within: Path) -> bool:
    """Whether a file is the repository's own, and not installed somewhere in it."""
    if not path.is_relative_to(within):
        return False
    folders = path.relative_to(within).parts[:-1]
    if any(name.startswith(".") or name == _INSTALLED for name in folders):
        return False
    above = (parent for parent in path.parents if parent.is_relative_to(within))
    return not any((parent / _OF_AN_ENVIRONMENT).is_file() for parent in above)
