"""A commit's files in a folder of their own, as a repository whose HEAD it is: what a gate looks at.

The folder has git's objects from the repository that it is made for, and nothing else of it: no
configuration, no hook, no filter, nothing of its work tree. Files are written as git keeps them.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_prereg.audit.history.git import Repository
from pytest_prereg.errors import HistoryError, Problem

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from pytest_prereg.audit.history.git import TreeEntry

_CONFIG = "[core]\n\trepositoryformatversion = 1\n\tbare = false\n\tlogallrefupdates = false\n[extensions]\n"
_OWN = ".git"
_LINK, _SUBMODULE = 0o120000, 0o160000
USUAL, MEMORY = Path("/tmp"), Path("/dev/shm")  # noqa: S108 - where folders with random names are made
"""Where temporary files lie unless somebody says otherwise, and where they lie in memory."""
_TIMES, _EACH = 8, 4096
"""So much more room than both trees take has to be there; bytes of a file beside its content."""


class Tree(NamedTuple):
    """Where all files of a commit are."""

    folder: Path
    files: frozenset[TreeEntry]
    """Those of them that are no links."""


@contextlib.contextmanager
def tree_of(
    repository: Repository, commit: str, refs: Mapping[str, str], like: Tree | None = None
) -> Iterator[Tree]:
    """Yield a folder with all files of a commit, which is gone afterwards. They are to be read alone.

    Links that lead out of it are left out, and so is what submodules keep.

    Args:
        repository: That has the commit.
        commit: Its object name.
        refs: Branches, remote branches and tags that the folder's repository is to have, by full name.
        like: Another commit's; a file that both have is on disk once.

    Raises:
        HistoryError: Git has not all of its files, or they can't be written (PR212).
    """
    entries = repository.tree(commit)
    place = like.folder.parent if like else _place(repository, entries)
    with tempfile.TemporaryDirectory(prefix="prereg-", dir=place, ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve()
        try:
            _begin(folder / _OWN, repository, commit, refs)
            Repository(folder, algorithm=repository.algorithm).write_index(commit)
            files = _write(folder, repository, entries, like)
        except OSError as error:
            message = f"the files of {commit[:8]} can't be written to {folder}: {error.strerror}"
            raise HistoryError(Problem(code="PR212", message=message)) from error
        yield Tree(folder, frozenset(files))


def _place(repository: Repository, entries: Collection[TreeEntry]) -> Path | None:
    """Return where a tree is written: in memory if there is ample room, unless somebody named a folder.

    Hundreds of files that are gone a second later are slow to make on a disk that has just lost as many.
    """
    if Path(tempfile.gettempdir()) != USUAL or not os.access(MEMORY, os.W_OK):
        return None
    room = os.statvfs(MEMORY)
    blobs = [one.blob for one in entries if one.mode != _SUBMODULE]
    needed = _TIMES * (sum(repository.sizes(blobs)) + _EACH * len(blobs))
    return MEMORY if room.f_bavail * room.f_frsize >= needed else None


def _begin(own: Path, repository: Repository, commit: str, refs: Mapping[str, str]) -> None:
    """Write what makes a folder a repository that has the objects of another one."""
    (own / "objects" / "info").mkdir(parents=True)
    (own / "refs").mkdir()
    (own / "HEAD").write_text(f"{commit}\n", encoding="ascii")
    (own / "config").write_text(f"{_CONFIG}\tobjectformat = {repository.algorithm}\n", encoding="ascii")
    (own / "objects" / "info" / "alternates").write_bytes(os.fsencode(_quoted(repository.objects())) + b"\n")
    packed = (f"{target} {name}\n" for name, target in sorted(refs.items()))
    (own / "packed-refs").write_bytes(os.fsencode("".join(packed)))
    if repository.shallow:
        lines = "".join(f"{each}\n" for each in sorted(repository.shallow))
        (own / "shallow").write_text(lines, encoding="ascii")


def _quoted(path: Path) -> str:
    """Return a path as a line of ``alternates``: in quotes where it would be read as something else."""
    text = str(path)
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"' if text.startswith(("#", '"')) or escaped != text else text


def _write(
    folder: Path, repository: Repository, entries: Collection[TreeEntry], like: Tree | None
) -> list[TreeEntry]:
    """Write the files of a tree and return them, links last: nothing is written through one."""
    files = [one for one in entries if one.mode != _SUBMODULE and _is_inside(one.path)]
    plain = [one for one in files if one.mode != _LINK]
    for parent in {os.path.dirname(one.path) for one in plain}:  # noqa: PTH120 - of thousands
        (folder / parent).mkdir(parents=True, exist_ok=True)
    new = [one for one in plain if not (like and one in like.files and _shared(folder, like.folder, one))]
    for one, data in zip(new, repository.contents(one.blob for one in new), strict=True):
        (folder / one.path).write_bytes(data or b"")
        if one.mode & stat.S_IXUSR:
            (folder / one.path).chmod(0o755)
    links = [one for one in files if one.mode == _LINK]
    for one, data in zip(links, repository.contents(one.blob for one in links), strict=True):
        _link(folder, folder / one.path, data or b"")
    for one in links:
        if not _target(folder / one.path).is_relative_to(folder):
            (folder / one.path).unlink(missing_ok=True)
    return plain


def _shared(folder: Path, other: Path, one: TreeEntry) -> bool:
    """Make a file of another folder one of this folder too, where the disk can do that."""
    try:
        os.link(other / one.path, folder / one.path)
    except OSError:
        return False
    return True


def _link(folder: Path, path: Path, target: bytes) -> None:
    """Make a symbolic link below a folder, unless a file is in its way, as in no tree that git makes."""
    with contextlib.suppress(FileExistsError, ValueError):
        path.parent.mkdir(parents=True, exist_ok=True)
        if _target(path.parent).is_relative_to(folder):
            path.symlink_to(os.fsdecode(target))


def _target(path: Path) -> Path:
    """Where a path leads in the end; ``Path.resolve`` raises where links lead in a circle."""
    return Path(os.path.realpath(path))


def _is_inside(path: str) -> bool:
    """Whether a path of a tree names a file below the root, and none of git's own."""
    return not any(part in ("", ".", "..") or part.lower() == _OWN for part in path.split("/"))
