"""Experiments that come with the package, by the name that a study calls them by.

They are read from the package's own files like any other experiment, and are not imported. What counts of
them in a source digest is their version alone: a release that leaves a workload as it was disturbs no study.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from pytest_prereg.registry.declarations import PACKAGE, Declared, Module, read_declarations
from pytest_prereg.registry.trees import parse

MODULES = {
    "grpo_step": f"{PACKAGE}.measure.workloads.grpo",
    "reward_barrier": f"{PACKAGE}.measure.workloads.barrier",
}
"""The module of each built-in experiment."""

_ROOT = Path(__file__).parents[2]


@cache
def built_ins() -> dict[str, Declared]:
    """All experiments that come with the package, by name.

    Raises:
        KeyError: A module no longer declares what the table above says; the package is broken.
    """
    found = {}
    for name, module in MODULES.items():
        path = _file_of(module)
        if path is None:
            continue
        declared, _ = read_declarations(Module(name=module, path=path, shown=str(path), built_in=True))
        found[name] = {each.source.function: each for each in declared}[name]
    return found


@cache
def workload_version(module: str) -> str | None:
    """What a module of the package assigns to ``WORKLOAD_VERSION``; ``None`` if it does not.

    Args:
        module: Dotted name, such as ``pytest_prereg.measure.workloads.grpo``.
    """
    path = _file_of(module)
    for node in parse(path.read_bytes()).body if path else ():
        match node:
            case ast.Assign(
                targets=[ast.Name(id="WORKLOAD_VERSION")], value=ast.Constant(value=str(version))
            ):
                return version
    return None


def _file_of(module: str) -> Path | None:
    """The file of a module of this package, wherever it is installed."""
    base = _ROOT.joinpath(*module.split("."))
    candidates = (base.with_suffix(".py"), base / "__init__.py")
    return next((path for path in candidates if path.is_file()), None)
