"""The documentation keeps up with the code: codes, reasons, grades, and the commands that README says to type."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from pytest_prereg.evidence.model import Outcome
from pytest_prereg.judge.model import Reason

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
CODE = re.compile(r"\bPR\d{3}\b")
CAPTIONED = re.compile(r"^```\{code-block\} \S+\n:caption: (\S+)\n\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^```(?P<language>\S+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)

pytestmark = pytest.mark.skipif(not DOCS.is_dir(), reason="runs in a checkout or an unpacked sdist")


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def fences(text: str, language: str) -> list[str]:
    return [found["body"] for found in FENCE.finditer(text) if found["language"] == language]


def start_section() -> str:
    return read(ROOT / "README.md").split("\n## Start\n")[1].split("\n## ")[0]


def test_every_code_that_is_raised_is_documented_and_no_other():
    raised = {code for path in (ROOT / "pytest_prereg").rglob("*.py") for code in CODE.findall(read(path))}
    documented = {code for line in read(DOCS / "codes.md").splitlines() for code in CODE.findall(line[:10])}
    assert documented == raised


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_of_inconclusive_is_explained(reason: Reason):
    assert f"| `{reason}` |" in read(DOCS / "concepts.md")


@pytest.mark.parametrize("outcome", Outcome)
def test_every_outcome_of_a_repeat_is_explained(outcome: Outcome):
    rows = [line for line in read(DOCS / "formats.md").splitlines() if line.startswith("|")]
    assert any(f"`{outcome}`" in row.split("|")[1] for row in rows)


def test_start_holds_two_commands_of_one_line_each():
    blocks = fences(start_section(), "bash")
    assert len(blocks) == 2
    assert all(block.count("\n") == 1 for block in blocks)
    assert start_section().count("```") == 4


def test_start_first_measures_afresh_and_then_runs_the_tests():
    measure, tests = fences(start_section(), "bash")
    assert "--prereg-fresh" in measure
    assert tests.rstrip().endswith("&& pytest")


def test_the_study_in_readme_needs_five_keys():
    study = tomllib.loads(fences(read(ROOT / "README.md"), "toml")[0])
    (prediction,) = study["predictions"].values()
    assert list(prediction) == ["claim", "experiment", "quantity", "predicts", "falsifier"]


def lock(folder: Path, files: dict[str, str]) -> subprocess.CompletedProcess[str]:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "pytest_prereg", "lock"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_study_in_readme_can_be_registered(tmp_path: Path):
    readme = read(ROOT / "README.md")
    (toml,), (python,) = fences(readme, "toml"), fences(readme, "python")
    done = lock(tmp_path, {"predictions.toml": toml, "experiments/step.py": python})
    assert done.returncode == 0, done.stderr
    assert "registered  training-is-free" in done.stdout


def test_the_study_in_the_quickstart_can_be_registered(tmp_path: Path):
    done = lock(tmp_path, dict(CAPTIONED.findall(read(DOCS / "quickstart.md"))))
    assert done.returncode == 0, done.stderr
    assert "registered  order-helps" in done.stdout


@pytest.mark.parametrize("estimand", ["median", "proportion"])
def test_the_table_of_misses_is_what_the_benchmark_prints(estimand: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    misses = importlib.import_module("misses")
    (case,) = [case for case in misses.CASES if case.estimand == estimand]
    assert misses.line(case) in read(DOCS / "tables" / "misses.md")
