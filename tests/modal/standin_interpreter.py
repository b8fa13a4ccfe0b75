"""Has a container pretend: to another Python than there is, and to lack modules that are installed."""

from __future__ import annotations

import platform
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

PRETENCE = """
import platform, sys
python, lacking = {python!r}, {lacking!r}

class Lacking:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in lacking:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Lacking)
if python:
    platform.python_version = lambda: python
    platform.python_version_tuple = lambda: tuple(python.split("."))
"""

ENTRYPOINT = """
import collections, runpy, sys
import modal._container_entrypoint
del sys.modules["modal._container_entrypoint"]
version = collections.namedtuple("version_info", "major minor micro releaselevel serial")
sys.version_info = version(*map(int, {python!r}.split(".")), "final", 0)
sys.version = {python!r} + sys.version[sys.version.index(" "):]
runpy.run_module("modal._container_entrypoint", run_name="__main__", alter_sys=True)
"""
"""What the client has imported by then has seen the real version: none of it would run otherwise."""

PLAIN = [sys.executable, "-m", "modal._container_entrypoint"]
CRASHING = [
    sys.executable,
    "-c",
    "raise SystemExit('injected by the stand-in: the container crashed as it started')",
]


def other_python(asked: str) -> str:
    """The Python that was asked for, as ``3.12.0``, or "" where this one will do."""
    if not asked or asked.split(".")[:2] == platform.python_version().split(".")[:2]:
        return ""
    return ".".join([*asked.split("."), "0", "0"][:3])


def pretend(folder: Path, python: str, lacking: list[str]) -> list[str]:
    """Makes ``folder`` something to put on PYTHONPATH, and returns the container's command."""
    folder.mkdir()
    text = PRETENCE.format(python=python, lacking=lacking)
    (folder / "sitecustomize.py").write_text(text, encoding="utf-8")
    return [sys.executable, "-c", ENTRYPOINT.format(python=python)] if python else PLAIN
