"""Writing session files so that nothing that was bought is lost.

Every append is one write of a whole line and a sync. A session that resumes another's work opens a file of
its own, so a line that a kill has torn is never followed by another.
"""

from __future__ import annotations

import errno
import math
import os
import time
from typing import TYPE_CHECKING, Literal

from pytest_prereg.errors import EvidenceError, Problem
from pytest_prereg.evidence.bounding import bounded_line
from pytest_prereg.evidence.disk import make_folder, put, sync_folder, write_synced
from pytest_prereg.evidence.holds import ExperimentHold
from pytest_prereg.evidence.lines import digest, encode
from pytest_prereg.evidence.model import Finished, Footer
from pytest_prereg.evidence.naming import session_file_name, shown, utc_now
from pytest_prereg.evidence.sidecars import keep, needed_by

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from pytest_prereg.evidence.model import Header, Launched, Line, Started

RESERVE = 1 << 20
"""Bytes that must be free before a repeat is launched, so that what it yields can be kept."""

Ended = Literal["finished", "interrupted", "failed", "stopped"]


class SessionWriter:
    """Appends to a session file of its own; :meth:`open` it, and :meth:`close` it whatever happens."""

    def __init__(self, path: Path, descriptor: int, hold: ExperimentHold | None) -> None:
        self.path = path
        self._descriptor: int | None = descriptor
        self._hold = hold
        self._began = time.monotonic()
        self._kept = 0
        self._broken = False

    @classmethod
    def open(cls, folder: Path, header: Header, *, hold: ExperimentHold | None = None) -> SessionWriter:
        """Create ``<folder>/<experiment>/<UTC time>-<8 hex>.jsonl`` with ``header`` as its first line.

        Args:
            folder: the evidence folder of the study.
            header: what is measured, and all that was known when ``hold`` had been taken.
            hold: the caller's hold on the experiment; without it the writer takes one until it is closed.

        Raises:
            EvidenceError: nothing can be written there, or another session has the experiment.

        """
        own = None if hold else ExperimentHold.take(folder, header.experiment)
        try:
            path, descriptor = _create(folder / header.experiment, encode(header))
        except OSError as error:
            if own:
                own.release()
            raise EvidenceError(_unwritable(folder / header.experiment, error)) from error
        return cls(path, descriptor, own)

    def started(self, line: Started) -> None:
        """Record that a repeat is about to be launched; only after this may it be.

        Raises:
            EvidenceError: it could not be recorded, or what it yields could not be: it must not be launched.

        """
        try:
            self._check_space()
            self._append(line)
        except OSError as error:
            raise EvidenceError(self._problem(f'"{line.repeat}" was not launched', error)) from error

    def launched(self, line: Launched) -> None:
        """Record what finds a repeat again that a service runs; only after this is it waited for.

        Raises:
            EvidenceError: it could not be recorded: whoever goes on will not find it.

        """
        try:
            self._append(line)
        except OSError as error:
            lost = f'"{line.repeat}" runs as {line.call}, and that could not be kept'
            raise EvidenceError(self._problem(lost, error)) from error

    def finished(self, line: Finished) -> None:
        """Record how an attempt ended.

        Raises:
            EvidenceError: it could not be recorded; the attempt counts as lost.

        """
        _check_finite(line, self.path)
        try:
            self._append(keep(self.path.parent, bounded_line(line)))
        except OSError as error:
            lost = f'what "{line.repeat}" yielded could not be kept, it will be run again'
            raise EvidenceError(self._problem(lost, error)) from error
        self._kept += 1

    def close(self, ended: Ended) -> None:
        """Write the footer and let go of the file and of the writer's own hold; a second call does nothing.

        Raises:
            EvidenceError: the footer could not be written; the file is whole without it.

        """
        if self._descriptor is None:
            return
        try:
            self._mend()
            lasted = time.monotonic() - self._began
            self._append(_footer(self.path.read_bytes(), ended, lasted))
        except OSError as error:
            if not self._broken:
                raise EvidenceError(self._problem("the session could not be closed", error)) from error
        finally:
            descriptor, self._descriptor = self._descriptor, None
            os.close(descriptor)
            if self._hold:
                self._hold.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close("finished")
        else:
            self.close("failed" if isinstance(error, Exception) else "interrupted")

    def _append(self, line: Line) -> None:
        self._mend()
        descriptor = self._open_descriptor()
        before = os.fstat(descriptor).st_size
        try:
            write_synced(descriptor, encode(line))
        except OSError:
            self._broken = True
            os.ftruncate(descriptor, before)
            raise

    def _mend(self) -> None:
        """Bring back a file that was removed; cut off what an interrupted write may have left of a line."""
        descriptor = self._open_descriptor()
        if not self._is_in_place(descriptor):
            descriptor = self._descriptor = self._written_again(descriptor)
        size = os.fstat(descriptor).st_size
        if os.pread(descriptor, 1, size - 1) != b"\n":
            os.ftruncate(descriptor, self.path.read_bytes().rfind(b"\n") + 1)

    def _is_in_place(self, descriptor: int) -> bool:
        try:
            there = self.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:  # hidden, but as far as anybody knows it is there
            return os.fstat(descriptor).st_nlink > 0
        return os.path.samestat(there, os.fstat(descriptor))

    def _written_again(self, removed: int) -> int:
        """Write the file anew: that somebody stashed or cleaned is no reason to lose what was bought.

        Git may have put back what the file was when it was committed; anything else is not overwritten.
        """
        content = os.pread(removed, os.fstat(removed).st_size, 0)
        if self.path.exists() and not content.startswith(self.path.read_bytes()):
            raise OSError(errno.EEXIST, "another file has taken its place")
        make_folder(self.path.parent)
        put(self.path, content)
        sync_folder(self.path.parent)
        os.close(removed)
        return os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)

    def _open_descriptor(self) -> int:
        if self._descriptor is None:
            raise OSError(errno.EBADF, "the session is closed")
        return self._descriptor

    def _check_space(self) -> None:
        room = os.fstatvfs(self._open_descriptor())
        if room.f_blocks and room.f_bavail * room.f_frsize < RESERVE:
            raise OSError(errno.ENOSPC, f"less than {RESERVE >> 20} MiB of space is left")

    def _problem(self, what: str, error: OSError) -> Problem:
        return Problem(
            code="PR121",
            message=f"{what}: {error.strerror}; {self._kept} finished repeats of this session are kept here",
            path=shown(self.path),
            advice="Mend that and give the same command: it goes on where it stopped.",
        )


def write_session(folder: Path, header: Header, lines: Sequence[Line]) -> Path:
    """Write a finished session file all at once, or none; for evidence that is at hand already.

    It is for who has the hold on the experiment: nobody else writes vectors there meanwhile.

    Raises:
        EvidenceError: it could not be written; nothing of it is there.

    """
    place = folder / header.experiment
    try:
        make_folder(place)
        path = place / session_file_name(place, encode(header))
        with needed_by(path):
            kept = (keep(place, bounded_line(line)) if isinstance(line, Finished) else line for line in lines)
            body = b"".join(map(encode, (header, *kept)))
            put(path, body + encode(_footer(body, "finished")))
        sync_folder(place)
    except OSError as error:
        raise EvidenceError(_unwritable(place, error)) from error
    return path


def _footer(before: bytes, ended: Ended, seconds: float | None = None) -> Footer:
    return Footer(
        lines=before.count(b"\n"), digest=digest(before), ended=ended, at=utc_now(), seconds=seconds
    )


def _create(folder: Path, header: bytes) -> tuple[Path, int]:
    make_folder(folder)
    path = folder / session_file_name(folder, header)
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o644)
    try:
        write_synced(descriptor, header)
        sync_folder(folder)
    except BaseException:
        os.close(descriptor)
        path.unlink(missing_ok=True)
        raise
    return path, descriptor


def _check_finite(line: Finished, path: Path) -> None:
    """JSON has no NaN and no infinity: what can't be read back must not be written."""
    for metric, value in line.values.items():
        for number in value if isinstance(value, list) else (value,):
            if not math.isfinite(number):
                message = f'"{line.repeat}" recorded {number} as "{metric}"'
                raise EvidenceError(Problem(code="PR123", message=message, path=shown(path)))


def _unwritable(folder: Path, error: OSError) -> Problem:
    return Problem(
        code="PR121",
        message=f"no evidence can be written here: {error.strerror}; nothing was launched or recorded",
        path=shown(folder),
    )
