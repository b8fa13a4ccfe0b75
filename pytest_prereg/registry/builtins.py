"""Experiments that come with the package, by the name that a study calls them by.

They are read from the package's own files like any other experiment, and are not imported. What counts of
them in a source digest is their version alone: a release that leaves a workload as it was disturbs no study.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from pytest_prereg.registry.declarations import PACKAGE, Declared, Module, read_declarations
from pytest_prereg.registry.imports import Imported, Scope, imported_names, resolve
from pytest_prereg.registry.trees import parse

_CALIBRATION = f"{PACKAGE}.measure.workloads.calibration"
MODULES = {
    "generation": f"{PACKAGE}.measure.workloads.generation",
    "training": f"{PACKAGE}.measure.workloads.training",
    "grpo_step": f"{PACKAGE}.measure.workloads.grpo",
    "evaluation": f"{PACKAGE}.measure.workloads.evaluation",
    "time_to_target": f"{PACKAGE}.measure.workloads.time_to_target",
    "sandbox_reward": f"{PACKAGE}.measure.workloads.sandbox_reward",
    "reward_barrier": f"{PACKAGE}.measure.workloads.barrier",
    "square_wave": f"{_CALIBRATION}.duty",
    "trailing_wait": f"{_CALIBRATION}.duty",
    "known_memory": f"{_CALIBRATION}.memory",
    "known_host_load": f"{_CALIBRATION}.host_load",
    "known_pause": f"{_CALIBRATION}.pause",
}
"""The module of each built-in experiment."""

_ROOT = Path(__file__).resolve().parents[2]
_PACKAGE = Scope(roots=(_ROOT,), within=_ROOT / PACKAGE)


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
def workload_versions(module: str) -> tuple[tuple[str, str], ...]:
    """The version of a workload's module, and those of the modules of the package that it builds on.

    Args:
        module: Dotted name, such as ``pytest_prereg.measure.workloads.grpo``.

    Returns:
        Pairs of name and version, sorted; modules that state no version are not followed.
    """
    found: dict[str, str] = {}
    pending = [module]
    while pending:
        name = pending.pop()
        version = None if name in found else _version(name)
        path = _file_of(name)
        if version is None or path is None:
            continue
        found[name] = version
        for imported in imported_names(path.read_bytes()):
            pending += modules_of_package(imported, path)
    return tuple(sorted(found.items()))


def modules_of_package(imported: Imported, importer: Path) -> list[str]:
    """Dotted names of the modules of this package that an import runs."""
    names = []
    for file in resolve(imported, importer, _PACKAGE):
        parts = file.relative_to(_ROOT).with_suffix("").parts
        names.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return names


@cache
def _version(module: str) -> str | None:
    """What a module assigns to ``WORKLOAD_VERSION``; ``None`` if it does not."""
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
