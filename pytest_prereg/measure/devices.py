"""Locks on what repeats are measured on, between all sessions, studies and users of a machine.

Each device is a file in one folder for all. A lock (``flock``) belongs to whoever has the file open, so it
ends with the last process that has: nothing has to be cleared up after a ``kill -9``. The files themselves
stay.

Whoever wants the machine first takes the ``turn``, and gives it back once it has the machine. So a session
that measures one repeat after another lets a waiting one in between, and many that share the machine do not
keep away for ever the one that needs it alone.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_prereg.errors import MeasureError, Problem
from pytest_prereg.evidence import gpu_readings

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence

    from pytest_prereg.evidence.gpu_readings import Gpu

FOLDER = "pytest-prereg-devices"
MACHINE = "machine"
TURN = "turn"
PROCESSES = Path("/proc")
OPEN = os.O_RDONLY | os.O_CLOEXEC

SHORTEST_WAIT = 0.005
LONGEST_WAIT = 0.25
"""Seconds between two looks: what waits must not disturb what is measured meanwhile."""
PATIENCE = 1 / 8
"""Between two looks passes so much of the time waited so far."""
TELL_SECONDS = 0.5
SETTLING_SECONDS = 1.0
"""How long another process may take between making the folder and opening it to all."""


class Claim(NamedTuple):
    """What a repeat needs of a device: the whole of it, or a share."""

    device: str
    exclusive: bool


def claims_of(exclusive: bool, gpus: Sequence[Gpu] | None, environ: Mapping[str, str]) -> list[Claim]:  # noqa: FBT001
    """Return what a repeat claims, in the order in which everybody has to take it.

    A GPU is never shared: to each of two repeats the other would be a foreign process. Where the GPUs can't
    be told, nobody knows which a repeat uses, and it has the machine alone.

    Args:
        exclusive: Whether the repeat has the machine alone.
        gpus: The GPUs of this machine; ``None`` if there are some that can't be told.
        environ: Environment of the repeat, which says what GPUs it can see.
    """
    if gpus is None:
        return [Claim(MACHINE, exclusive=True)]
    seen = sorted(gpu.uuid for gpu in gpu_readings.visible(gpus, environ))
    return [Claim(MACHINE, exclusive), *(Claim(f"gpu-{_file_name(uuid)}", exclusive=True) for uuid in seen)]


def gpus_here() -> tuple[Gpu, ...] | None:
    """Return the GPUs of this machine, ``None`` if it has some that can't be told; asks the driver."""
    return gpu_readings.look().gpus if gpu_readings.gpu_is_there() else ()


class DeviceLocks:
    """The devices of one repeat: taken before it is launched, and handed to the processes that run it."""

    def __init__(self) -> None:
        self.descriptors: list[int] = []
        """Open files, whose locks last until the last process that has them has closed them."""
        self.waited = 0.0
        """Seconds."""

    def take(self, claims: Sequence[Claim], *, waiting: Callable[[], None] | None = None) -> None:
        """Take what is claimed, the machine first; wait as long as others have it.

        Args:
            claims: As :func:`claims_of` returns them.
            waiting: Called when it has to wait, and about every half second from then on. What it raises
                ends the wait.

        Raises:
            MeasureError: PR133, if no lock file can be had. Then, and when interrupted, nothing is held.
        """
        began = time.monotonic()
        wait = _Wait(waiting)
        try:
            turn = self._take(Claim(TURN, exclusive=True), wait)
            machine, *others = claims
            self._take(machine, wait)
            self._close(turn)
            for claim in others:
                self._take(claim, wait)
        except BaseException:
            self.release()
            raise
        self.waited = time.monotonic() - began if wait.began is not None else 0.0

    def release(self) -> None:
        """Close the files here: what other processes have of them stays locked."""
        while self.descriptors:
            self._close(self.descriptors[-1])

    def _take(self, claim: Claim, wait: _Wait) -> int:
        how = fcntl.LOCK_EX if claim.exclusive else fcntl.LOCK_SH
        while True:
            descriptor = self._open(claim.device)
            while not _locked(descriptor, how):
                if wait.began is None and _is_held_above(descriptor):
                    return descriptor  # what runs inside of a repeat would wait for its own end
                wait.sleep()
            if _is_current(descriptor, claim.device):
                return descriptor
            self._close(descriptor)  # somebody has removed the file, and others lock a new one

    def _open(self, device: str) -> int:
        try:
            with _folder() as folder:
                descriptor = _open_file(device, folder)
        except OSError as error:
            raise MeasureError(_no_lock(device, error)) from error
        self.descriptors.append(descriptor)
        return descriptor

    def _close(self, descriptor: int) -> None:
        self.descriptors.remove(descriptor)
        os.close(descriptor)


def measuring() -> list[int]:
    """Return the processes of other sessions that hold a device now, as far as the kernel tells."""
    with suppress(OSError, ValueError):
        devices = {entry.stat().st_ino for entry in _path().iterdir() if entry.name != TURN}
        lines = (PROCESSES / "locks").read_text(encoding="ascii").splitlines()
        return sorted({pid for pid, inode in map(_flock, lines) if inode in devices} - {os.getpid()})
    return []


def _flock(line: str) -> tuple[int, int]:
    """Process and inode of a line of ``/proc/locks``; of none that holds a lock of whole files, zeros.

    ``1: FLOCK  ADVISORY  WRITE 27478 fe:00:4161854 0 EOF``; where one waits, an arrow comes before the kind.
    """
    _, kind, _, _, pid, file, *_ = line.split()
    return (int(pid), int(file.rpartition(":")[2])) if kind == "FLOCK" else (0, 0)


class _Wait:
    """Looks again and again, the less often the longer it has lasted, and says that it waits."""

    def __init__(self, waiting: Callable[[], None] | None) -> None:
        self.waiting = waiting
        self.began: float | None = None
        self.told = 0.0

    def sleep(self) -> None:
        now = time.monotonic()
        if self.began is None:
            self.began = now
        if self.waiting is not None and (not self.told or now - self.told >= TELL_SECONDS):
            self.told = now
            self.waiting()
        time.sleep(min(max(SHORTEST_WAIT, (now - self.began) * PATIENCE), LONGEST_WAIT))


def _path() -> Path:
    return Path(tempfile.gettempdir()) / FOLDER


@contextmanager
def _folder() -> Generator[int]:
    """The folder for all users, made if need be and opened; a link in its place is none."""
    path = _path()
    try:
        path.mkdir(mode=0o755)
        made = True
    except FileExistsError:
        made = False
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if made:
            os.fchmod(descriptor, 0o1777)  # mkdir obeys the umask
        yield descriptor
    finally:
        os.close(descriptor)


def _open_file(name: str, folder: int) -> int:
    """Open a lock file, made if need be.

    Reading is enough to lock it, whoever made it. It is made apart from opening it: of a file that another
    user has in a folder for all, the kernel may refuse to open with ``O_CREAT`` what it opens without.
    """
    until = time.monotonic() + SETTLING_SECONDS
    while True:
        with suppress(FileNotFoundError):
            return _checked(os.open(name, OPEN | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder))
        try:
            return _opened_to_all(os.open(name, OPEN | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=folder))
        except FileExistsError:
            continue
        except PermissionError:
            if time.monotonic() > until:
                raise
        time.sleep(SHORTEST_WAIT)


def _opened_to_all(descriptor: int) -> int:
    with suppress(OSError):
        os.fchmod(descriptor, 0o666)
    return descriptor


def _checked(descriptor: int) -> int:
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is no regular file")


def _locked(descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise MeasureError(_no_lock("", error)) from error
    return True


def _is_current(descriptor: int, device: str) -> bool:
    """Whether a locked file is still the one that others find; then also keep it from looking abandoned."""
    try:
        if not os.path.samestat(os.fstat(descriptor), (_path() / device).lstat()):
            return False
    except FileNotFoundError:
        return False
    with suppress(OSError):  # what clears temporary folders goes by age
        os.utime(descriptor)
    return True


def _is_held_above(descriptor: int) -> bool:
    """Whether a process that this one descends from holds the lock: then this runs inside of its repeat."""
    wanted = os.fstat(descriptor)
    pid = os.getppid()
    while pid > 1:
        if any(os.path.samestat(found, wanted) for found in _locked_files(pid)):
            return True
        pid = _parent(pid)
    return False


def _locked_files(pid: int) -> Iterator[os.stat_result]:
    """The files that a process has open and locked."""
    process = PROCESSES / str(pid)
    with suppress(OSError):  # of another user, or gone
        for entry in (process / "fd").iterdir():
            with suppress(OSError):
                if "lock:" in (process / "fdinfo" / entry.name).read_text(encoding="ascii"):
                    yield entry.stat()


def _parent(pid: int) -> int:
    try:
        return int((PROCESSES / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def _file_name(uuid: str) -> str:
    return "".join(letter if letter.isalnum() or letter == "-" else "_" for letter in uuid)


def _no_lock(device: str, error: OSError) -> Problem:
    return Problem(
        code="PR133",
        message=f"no lock on the machine can be had, so others might measure on it too: {error.strerror}",
        path=str(_path() / device),
        advice="Every user must be able to make files in that folder (mode 1777). Mend or remove it, or set "
        "TMPDIR to another folder; sessions with another TMPDIR are not waited for.",
    )
