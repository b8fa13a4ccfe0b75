"""A virtual environment for each version, whose ``python`` and ``pip`` ``build`` and ``command`` get."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_prereg.measure.versions.running import run

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PIP = "pip"
_NO_PIP = """\
#!/bin/sh
echo 'this environment has no pip, since neither "build" nor "command" names it' >&2
echo 'python -m ensurepip brings it' >&2
exit 1
"""
"""In place of the pip that would be found next, which installs elsewhere."""


def make(folder: Path, *, with_pip: bool, log: Path) -> Path:
    """Make a virtual environment of the running interpreter; return its folder of packages.

    Raises:
        subprocess.CalledProcessError: It could not be made; ``log`` says why.
        subprocess.TimeoutExpired: It took too long.
        OSError: No process can be started, or nothing be written.
    """
    without = [] if with_pip else ["--without-pip"]
    # Whatever the user has on PYTHONPATH: a module there may have the name of one that this needs.
    command = [sys.executable, "-I", "-m", "venv", *without, str(folder)]
    status = run(command, folder.parent, os.environ, log)
    if status:
        raise subprocess.CalledProcessError(status, "python -m venv")
    if not with_pip:
        for name in (PIP, "pip3"):
            stub = folder / "bin" / name
            stub.write_text(_NO_PIP, encoding="utf-8")
            stub.chmod(0o755)
    return Path(sysconfig.get_path("purelib", "venv", {"base": str(folder)}))


def wants_pip(build: Iterable[str] | None, command: Iterable[str] | None) -> bool:
    """Whether pip is named: to bring it takes seconds, and what builds with a compiler does without."""
    return any(PIP in argument for argument in (*(build or ()), *(command or ())))


def variables(folder: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Return what makes an environment the active one, over the variables that are set already.

    An empty ``PYTHONPATH`` and ``PYTHONHOME`` are to Python as good as none.
    """
    return {
        "VIRTUAL_ENV": str(folder),
        "PATH": f"{folder / 'bin'}{os.pathsep}{environ.get('PATH') or os.defpath}",
        "PYTHONPATH": "",
        "PYTHONHOME": "",
    }
