"""What is in the work tree now, as a tree of git's: the user's index and branches are left as they are."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_prereg.measure.versions.git import git, line
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_prereg.registry.model import Study

KEPT = "refs/prereg/trees/"
"""Before the name of a tree that no commit has: git would clear it away one day."""

_AUTHOR = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "pytest-prereg"), ("EMAIL", "pytest-prereg@localhost"))
}
_COMPILED = ":(top,exclude,glob)**/__pycache__/**"
"""What Python leaves beside modules is nobody's source, whether or not git was told to ignore it."""


LARGEST = 1 << 30
"""Bytes of new files that are taken down: so many more are no source, and would stay in the repository."""


class WorkTree(NamedTuple):
    """What the work tree holds, beside what HEAD has."""

    tree: str
    differing: int
    """Files that are not as HEAD has them, those of the study itself aside."""
    unkept: tuple[str, ...] = ()
    """Repositories inside of it with new files, or new as a whole, which are not in the tree."""


class UntakenError(Exception):
    """Why what is in the work tree can't be taken down, and what to do."""

    def __init__(self, message: str, advice: str) -> None:
        super().__init__(message)
        self.advice = advice


def snapshot(root: Path, study: Study) -> WorkTree:
    """Write what is in the work tree to git's objects: what it tracks, and new files that it does not ignore.

    The study's prediction file, lock and evidence are taken as HEAD has them: they are about what is
    measured, and no part of it.

    Raises:
        GitError: Git refused.
        UntakenError: It can't be taken as it is.
    """
    state = _state(root)
    own = own_paths(root, study)
    without = [f":(top,exclude,literal){path}" for path in (*own, *state.nested)]
    with tempfile.TemporaryDirectory(prefix="prereg-index-") as folder:
        variables = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        _copy_index(root, Path(folder) / "index")
        git(root, "add", "--all", "--", ":(top)", *without, _COMPILED, variables=variables)
        places = [f":(top,literal){path}" for path in own]
        git(root, "reset", "--quiet", "HEAD", "--", *places, variables=variables)
        tree = line(root, "write-tree", variables=variables)
    changed = git(root, "diff-tree", "-r", "--name-only", "-z", "--no-renames", "HEAD^{tree}", tree)
    return WorkTree(tree, changed.count(b"\0"), (*state.grown, *state.nested))


def own_paths(root: Path, study: Study) -> list[str]:
    """The study's prediction file, lock and evidence, as git's trees have them; those elsewhere left out."""
    folder = study.folder.resolve()
    places = (folder / study.path.name, folder / study.lock_path.name, study.evidence_folder.resolve())
    return [place.relative_to(root).as_posix() for place in places if place.is_relative_to(root)]


def commit_of(root: Path, tree: str, parent: str | None) -> str:
    """A commit that has the tree, to be checked out; for one tree and parent always the same."""
    above = ["-p", parent] if parent else []
    date = line(root, "show", "--no-patch", "--format=%ct +0000", parent) if parent else "0 +0000"
    variables = {**_AUTHOR, "GIT_AUTHOR_DATE": f"@{date}", "GIT_COMMITTER_DATE": f"@{date}"}
    return line(root, "commit-tree", tree, *above, "-m", "What was in the work tree", variables=variables)


def keep(root: Path, tree: str, parent: str) -> str:
    """Keep a tree that no commit has for as long as its ref is there; returns the ref."""
    name = f"{KEPT}{tree}"
    git(root, "update-ref", name, commit_of(root, tree, parent))
    return name


def _copy_index(root: Path, place: Path) -> None:
    """Copy the user's index: it knows which files need not be read again, and what is left out of sight.

    With its times: git takes a file that is as young as the index for one that may have changed since.
    """
    index = root / line(root, "rev-parse", "--git-path", "index")
    if index.exists():
        shutil.copy2(index, place)
    else:
        git(root, "read-tree", "HEAD", variables={"GIT_INDEX_FILE": str(place)})


class _State(NamedTuple):
    """What git's account of a work tree says of repositories inside of it."""

    grown: list[str]
    """Submodules with new files."""
    nested: list[str]
    """Repositories that are no submodules."""


def _state(root: Path) -> _State:
    """Look for what can't be in a tree.

    Raises:
        UntakenError: A submodule has changes, of which git knows no more than its commit; or there are new
            files of more than a GiB.
    """
    options = ["--porcelain=v2", "-z", "--ignore-submodules=none", "--untracked-files=all"]
    entries = git(root, "status", *options).split(b"\0")
    states = dict(_submodules(entries))
    for path, state in states.items():
        if "M" in state:
            message = f"submodule {quoted(path)} has changes, and git knows of it no more than its commit"
            raise UntakenError(message, "Commit them there, or take them back.")
    new = [os.fsdecode(entry[2:]) for entry in entries if entry.startswith(b"? ")]
    _check_size(root, new)
    grown = [path for path, state in states.items() if "U" in state]
    return _State(grown, [path.removesuffix("/") for path in new if path.endswith("/")])


def _check_size(root: Path, new: Sequence[str]) -> None:
    total = 0
    for path in new:
        with contextlib.suppress(OSError):
            total += (root / path).lstat().st_size
    if total > LARGEST:
        message = f"new files in the work tree have {total / (1 << 30):.1f} GiB, too much to be source"
        raise UntakenError(message, "Tell git to ignore what is none (.gitignore), or commit it.")


def _submodules(entries: Sequence[bytes]) -> Iterator[tuple[str, str]]:
    """Path and state of the submodules that a status names: what of their files changed, M or U, or a dot.

    An entry of a renamed file is followed by one with its former name alone.
    """
    for entry in entries:
        kind, _, rest = entry.partition(b" ")
        fields = rest.split(b" ", {b"1": 7, b"2": 8, b"u": 9}.get(kind, 0))
        if kind in {b"1", b"2", b"u"} and len(fields) > 1 and fields[1].startswith(b"S"):
            yield os.fsdecode(fields[-1]), fields[1].decode("ascii", "replace")[2:]
