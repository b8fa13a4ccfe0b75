"""The environment that children get: the user's, without what would watch or steer them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIXES = ("COVERAGE_", "COV_", "PYTEST_", "_PYTEST", "PYDEVD", "DEBUGPY_", "PYCHARM_", "VSCODE_DEBUG")
NAMES = frozenset({"BUNDLED_DEBUGPY_PATH", "PYTHONBREAKPOINT", "PYTHONINSPECT", "PYTHONTRACEMALLOC"})
"""Tracing slows what is measured, and pytest's variables steer a pytest inside a repeat."""


def scrub(environ: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return ``environ`` without coverage, pytest and debuggers, and the sorted names that were removed."""
    removed = sorted(name for name in environ if name in NAMES or name.startswith(PREFIXES))
    return {name: value for name, value in environ.items() if name not in removed}, removed
