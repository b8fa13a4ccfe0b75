"""Folders for versions that are checked out, outside of the repository, each of one session alone.

A session holds a file lock for its folder, which dies with its process: what a killed session left is known
by that, whatever became of its process id, and removed by the next. Two sessions at once leave each other's.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_prereg.measure.executors.scratch import remove_tree
from pytest_prereg.measure.versions.git import GitError, git

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = "prereg-versions-"
LOCK = ".lock"


class Folder:
    """A folder of this session alone, until it is removed."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    @classmethod
    def make(cls, root: Path) -> Folder:
        """Make one outside of the repository at ``root``, and remove what sessions left that are dead.

        Raises:
            OSError: There is no place for it.
        """
        above = _above(root)
        sweep(root, above)
        while True:
            path = above / f"{PREFIX}{secrets.token_hex(4)}"
            descriptor = _taken(_lock_of(path))
            if descriptor is not None:
                break
        try:
            path.mkdir(mode=0o700)
        except BaseException:
            _forget(path, descriptor)
            raise
        return cls(path, descriptor)

    def remove(self, root: Path) -> None:
        """Remove it, with the work trees of the repository that are in it."""
        _remove(root, self.path)
        _forget(self.path, self._descriptor)


def sweep(root: Path, above: Path) -> None:
    """Remove the folders of dead sessions, and what the repository at ``root`` knows of their work trees."""
    there = [Path(str(path).removesuffix(LOCK)) for path in above.glob(f"{PREFIX}*")]
    for folder in dict.fromkeys([*there, *_known(root)]):
        descriptor = _taken(_lock_of(folder), make=False)
        if descriptor is None and _lock_of(folder).exists():
            continue
        _end_those_of(folder)
        _remove(root, folder)
        _forget(folder, descriptor)


def _end_those_of(folder: Path) -> None:
    """Kill what a dead session's builds still run: all of it has the folder among its variables."""
    name = os.fsencode(folder.name)
    for place in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if name in place.read_bytes() and int(place.parent.name) != os.getpid():
                os.kill(int(place.parent.name), signal.SIGKILL)


def worktrees(root: Path) -> Iterator[Path]:
    """All work trees that the repository knows of, whether they are there or not."""
    with contextlib.suppress(GitError):
        for entry in git(root, "worktree", "list", "--porcelain").split(b"\n"):
            if entry.startswith(b"worktree "):
                yield Path(os.fsdecode(entry.removeprefix(b"worktree ")))


def _known(root: Path) -> list[Path]:
    """Folders of sessions that the repository has work trees in."""
    return [path.parent for path in worktrees(root) if path.parent.name.startswith(PREFIX)]


def _remove(root: Path, folder: Path) -> None:
    """Remove a folder, and then what git knows of the work trees in it."""
    known = [path for path in worktrees(root) if path.parent == folder]
    if _is_own(folder):
        remove_tree(folder)
        if folder.exists():
            _make_writable(folder)
            remove_tree(folder)
    for path in known:
        with contextlib.suppress(GitError):
            git(root, "worktree", "remove", "--force", "--force", str(path))


def _make_writable(folder: Path) -> None:
    """Let folders be emptied that a build has made read-only, as those of package caches are."""
    for parent, inner, _ in os.walk(folder):
        for path in (Path(parent, name) for name in inner):
            if not path.is_symlink():
                with contextlib.suppress(OSError):
                    path.chmod(0o700)


def _is_own(folder: Path) -> bool:
    """Whether it is a folder of this user's, and no link to another."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    return found.st_uid == os.getuid() and folder.is_dir() and not folder.is_symlink()


def _above(root: Path) -> Path:
    """Where folders are made: for temporary files, unless those are kept inside of the repository."""
    found = Path(tempfile.gettempdir()).resolve()
    if not found.is_relative_to(root):
        return found
    found = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").resolve() / "pytest-prereg"
    if found.is_relative_to(root):
        raise NotADirectoryError(0, "folders for temporary files and for caches are inside of the repository")
    found.mkdir(parents=True, exist_ok=True)
    return found


def _lock_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}{LOCK}")


def _taken(lock: Path, *, make: bool = True) -> int | None:
    """Lock a file for as long as this process lives; ``None`` where it is another's, or not there to be had.

    Whoever had it before may have removed the file after it was opened: then the lock is on nothing.
    """
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if make else 0), 0o600)
    except OSError:
        if make:
            raise
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_ino == lock.stat().st_ino:
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


def _forget(folder: Path, descriptor: int | None) -> None:
    """Remove the lock of a folder that is gone; while it is there another session may try again."""
    if not folder.exists():
        _lock_of(folder).unlink(missing_ok=True)
    if descriptor is not None:
        os.close(descriptor)
