"""The command line that makes a sandbox, and what of the machine it takes in: an interpreter, read-only."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

WORKLOAD_VERSION = "1"

HOSTNAME = "sandbox"
NOBODY = 65534
"""User and group inside."""

ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
"""All that a program sees of one."""

_LINKED = ("/lib", "/lib64", "/lib32", "/libx32")
"""Folders in which loaders look, and which are links into /usr in most systems."""


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
    standard = Path(sysconfig.get_path("stdlib"))
    dynamic = Path(sysconfig.get_config_var("DESTSHARED") or standard / "lib-dynload")
    folders = _outermost([standard, dynamic, *_library_folders(executable)])
    return Interpreter(
        executable=executable,
        folders=folders,
        covered=tuple(
            path
            for path in (standard / "site-packages", standard.parent / "python3" / "dist-packages")
            if path.is_dir() and any(path.is_relative_to(folder) for folder in folders)
        ),
    )


def _library_folders(executable: Path) -> list[Path]:
    """Return the folders of the shared libraries that are loaded now, and where the loader lies."""
    mapped = {line.split(maxsplit=5)[-1].strip() for line in _lines("/proc/self/maps")}
    found = [Path(name).parent for name in mapped if ".so" in name and name.startswith("/")]
    own = Path(sysconfig.get_config_var("LIBDIR") or executable.parent)
    system = [folder for folder in found if folder == own or _is_systems(folder)]
    return [
        *system,
        *(Path(os.path.realpath(name)) for name in _LINKED if name != "/lib" and Path(name).is_dir()),
    ]


def _is_systems(folder: Path) -> bool:
    return (
        folder.is_relative_to("/usr/lib")
        or folder.is_relative_to("/usr/lib64")
        or folder.parts[1] in {"lib", "lib64"}
    )


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
    bwrap: str,
    interpreter: Interpreter,
    *,
    packages: Sequence[Path],
    disk: int,
    places: Mapping[Path, Path],
    filtered: int | None,
    information: int,
) -> list[str]:
    """Return the command line up to the one that is to run inside.

    Args:
        bwrap: Where bubblewrap lies.
        interpreter: What programs run on.
        packages: Further folders, read-only.
        disk: Bytes of ``/tmp``, the one place that can be written to.
        places: Where the interpreter's folders and ``packages`` are reached from, if not under their own name.
        filtered: Descriptor of the filter of system calls.
        information: Descriptor to which bubblewrap writes the pid of the init.
    """
    shown = [*interpreter.folders, interpreter.executable, *packages]
    return [
        bwrap,
        *["--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"],
        *["--unshare-cgroup-try", "--die-with-parent", "--new-session", "--as-pid-1"],
        *["--cap-drop", "ALL"],
        *["--uid", str(NOBODY), "--gid", str(NOBODY), "--hostname", HOSTNAME],
        *(["--disable-userns"] if "--disable-userns" in _help(bwrap) else []),
        *[word for path in shown for word in ("--ro-bind", str(places.get(path, path)), str(path))],
        *[word for path in interpreter.covered for word in ("--tmpfs", str(path), "--remount-ro", str(path))],
        *_links(),
        *["--proc", "/proc", "--dev", "/dev", "--size", str(disk), "--tmpfs", "/tmp"],  # noqa: S108  # in there
        *["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp", "--clearenv"],  # noqa: S108
        *[word for name, value in ENVIRONMENT.items() for word in ("--setenv", name, value)],
        *([] if filtered is None else ["--seccomp", str(filtered)]),
        *["--info-fd", str(information), "--"],
    ]


def _links() -> list[str]:
    return [
        word for name in _LINKED if Path(name).is_symlink() for word in ("--symlink", os.readlink(name), name)
    ]


def _help(bwrap: str) -> str:
    return subprocess.run([bwrap, "--help"], capture_output=True, text=True, check=False).stdout
