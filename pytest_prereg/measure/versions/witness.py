"""What notes, in every Python that a version runs, where its modules came from; and what that shows.

The note is made when an interpreter exits: what it costs before that is one import of a small module, the
same in all arms. Of a process that is killed, or leaves by ``os._exit``, there is none.
"""

from __future__ import annotations

import contextlib
import json
import py_compile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.measure.executors.base import TRACES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MODULE = "_prereg_witness"
PTH = "prereg-witness.pth"
FOR_OTHERS = "sitecustomize"
"""What a Python of another environment imports as it starts: a program on ``PATH`` may be run by one."""
ROOTS = ("", "src", "lib", "python")
"""Folders of a repository, beside the study's own, whose modules are imported by their bare names."""

SOURCE = """\
import atexit, os, sys

HERE, STANDARD = {here!r}, os.path.dirname(os.__file__) + os.sep
NOTES = os.environ.get({traces!r})
FOLDERS = {{}}


def real(file):
    folder, _, name = file.rpartition(os.sep)
    if folder not in FOLDERS:
        FOLDERS[folder] = os.path.realpath(folder) + os.sep, links(folder)
    place, linked = FOLDERS[folder]
    return os.path.realpath(file) if name in linked else place + name


def links(folder):
    try:
        with os.scandir(folder) as entries:
            return {{entry.name for entry in entries if entry.is_symlink()}}
    except OSError:
        return ()


def is_standard(file):
    return file.startswith(STANDARD) and "-packages" + os.sep not in file


def note():
    found = {{}}
    for name, module in list(sys.modules.items()):
        try:
            file = module.__dict__.get("__file__")
            if file and not is_standard(file):
                file = real(file)
                if not file.startswith(HERE) and not is_standard(file):
                    found[name] = file
        except Exception:
            continue
    if found:
        import json

        place = os.path.join(NOTES, "%d-%s.json" % (os.getpid(), os.urandom(4).hex()))
        try:
            with open(place, "w", encoding="utf-8", errors="surrogateescape") as file:
                json.dump(found, file)
        except OSError:
            pass


if NOTES:
    atexit.register(note)
"""
"""Registered before all else, it is called after all else."""


class Provided(msgspec.Struct, kw_only=True, frozen=True):
    """A tree that an arm's modules may come from."""

    arm: str
    folder: Path
    names: frozenset[str] = frozenset()
    """Modules that it provides, by their top-level names."""


def install(packages: Path, *, tree: Path, environment: Path, others: Path) -> None:
    """Let every Python that starts in an environment note what it imports from elsewhere.

    Args:
        packages: The environment's folder of packages.
        tree: Where the version is checked out.
        environment: The folder of the environment.
        others: A folder yet to be made, which Pythons of other environments are to find modules in.
    """
    here = tuple(f"{folder.resolve()}/" for folder in (tree, environment, others))
    others.mkdir()
    for folder in (packages, others):
        _write(folder / f"{MODULE}.py", SOURCE.format(here=here, traces=TRACES))
    _write(others / f"{FOR_OTHERS}.py", f"import {MODULE}\n")
    (packages / PTH).write_text(f"import {MODULE}\n", encoding="utf-8")


def _write(module: Path, source: str) -> None:
    module.write_text(source, encoding="utf-8")
    py_compile.compile(str(module), doraise=True)  # else the first repeat would do it, and take longer


def strayed(notes: Path, own: Provided, others: Iterable[Provided], work_tree: Path) -> str | None:
    """Say which module came from outside of its tree and should not have; ``None`` if none did.

    Args:
        notes: The folder that the repeat was given for them.
        own: The tree that the process was to run.
        others: Those of other arms.
        work_tree: The study's own, which is none of them.
    """
    places = [(work_tree, "the work tree"), *((each.folder, f"the version of {each.arm}") for each in others)]
    noted = sorted(_noted(notes).items())
    for name, file in noted:
        if whose := next((what for folder, what in places if Path(file).is_relative_to(folder)), None):
            return f"module {name} came from {whose}, and not from the version of {own.arm}: {file}"
    for name, file in noted:
        if name.partition(".")[0] in own.names:
            return f"the version of {own.arm} has module {name}, and it came from elsewhere: {file}"
    return None


def provided(files: Iterable[str], folder: str) -> frozenset[str]:
    """Return the top-level names of the modules among ``files`` of a repository.

    Args:
        files: Paths from its root.
        folder: The study's folder, from the root; empty for the root itself.
    """
    python = [Path(file) for file in files if file.endswith(".py")]
    packages = {path.parent for path in python if path.name == "__init__.py"}
    tops = {package.name for package in packages if package.parent not in packages and package.name}
    roots = {Path(root) for root in (*ROOTS, folder)}
    return frozenset(tops | {path.stem for path in python if path.parent in roots})


def _noted(notes: Path) -> Mapping[str, str]:
    return dict(pair for path in sorted(notes.glob("*.json")) for pair in _pairs(path))


def _pairs(path: Path) -> Iterator[tuple[str, str]]:
    """Read a note; one that was cut short says nothing."""
    with contextlib.suppress(OSError, ValueError):
        yield from json.loads(path.read_text(encoding="utf-8", errors="surrogateescape")).items()
