"""What runs of a built-in experiment: the versions that count in its digest, and what its module brings along."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import pytest_prereg
from pytest_prereg.registry.builtins import MODULES, modules_of_package, workload_versions
from pytest_prereg.registry.imports import imported_names

ROOT = Path(pytest_prereg.__file__).parents[1]
WORKLOADS = "pytest_prereg.measure.workloads."

BUILT_ON = {
    "grpo_step": {
        "learning.policy_loss",
        "learning.programs",
        "learning.reward_ledger",
        "language.decoding",
        "language.log_probs",
        "sandbox.driver",
        "sandbox.supervisor",
    },
    "generation": {"language.causal_lm", "language.decoding", "language.completions"},
    "training": {
        "learning.policy_loss",
        "learning.updates",
        "language.log_probs",
        "language.naive_log_probs",
    },
    "evaluation": {"learning.tasks", "learning.held_out", "learning.verifiers", "language.decoding"},
    "time_to_target": {"learning.tasks", "learning.held_out", "learning.loop", "learning.policy_loss"},
    "reward_barrier": {"barrier_schedules", "reward_pool"},
    "sandbox_reward": {
        "sandbox.boxes",
        "sandbox.client",
        "sandbox.driver",
        "sandbox.grading",
        "sandbox.supervisor",
        "sandbox_problems",
    },
}
"""Modules, some of which are imported inside functions, that change what an experiment measures."""


def imported_workloads(module: str) -> set[str]:
    """All modules of workloads that a module may import, wherever the statement stands, by any way."""
    found, pending = set(), [module]
    while pending:
        name = pending.pop()
        if name in found or not name.startswith(WORKLOADS):
            continue
        found.add(name)
        path = file_of(name)
        for imported in imported_names(path.read_bytes()):
            pending += modules_of_package(imported, path)
    return {name for name in found if file_of(name).name != "__init__.py"}


def file_of(module: str) -> Path:
    base = ROOT.joinpath(*module.split("."))
    return base / "__init__.py" if base.is_dir() else base.with_suffix(".py")


@pytest.mark.parametrize("name", sorted(MODULES))
def test_every_module_that_a_built_in_runs_states_a_version_that_counts(name):
    counted = {module for module, _ in workload_versions(MODULES[name])}
    assert imported_workloads(MODULES[name]) - counted == set()


@pytest.mark.parametrize("name", sorted(BUILT_ON.keys() & MODULES.keys()))
def test_a_change_of_what_a_built_in_is_built_on_changes_its_digest(name):
    counted = {module.removeprefix(WORKLOADS) for module, _ in workload_versions(MODULES[name])}
    assert counted >= BUILT_ON[name]


def test_packages_of_workloads_hold_no_code_that_would_not_count():
    for path in (ROOT / "pytest_prereg/measure/workloads").rglob("__init__.py"):
        assert [type(node) for node in ast.parse(path.read_text()).body] in ([], [ast.Expr]), path


def test_modules_of_built_ins_bring_no_torch_along():
    """A fork server may preload it, and nothing else has to pay for it: parameters are checked without."""
    program = (
        "import importlib, sys; [importlib.import_module(name) for name in sys.argv[1:]]; "
        "print(sorted({'torch', 'transformers', 'huggingface_hub'} & sys.modules.keys()))"
    )
    command = [sys.executable, "-c", program, *sorted(set(MODULES.values()))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")
