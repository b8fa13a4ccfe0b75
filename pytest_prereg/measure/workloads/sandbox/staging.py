"""What only root can do for sandboxes: show them an interpreter that lies where nobody else may enter.

Sandboxes run as other users even if root makes them, since the kernel doesn't limit the processes of root.
Those users reach nothing below ``/root``. So the folders that sandboxes need are mounted in a place that all
may enter, in a mount namespace of the supervisor's own: no other process sees them, and they go with it.
"""

from __future__ import annotations

import ctypes
import os
import pwd
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

WORKLOAD_VERSION = "1"

_CLONE_NEWNS = 0x00020000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = (
    1,
    2,
    4,
    32,
    4096,
    16384,
    1 << 18,
)

_PLACES = ("/mnt", "/media", "/srv", "/var/tmp")  # noqa: S108  # covered for the supervisor alone
_FIRST_USER = 2_000_000
_USERS_EACH = 512
"""Users of one supervisor; at most as many sandboxes at a time."""

_libc = ctypes.CDLL(None, use_errno=True)


def stage(paths: Sequence[Path]) -> dict[Path, Path]:
    """Mount ``paths`` read-only where everyone can reach them; return where.

    Raises:
        OSError: This process may not, or there is no place.
    """
    _own_namespace()
    opened = [os.open(path, os.O_PATH | os.O_CLOEXEC) for path in paths]
    try:
        place = next(Path(name) for name in _PLACES if Path(name).is_dir())
        _mount("tmpfs", place, "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=0755,size=1m")
        return {
            path: _shown(descriptor, place / str(index), is_folder=path.is_dir())
            for index, (path, descriptor) in enumerate(zip(paths, opened, strict=True))
        }
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _own_namespace() -> None:
    if _libc.unshare(_CLONE_NEWNS):
        number = ctypes.get_errno()
        raise OSError(number, f"unshare: {os.strerror(number)}")
    _mount("none", Path("/"), None, _MS_REC | _MS_PRIVATE)


def _shown(descriptor: int, place: Path, *, is_folder: bool) -> Path:
    if is_folder:
        place.mkdir()
    else:
        place.touch()
    _mount(f"/proc/self/fd/{descriptor}", place, None, _MS_BIND)
    _mount("none", place, None, _MS_BIND | _MS_REMOUNT | _MS_RDONLY | _MS_NOSUID | _MS_NODEV)
    return place


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
    """Return users that nobody is, for one sandbox at a time each; empty if this process can become no other.

    They are other ones for each supervisor on the machine.
    """
    if os.geteuid() != 0:
        return []
    first = _FIRST_USER + os.getpid() * _USERS_EACH
    taken = {entry.pw_uid for entry in pwd.getpwall()}
    return [uid for uid in range(first, first + _USERS_EACH) if uid not in taken and _is_mapped(uid)]


def _is_mapped(uid: int) -> bool:
    """Whether this process's user namespace has such a user."""
    return any(int(first) <= uid < int(first) + int(size) for first, _, size in _mapping())


def _mapping() -> list[list[str]]:
    return [line.split() for line in Path("/proc/self/uid_map").read_text("ascii").splitlines()]
