"""One session at a time may add to an experiment: a lock that dies with its process.

What is measured next depends on what is there already, so it must be read after the hold was taken. The
lock file is no evidence: it lies in the git folder where there is one, else in the folder for temporary
files.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_prereg.errors import EvidenceError, Problem

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self


class ExperimentHold:
    """The right to add evidence to one experiment, until :meth:`release` or the end of the process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    @classmethod
    def take(cls, evidence: Path, experiment: str) -> ExperimentHold:
        """Take the hold on ``experiment`` of the study whose evidence lies in ``evidence``.

        Raises:
            EvidenceError: another session has it, or no lock file can be made.

        """
        try:
            path = _lock_file(evidence, experiment)
            descriptor = _opened(path)
        except OSError as error:
            raise EvidenceError(_no_lock(error.filename, error)) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
            os.close(descriptor)
            problem = (
                _busy(experiment, holder) if isinstance(error, BlockingIOError) else _no_lock(path, error)
            )
            raise EvidenceError(problem) from error
        with contextlib.suppress(OSError):  # who has it is for people; a full disk keeps nobody from it
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        return cls(descriptor)

    def release(self) -> None:
        """Give the hold back; a second call does nothing."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _opened(path: Path) -> int:
    """Open a lock file, and make it if need be; one that is there can be locked without being written to."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        if not path.exists():
            raise
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def _busy(experiment: str, holder: str) -> Problem:
    process = f" (process {holder})" if holder else ""
    return Problem(
        code="PR120",
        message=f'another session is measuring or importing "{experiment}"{process}',
        advice="Wait until it has ended, or stop it; what it has finished is kept either way.",
    )


def _no_lock(path: Path | str | None, error: OSError) -> Problem:
    message = f"no lock can be had: {error.strerror}"
    return Problem(code="PR120", message=message, path=None if path is None else str(path))


def _lock_file(evidence: Path, experiment: str) -> Path:
    """Return where the lock of ``experiment`` is; its folder exists."""
    evidence = evidence.resolve()
    key = hashlib.sha256(os.fsencode(evidence)).hexdigest()[:16]
    name = f"{key}-{experiment}.lock"
    git = _git_folder(evidence)
    if git is not None:
        folder = git / "pytest-prereg"
        if (folder / name).exists():  # another session may have it, writable by now or not
            return folder / name
        try:
            folder.mkdir(exist_ok=True)
        except OSError:
            pass
        else:
            if os.access(folder, os.W_OK):
                return folder / name
    folder = Path(tempfile.gettempdir()) / f"pytest-prereg-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder / name


def _git_folder(start: Path) -> Path | None:
    """Return the git folder of the work tree around ``start``, without asking git."""
    for folder in (start, *start.parents):
        entry = folder / ".git"
        if entry.is_dir():
            return entry
        if entry.is_file():  # a worktree or submodule: the file says where
            target = folder / entry.read_text(encoding="utf-8", errors="replace").partition(":")[2].strip()
            return target if target.is_dir() else None
    return None
