"""The documentation keeps up with the code: codes, reasons, grades, and the commands that README says to type."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from pytest_prereg.cli import main
from pytest_prereg.evidence.model import Outcome
from pytest_prereg.judge.model import Reason
from pytest_prereg.measure.workloads.sandbox import completions, outcomes
from pytest_prereg.measure.workloads.sandbox.limits import Limits
from pytest_prereg.measure.workloads.sandbox_files import read_completions
from pytest_prereg.registry.builtins import MODULES
from pytest_prereg.registry.executors import NOT_YET
from pytest_prereg.registry.expectations import keys_of
from pytest_prereg.registry.starter import starter_files

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
CODE = re.compile(r"\bPR\d{3}\b")
FLAGS = re.MULTILINE | re.DOTALL
CAPTIONED = re.compile(r"^```\{code-block\} \S+\n:caption: (\S+)\n\n(.*?)^```$", FLAGS)
CITATION = re.compile(r"<!-- prereg: [^>]*-->.*?<!-- /prereg -->", re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?")
FENCE = re.compile(r"^```(?P<language>\S+)\n(?P<body>.*?)^```$", FLAGS)

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


def test_what_is_called_missing_is_missing():
    """No command or importer that is there; and all that ``lock`` refuses for want of it (PR008)."""
    listed = read(DOCS / "concepts.md").split("\n## Not there yet\n")[1].partition("\n- ")[2]
    assert not {*re.findall(r"`([a-z-]+)`", listed)} & {*main.commands}
    assert "importer" not in listed
    marked = {
        line.split("`")[1] for line in read(DOCS / "tables" / "keys.md").splitlines() if "*not yet*" in line
    }
    assert marked == {"data", "subject", "max-parallel"}
    assert all(word in listed for word in ("`data`", "`subject`", "parallel on this machine", "`ref`"))
    assert [name for name in NOT_YET if name not in listed.lower()] == []


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
    assert "--prereg-fresh -k quick" in measure
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


def test_the_study_that_checks_its_instrument_can_be_registered(tmp_path: Path):
    done = lock(tmp_path, dict(CAPTIONED.findall(read(DOCS / "instruments.md"))))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("registered  ") == 3


def test_the_study_of_commands_can_be_tried_and_registered(tmp_path: Path):
    done = lock(tmp_path, dict(CAPTIONED.findall(read(DOCS / "commands.md"))))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("registered  ") == 2
    tried = subprocess.run(
        [sys.executable, "-m", "pytest_prereg", "try", "gzip"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert tried.stdout.count("   exit 0\n") == 2, tried.stdout + tried.stderr


def test_the_study_of_the_barrier_can_be_registered(tmp_path: Path):
    done = lock(tmp_path, dict(CAPTIONED.findall(read(DOCS / "barrier.md"))))
    assert done.returncode == 0, done.stderr
    assert "registered  idles-a-third" in done.stdout


def test_every_parameter_and_metric_of_the_barrier_is_explained():
    section = read(DOCS / "barrier.md").split("## Real runs\n")[1].split("\n### ")[0]
    first_cells = [row.split("|")[1] for row in section.splitlines() if row.startswith("| `")]
    explained = sorted(name for cell in first_cells for name in re.findall(r"`(\w+)`", cell))
    module = importlib.import_module(MODULES["reward_barrier"])
    parameters = list(inspect.signature(module.reward_barrier).parameters)[1:]
    metrics = module.reward_barrier.metrics
    assert explained == sorted([*parameters, *metrics])


def test_the_study_of_sandboxes_can_be_registered(tmp_path: Path):
    done = lock(tmp_path, dict(CAPTIONED.findall(read(DOCS / "sandbox.md"))))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("registered  ") == 2


def first_cells(section: str) -> list[str]:
    """The names in the first cells of the tables of a section of the page on sandboxes."""
    text = read(DOCS / "sandbox.md").split(f"\n## {section}\n")[1].split("\n## ")[0]
    cells = [row.split("|")[1] for row in text.splitlines() if row.startswith("| `")]
    return sorted(name for cell in cells for name in re.findall(r"`([\w-]+)`", cell))


def test_every_parameter_metric_limit_outcome_and_key_of_sandboxes_is_explained():
    module = importlib.import_module(MODULES["sandbox_reward"])
    parameters = list(inspect.signature(module.sandbox_reward).parameters)[1:]
    assert first_cells("A study") == sorted([*parameters, *module.sandbox_reward.metrics])
    assert first_cells("Limits") == sorted(Limits.__struct_fields__)
    assert first_cells("Outcomes") == sorted(outcome.value for outcome in outcomes.Outcome)
    tests = (completions.CallTest, completions.ScriptTest)
    fields = {"type"}.union(*(test.__struct_fields__ for test in tests))
    assert first_cells("A file of completions") == sorted(fields)


def test_the_rows_that_the_page_on_sandboxes_shows_can_be_graded(tmp_path: Path):
    (rows,) = fences(read(DOCS / "sandbox.md"), "json")
    file = tmp_path / "rows.jsonl"
    file.write_text(rows)
    assert len(read_completions(str(file)).completions) == 2


LANGUAGE = {
    "generation": "Generation",
    "training": "Training",
    "grpo_step": "GRPO steps",
    "evaluation": "Evaluation",
    "time_to_target": "Time to target",
}
"""Built-in experiments on language models, and the section of each."""


def names_explained(section: str) -> set[str]:
    """What stands in the first cells of the tables of a section of the page on workloads."""
    text = read(DOCS / "workloads.md").split(f"\n## {section}\n")[1].split("\n## ")[0].split("\n### ")[0]
    cells = [row.split("|")[1] for row in text.splitlines() if row.startswith("| `")]
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


@pytest.mark.parametrize("name", sorted(LANGUAGE.keys() & MODULES.keys()))
def test_every_parameter_and_metric_of_a_language_model_s_experiment_is_explained(name: str):
    function = getattr(importlib.import_module(MODULES[name]), name)
    parameters = set(list(inspect.signature(function).parameters)[1:])
    shared = names_explained("What they share")
    assert shared <= parameters
    assert names_explained(LANGUAGE[name]) | shared == parameters | set(function.metrics)


def test_the_study_of_language_models_can_be_registered(tmp_path: Path):
    done = lock(tmp_path, dict(CAPTIONED.findall(read(DOCS / "workloads.md"))))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("registered  ") == 5


def test_every_experiment_that_calibrates_is_explained():
    rows = [line for line in read(DOCS / "instruments.md").splitlines() if line.startswith("| `")]
    explained = {row.split("`")[1] for row in rows}
    assert explained == {name for name, module in MODULES.items() if ".calibration." in module}


CALIBRATION = sorted((DOCS / "tables").glob("calibration-*.md"))


def test_the_calibration_shows_every_table_of_the_benchmark(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    names = {f"calibration-{name}.md" for name in importlib.import_module("calibration").known(1)}
    included = re.findall(r"^```\{include\} tables/(.*)$", read(DOCS / "calibration.md"), re.MULTILINE)
    assert {path.name for path in CALIBRATION} == set(included) == names


@pytest.mark.parametrize(
    ("table", "values", "n"), [("proportion", "p = 0.9", 3), ("median", "gamma, shape 2", 7)]
)
def test_a_cell_of_the_calibration_is_what_the_benchmark_prints(
    table: str, values: str, n: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    calibration, tables = map(importlib.import_module, ("calibration", "calibration_tables"))
    text = read(DOCS / "tables" / f"calibration-{table}.md")
    studies = int(text.split(" ", 1)[0].replace(",", ""))
    rows = [[entry.strip() for entry in line.split("|")] for line in text.splitlines() if line[:1] == "|"]
    (row,) = [row for row in rows if row[rows[0].index("values")] == values]
    places = [place for place, case in enumerate(calibration.TABLES[table]) if case.values == values]
    found = calibration.cell(table, places[0], n, studies)
    assert row[rows[0].index(f"n = {n}")] == tables.pair(found.tally.wrong)


@pytest.mark.parametrize("table", ["keys", "options", "instruments"])
def test_a_table_of_the_reference_is_current(table: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(DOCS))
    reference = importlib.import_module("reference")
    current = reference.WRITERS[f"{table}.md"]()
    assert read(DOCS / "tables" / f"{table}.md") == current, "run python docs/reference.py"


def test_every_mark_in_the_table_of_keys_is_of_a_key_that_there_is(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(DOCS))
    reference = importlib.import_module("reference")
    by_table = [reference.IDLE, reference.NOTES]
    marked = {(table, key) for marks in by_table for table, keys in marks.items() for key in keys}
    marked |= {*reference.DEFAULTS, *reference.PARTLY}
    assert {(table.__name__, key) for table, key in marked if key not in keys_of(table)} == set()


def test_the_quickstart_shows_the_study_that_init_writes():
    shown = dict(CAPTIONED.findall(read(DOCS / "quickstart.md")))
    written = {str(path): text for path, text in starter_files(Path("sorting")).items()}
    assert shown == {name: text for name, text in written.items() if name in shown}
    assert set(shown) == {"predictions.toml", "experiments/example.py"}


@pytest.mark.parametrize("number", range(3))
def test_the_studies_that_are_shown_can_be_registered(number: int, tmp_path: Path):
    study = re.findall(r"^```\{code-block\} toml\n(\[study\].*?)^```$", read(DOCS / "studies.md"), FLAGS)[
        number
    ]
    example = dict(CAPTIONED.findall(read(DOCS / "quickstart.md")))["experiments/example.py"]
    done = lock(tmp_path, {"predictions.toml": study, "experiments/example.py": example})
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", main.commands)
def test_every_command_is_explained(command: str):
    assert f"| `pytest-prereg {command}" in read(DOCS / "running.md")


def test_no_code_is_listed_twice():
    codes = [row[:7] for row in read(DOCS / "codes.md").splitlines() if row.startswith("| PR")]
    assert len(codes) == len(set(codes))


def test_the_verdicts_that_readme_shows_are_those_of_the_committed_evidence():
    (shown,) = (block for block in fences(read(ROOT / "README.md"), "text") if "wants" in block)
    names = re.findall(r"^ \S (\S+)", shown, re.MULTILINE)
    command = [sys.executable, "-m", "pytest", "--prereg", "--prereg-verify", "-k", " or ".join(names)]
    environment = {**os.environ, "COLUMNS": "80", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    assert all(line in lines for line in shown.splitlines()), done.stdout


def test_every_number_of_the_study_is_cited_or_registered():
    """What is measured is written by ``cite``; any other number is one of the prediction file's own."""
    written = re.sub(
        r"```.*?^```|`[^`]*`|\]\([^)]*\)", "", CITATION.sub("", read(DOCS / "study.md")), flags=FLAGS
    )
    assert {*NUMBER.findall(written)} - {*NUMBER.findall(read(ROOT / "predictions.toml"))} == set()


def test_figures_show_what_is_recorded():
    done = subprocess.run(
        [sys.executable, DOCS / "figures.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    shown = re.findall(r"!\[[^]]*\]\(figures/([a-z-]+)\.svg\)", read(DOCS / "study.md"))
    assert {*shown} == {path.stem for path in (DOCS / "figures").iterdir()}
