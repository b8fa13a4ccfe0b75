"""What only root can do for sandboxes: be other users, and show them what lies where only root may enter.

Sandboxes run as other users even if root makes them, since the kernel doesn't limit the processes of root.
Those users reach nothing below ``/root``, perhaps not even the interpreter. So such a folder is covered, in
a mount namespace of the supervisor's own, by an empty one in which only what they need is to be seen: no
other process notices, and it ends with the supervisor.
"""

from __future__ import annotations

import ctypes
import os
import pwd
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

WORKLOAD_VERSION = "1"

USERS = 512
"""Of one supervisor; at most as many sandboxes at a time."""

_FIRST_USER = 2_000_000
_CLONE_NEWNS = 0x00020000
_NEEDED = (0, 5, 6, 7)
"""To be another user, to give folders to them and to kill them: CHOWN, KILL, SETGID, SETUID."""
_READ_ONLY, _NO_SETUID, _NO_DEVICES, _AGAIN, _BIND, _ALL_BELOW, _PRIVATE = 1, 2, 4, 32, 4096, 1 << 14, 1 << 18
_ENTER = 0o001

_libc = ctypes.CDLL(None, use_errno=True)


def show(paths: Sequence[Path]) -> None:
    """Make ``paths`` reachable, read-only and under their own names, for every user this process starts.

    Raises:
        OSError: This process may not.
    """
    covers = {path: cover for path in paths if (cover := closed(path)) is not None}
    if not covers:
        return
    _enter_own_namespace()
    opened = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in covers}
    for cover in sorted(set(covers.values())):
        _mount("tmpfs", cover, "tmpfs", _NO_SETUID | _NO_DEVICES, "mode=0755,size=1m")
    for path, descriptor in opened.items():
        _show(path, descriptor)
        os.close(descriptor)


def closed(path: Path) -> Path | None:
    """Return the outermost folder on the way to ``path`` that not all may enter, or ``None``."""
    return next(
        (folder for folder in reversed(path.parents) if not folder.stat().st_mode & _ENTER),
        None,
    )


def _enter_own_namespace() -> None:
    if _libc.unshare(_CLONE_NEWNS):
        number = ctypes.get_errno()
        raise OSError(number, f"unshare: {os.strerror(number)}")
    _mount("none", Path("/"), None, _ALL_BELOW | _PRIVATE)


def _show(path: Path, descriptor: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if os.path.isdir(f"/proc/self/fd/{descriptor}"):  # noqa: PTH112  # a link that is none to a name
        path.mkdir(exist_ok=True)
    else:
        path.touch()
    _mount(f"/proc/self/fd/{descriptor}", path, None, _BIND)
    _mount("none", path, None, _BIND | _AGAIN | _READ_ONLY | _NO_SETUID | _NO_DEVICES)


def _mount(source: str, target: Path, kind: str | None, flags: int, options: str | None = None) -> None:
    failed = _libc.mount(
        source.encode(),
        os.fsencode(target),
        kind.encode() if kind else None,
        ctypes.c_ulong(flags),
        options.encode() if options else None,
    )
    if failed:
        number = ctypes.get_errno()
        raise OSError(number, f"mount on {target}: {os.strerror(number)}")


def spare_users() -> list[int]:
    """Return users that nobody is, other ones for each supervisor; none if this process can't become others.

    One is for one sandbox at a time.
    """
    if os.geteuid() != 0 or not _may_act_as_others():
        return []
    first = _FIRST_USER + os.getpid() * USERS
    taken = {entry.pw_uid for entry in pwd.getpwall()}
    users = [uid for uid in range(first, first + USERS) if uid not in taken]
    return users if _are_mapped(first, first + USERS) else []


def _may_act_as_others() -> bool:
    """Whether this root has what makes it more than a name; a container's may lack some."""
    status = Path("/proc/self/status").read_text("ascii", "replace")
    held = int(status.partition("CapEff:")[2].split()[0], 16)
    return all(held >> each & 1 for each in _NEEDED)


def _are_mapped(first: int, end: int) -> bool:
    """Whether this process's user namespace has all users of a range."""
    lines = Path("/proc/self/uid_map").read_text("ascii").splitlines()
    ranges = [[int(word) for word in line.split()] for line in lines]
    return any(start <= first and end <= start + size for start, _, size in ranges)


@contextmanager
def acting_as(user: int | None) -> Iterator[None]:
    """Be ``user`` for a moment: a program that is started meanwhile is so for good, and can't go back."""
    if user is None:
        yield
        return
    os.setresgid(user, user, 0)
    os.setresuid(user, user, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)
