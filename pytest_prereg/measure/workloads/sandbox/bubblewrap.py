"""The command line that makes a sandbox, and what of the machine it takes in: an interpreter, read-only."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

WORKLOAD_VERSION = "1"

FOLDER = "/tmp"  # noqa: S108  # of the sandbox's own
HOSTNAME = "sandbox"
NOBODY = 65534
"""User and group inside."""

ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
"""All that a program sees of one."""

_LINKED = ("/lib", "/lib64", "/lib32", "/libx32")
"""Folders in which loaders look, and which are links into /usr in most systems."""


_LIBRARIES = (("lib",), ("lib64",), ("usr", "lib"), ("usr", "lib64"))
"""Where a system's libraries lie, at any depth."""


class Interpreter(msgspec.Struct, frozen=True, kw_only=True):
    """A Python with what it needs of the file system."""

    executable: Path
    folders: tuple[Path, ...]
    """Of its standard library and of shared libraries; none lies in another."""
    covered: tuple[Path, ...]
    """Folders in those which are not its own: of installed packages."""


def this_interpreter() -> Interpreter:
    """Return the one that runs this, without its virtual environment."""
    executable = Path(os.path.realpath(getattr(sys, "_base_executable", sys.executable)))
    standard = Path(os.path.realpath(sysconfig.get_path("stdlib")))
    folders = _outermost([standard, *_library_folders(executable)])
    packages = (
        standard / "site-packages",
        standard / "dist-packages",
        standard.parent / "python3/dist-packages",
    )
    return Interpreter(
        executable=executable,
        folders=folders,
        covered=tuple(path for path in packages if path.is_dir() and any(map(path.is_relative_to, folders))),
    )


def _library_folders(executable: Path) -> list[Path]:
    """Return its own folder of shared libraries, and the system's that it has loaded any from.

    The loader lies in one of the system's, too.
    """
    own = Path(os.path.realpath(sysconfig.get_config_var("LIBDIR") or executable.parents[1] / "lib"))
    mapped = {line.split(maxsplit=5)[-1] for line in _lines("/proc/self/maps") if ".so" in line}
    loaded = {Path(name).parent for name in mapped if name.startswith("/")}
    return [
        *filter(_is_systems, loaded),
        *([own] if own.is_dir() and not _is_systems(own) else []),
        *(Path(os.path.realpath(name)) for name in _LINKED[1:] if Path(name).is_dir()),
    ]


def _is_systems(folder: Path) -> bool:
    return folder.parts[1:2] in _LIBRARIES or folder.parts[1:3] in _LIBRARIES


def _lines(path: str) -> list[str]:
    return Path(path).read_text(encoding="utf-8", errors="replace").splitlines()


def _outermost(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Return the paths without those that lie below others."""
    every = sorted(set(paths))
    return tuple(
        path for path in every if not any(path != other and path.is_relative_to(other) for other in every)
    )


def installed() -> str | None:
    """Return the path of bubblewrap, or ``None``."""
    return shutil.which("bwrap", path=os.environ.get("PATH") or os.defpath)


def command(
    bwrap: str, interpreter: Interpreter, *, packages: Sequence[Path], disk: int, filtered: int | None
) -> list[str]:
    """Return the command line up to the one that is to run inside, as the init of its namespace.

    Args:
        bwrap: Where bubblewrap lies.
        interpreter: What programs run on.
        packages: Further folders, read-only; inside as :func:`packages_inside` says.
        disk: Bytes of ``/tmp``, the one place that can be written to.
        filtered: Descriptor of the filter of system calls.
    """
    shown = [(path, path) for path in (*interpreter.folders, interpreter.executable)]
    shown += zip(packages, packages_inside(packages), strict=True)
    return [
        bwrap,
        *["--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"],
        *["--unshare-cgroup-try", "--die-with-parent", "--new-session", "--as-pid-1"],
        *["--cap-drop", "ALL", "--uid", str(NOBODY), "--gid", str(NOBODY), "--hostname", HOSTNAME],
        *(["--disable-userns"] if can_disable_namespaces(bwrap) else []),
        *[word for source, inside in shown for word in ("--ro-bind", str(source), str(inside))],
        *[word for path in interpreter.covered for word in ("--tmpfs", str(path), "--remount-ro", str(path))],
        *_links(),
        *["--proc", "/proc", "--dev", "/dev", "--size", str(disk), "--tmpfs", FOLDER],
        # Mapped to be shared, it is memory that no process needs to have in its address space.
        *["--ro-bind", "/dev/null", "/dev/zero"],
        # Both are file systems in memory, of no limited size.
        *["--remount-ro", "/dev", "--remount-ro", "/"],
        *["--chdir", FOLDER, "--clearenv"],
        *[word for name, value in ENVIRONMENT.items() for word in ("--setenv", name, value)],
        *([] if filtered is None else ["--seccomp", str(filtered)]),
        "--",
    ]


def packages_inside(packages: Sequence[Path]) -> list[Path]:
    """Return where folders of packages are found inside."""
    return [Path("/packages") / str(number) for number in range(len(packages))]


def _links() -> list[str]:
    return [
        word
        for name in _LINKED
        if Path(name).is_symlink()
        for word in ("--symlink", str(Path(name).readlink()), name)
    ]


@cache
def can_disable_namespaces(bwrap: str) -> bool:
    """Whether this bubblewrap can forbid what runs inside to make namespaces of its own."""
    told = subprocess.run([bwrap, "--help"], capture_output=True, text=True, check=False)
    return "--disable-userns" in told.stdout
