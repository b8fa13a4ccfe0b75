"""Imports point one way: the folders follow the data, and only the pytest layer knows pytest.

Read from the syntax trees, so imports inside functions and under ``TYPE_CHECKING`` count as well.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import NamedTuple

import pytest

import pytest_prereg

PACKAGE = "pytest_prereg"
ROOT = Path(pytest_prereg.__file__).parent

FOLDERS = ("registry", "evidence", "judge", "measure", "audit", "report")
"""From what is promised to how it is shown; each may import those before it."""

PYTEST_LAYER = frozenset(
    {
        "announcing",
        "arguments",
        "campaign",
        "closing",
        "collection",
        "fixtures",
        "mode",
        "outcomes",
        "plugin",
        "progress",
        "recording",
        "session",
        "termination",
    }
)
OUTERMOST = PYTEST_LAYER | {"registration", "permission", "commands", "cli", "__main__"}
FOR_ALL = frozenset({"errors", "hookspecs"})

HEAVY = frozenset(
    {
        "cryptography",
        "huggingface_hub",
        "markdown_it",
        "modal",
        "numpy",
        "pint",
        "pynvml",
        "rfc3161_client",
        "scipy",
        "torch",
        "transformers",
    }
)
"""Never loaded by merely importing a module of the package, workloads apart."""

REFERENCES = frozenset({"accelerate", "datasets", "trl", "verl"})
"""What tests and benchmarks hold workloads against; no module of the package imports it."""

WITH_TORCH = ("measure/workloads/language/", "measure/workloads/learning/")
"""What experiments import once they run; their own modules are imported before anything is forked."""

HOME = {
    "cryptography": "audit/stamping/time_stamps.py",
    "markdown_it": "audit/citing/markdown.py",
    "modal": "measure/executors/modal/",
    "numpy": ("judge/", "measure/instruments/occupancy.py"),
    "scipy": "judge/",
    "pint": "registry/dimensions.py",
    "pynvml": "measure/instruments/nvml_library.py",
    "rfc3161_client": "audit/stamping/time_stamps.py",
}
"""The only places that may use it; workloads may use anything but references."""


class Import(NamedTuple):
    """An import of a module, where it stands and when it runs."""

    target: str
    line: int
    at_import: bool
    """Runs when the module is imported: neither in a function nor under ``TYPE_CHECKING``."""
    for_types: bool


class _Imports(ast.NodeVisitor):
    """Collects every import of a module, relative ones and ``import_module("…")`` resolved."""

    def __init__(self, package: str) -> None:
        self.package = package.split(".")
        self.found: list[Import] = []
        self.depth = 0
        self.typing = 0

    def add(self, target: str, line: int) -> None:
        self.found.append(Import(target, line, not (self.depth or self.typing), self.typing > 0))

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        self.depth += 1
        self.generic_visit(node)
        self.depth -= 1

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815
    visit_Lambda = visit_FunctionDef  # noqa: N815

    def visit_If(self, node: ast.If) -> None:
        guarded = ast.unparse(node.test).endswith("TYPE_CHECKING")
        self.typing += guarded
        for child in node.body:
            self.visit(child)
        self.typing -= guarded
        for child in node.orelse:
            self.visit(child)

    def visit_Import(self, node: ast.Import) -> None:
        for name in node.names:
            self.add(name.name, node.lineno)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        above = self.package[: len(self.package) - node.level + 1] if node.level else []
        base = ".".join([*above, *([node.module] if node.module else [])])
        for name in node.names:
            self.add(f"{base}.{name.name}", node.lineno)

    def visit_Call(self, node: ast.Call) -> None:
        named = ast.unparse(node.func).split(".")[-1] in {"import_module", "__import__"}
        if named and node.args and isinstance(node.args[0], ast.Constant):
            self.add(str(node.args[0].value), node.lineno)
        self.generic_visit(node)


def imports(path: str, source: str) -> list[Import]:
    """All imports of the module at ``path`` (relative to the package's folder)."""
    visitor = _Imports(".".join([PACKAGE, *Path(path).parts[:-1]]))
    visitor.visit(ast.parse(source))
    return visitor.found


def rank(place: str) -> int:
    """How far along the way from text to report the folder or module of that name stands.

    The package itself hands out ``experiment`` and ``Repeat``, so it stands beside ``measure``.
    """
    if place in FOR_ALL:
        return -1
    if place in OUTERMOST:
        return len(FOLDERS)
    return FOLDERS.index("measure" if place == "__init__" else place)


def place_of(path: str) -> str:
    """The folder of a module, or the name of a module that lies in none."""
    return Path(path).parts[0].removesuffix(".py")


def place_named(target: str) -> str:
    """The place that a dotted name of the package leads to; ``from pytest_prereg import x`` may be either."""
    parts = target.split(".")
    known = len(parts) > 1 and parts[1] in {*FOLDERS, *OUTERMOST, *FOR_ALL}
    return parts[1] if known else "__init__"


def complaints_about(path: str, source: str) -> list[str]:
    """What in this module breaks the layout, as ``path:line: sentence``."""
    place = place_of(path)
    if place not in {*FOLDERS, *OUTERMOST, *FOR_ALL, "__init__"}:
        return [f"{path}:1: the layout does not say where this belongs"]
    return [
        f"{path}:{found.line}: {wrong}"
        for found in imports(path, source)
        if (wrong := _direction(place, found) or _third_party(path, place, found))
    ]


def _direction(place: str, found: Import) -> str | None:
    if found.target.split(".")[0] != PACKAGE:
        return None
    target = place_named(found.target)
    if target in PYTEST_LAYER and place in OUTERMOST - PYTEST_LAYER:
        return f"{place} must work without pytest, and imports {found.target}"
    typed_hook = place == "hookspecs" and found.for_types
    if rank(target) > rank(place) and not typed_hook:
        return f"{place} comes before {target}, and imports {found.target}"
    return None


def _third_party(path: str, place: str, found: Import) -> str | None:
    top = found.target.split(".")[0]
    if top in {"pytest", "_pytest"} and place not in PYTEST_LAYER | {"hookspecs"}:
        return f"only the pytest layer imports {top}"
    if top == "msgspec" and found.at_import and place == "plugin":
        return "the entry point stays light: import msgspec where it is used"
    if top in REFERENCES:
        return f"{top} is for tests and benchmarks alone"
    if top not in HEAVY or found.for_types or _is_workload(path, top):
        return None
    if found.at_import:
        return f"import {top} inside the function that uses it"
    home = HOME.get(top)
    places = home if isinstance(home, tuple) else (home,) if home else ()
    return (
        f"{top} is used in {' and '.join(places)} alone" if places and not path.startswith(places) else None
    )


def _is_workload(path: str, top: str) -> bool:
    """Whether it may be imported anywhere in a module; of torch those that are experiments' own may not."""
    may_torch = path.startswith(WITH_TORCH) or top not in {"torch", "transformers"}
    return path.startswith("measure/workloads/") and may_torch


def modules() -> dict[str, str]:
    """Text of every module of the package by path, relative to its folder."""
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(ROOT.rglob("*.py"))
    }


def test_every_module_imports_only_what_comes_before_it():
    wrong = [line for path, source in modules().items() for line in complaints_about(path, source)]
    assert not wrong, "\n".join(wrong)


def test_no_folder_is_empty_of_modules():
    """A renamed folder must not make the test above pass by looking at nothing."""
    seen = {place_of(path) for path in modules()}
    assert seen >= {*FOLDERS, "errors", "__init__"}


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("judge/verdicts.py", "from pytest_prereg.audit.history.git import Repository"),
        ("judge/verdicts.py", "def f():\n    from pytest_prereg.measure import loop"),
        ("registry/load.py", "from pytest_prereg import evidence"),
        ("registry/load.py", "import pytest_prereg.judge.design"),
        ("registry/load.py", "from ..judge import design"),
        ("evidence/series.py", "if TYPE_CHECKING:\n    from pytest_prereg.judge.model import Judgement"),
        ("audit/history/order.py", "import_module('pytest_prereg.report.records')"),
        ("errors.py", "from pytest_prereg.registry.model import Study"),
        ("report/terminal.py", "from pytest_prereg.session import Session"),
        ("hookspecs.py", "from pytest_prereg.report.records import Record"),
        ("evidence/series.py", "from pytest_prereg import experiment"),
        ("cli.py", "from pytest_prereg.plugin import pytest_addoption"),
        ("cli.py", "import pytest"),
        ("report/terminal.py", "from _pytest.terminal import TerminalReporter"),
        ("plugin.py", "import msgspec"),
        ("judge/intervals.py", "import numpy as np"),
        ("judge/intervals.py", "try:\n    import scipy.special\nexcept ImportError: ..."),
        ("report/terminal.py", "def f():\n    import numpy"),
        ("registry/load.py", "def f():\n    from pint import UnitRegistry"),
        ("measure/workloads/grpo.py", "import torch"),
        ("measure/workloads/training.py", "from transformers import AutoModelForCausalLM"),
        ("measure/workloads/learning/policy_loss.py", "def f():\n    from trl import GRPOTrainer"),
        ("helpers.py", ""),
    ],
)
def test_a_forbidden_import_is_found(path: str, source: str):
    assert complaints_about(path, source)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("judge/verdicts.py", "from pytest_prereg.evidence.model import Series"),
        ("judge/intervals.py", "def f():\n    from scipy.special import stdtrit"),
        ("judge/intervals.py", "if TYPE_CHECKING:\n    import numpy as np"),
        ("registry/dimensions.py", "def f():\n    import pint"),
        ("registry/units.py", "from pytest_prereg.registry.quantities import parse_quantity"),
        (
            "measure/workloads/grpo.py",
            "from pytest_prereg import Repeat, experiment\ndef f():\n    import torch",
        ),
        ("measure/workloads/barrier_models.py", "import numpy as np"),
        ("measure/workloads/language/log_probs.py", "import torch"),
        ("hookspecs.py", "if TYPE_CHECKING:\n    from pytest_prereg.report.records import Record"),
        ("registry/load.py", "from pytest_prereg.errors import Problem"),
        ("session.py", "import pytest\nfrom pytest_prereg.report import terminal"),
        ("__main__.py", "from pytest_prereg.cli import main"),
    ],
)
def test_an_allowed_import_is_let_through(path: str, source: str):
    assert complaints_about(path, source) == []


def test_test_files_have_names_of_their_own():
    """Folders of tests are no packages, so two files of one name would be one module."""
    files = [path for path in Path(__file__).parent.rglob("*.py") if path.stem != "conftest"]
    assert len({path.name for path in files}) == len(files)
