"""A command's source digest takes in the scripts of the repository that it names, as if they were modules."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pytest_prereg.registry.load import load_study
from pytest_prereg.registry.sources import source_digest, source_files

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository with a study's folder in it, and scripts."""
    files = {
        ".git/HEAD": "",
        "lib.py": "",
        "perf/bench.py": "import helper, lib\n",
        "perf/helper.py": "import json\n",
        "perf/other.py": "",
        "perf/run": "#!/bin/sh\n",
        "perf/run.sh": "echo\n",
        "perf/data.txt": "1",
        "perf/package/__main__.py": "from package import step\n",
        "perf/package/__init__.py": "",
        "perf/package/step.py": "",
        "perf/.venv/bin/pytest": "#!/x\n",
        "perf/venv/pyvenv.cfg": "",
        "perf/venv/bin/tool": "#!/x\n",
        "perf/node_modules/tool.js": "",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "perf"


def digested(folder: Path, *command: str, keys: str = "") -> tuple[list[str], str | None]:
    """The files that count, from the repository's root, and the digest."""
    text = f'[study]\nid = "s"\n[experiments.e]\nrepeats = 3\ncommand = {json.dumps(command)}\n{keys}\n'
    (folder / "predictions.toml").write_text(text)
    study = load_study(folder / "predictions.toml")
    files = source_files(study, study.experiments["e"])
    named = sorted(path.relative_to(folder.parent).as_posix() for path in files)
    return named, source_digest(study, study.experiments["e"])


PACKAGE = [f"perf/package/{name}.py" for name in ("__init__", "__main__", "step")]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["python", "bench.py", "{out}/r.json"], ["lib.py", "perf/bench.py", "perf/helper.py"]),
        (["taskset", "-c", "0", "python", "./bench.py"], ["lib.py", "perf/bench.py", "perf/helper.py"]),
        (["./run"], ["perf/run"]),
        (["sh", "run.sh"], ["perf/run.sh"]),
        (["python", "-m", "package"], PACKAGE),
        (["pytest", "-m", "slow"], []),
        (["gzip", "-k", "data.txt"], []),
        ([".venv/bin/pytest"], []),
        (["venv/bin/tool"], []),
        (["node", "node_modules/tool.js"], []),
        (["sh", "/bin/sh", "x" * 5000], []),
        (["python", "/{out}.py", "a\nb"], []),
    ],
)
def test_scripts_of_the_repository_count_with_what_they_import(folder, command, expected):
    assert digested(folder, *command)[0] == expected


def test_a_script_that_was_changed_makes_another_source_and_one_that_is_not_run_does_not(folder):
    _, before = digested(folder, "python", "bench.py")
    (folder / "other.py").write_text("x = 1\n")
    (folder / "bench.py").write_text("import helper, lib  # the same\n")
    assert digested(folder, "python", "bench.py")[1] == before
    (folder / "helper.py").write_text("import json, os\n")
    assert digested(folder, "python", "bench.py")[1] != before


def test_a_script_that_is_the_subject_may_change(folder):
    keys = 'subject = ["helper.py"]'
    named, before = digested(folder, "python", "bench.py", keys=keys)
    assert named == ["lib.py", "perf/bench.py"]
    (folder / "helper.py").write_text("import json, os\n")
    assert digested(folder, "python", "bench.py", keys=keys)[1] == before


def test_scripts_of_every_arm_and_of_the_server_count(folder):
    keys = 'service = { command = ["./run", "{port}"] }\n'
    keys += 'arms = { a = { command = ["python", "other.py"] }, b = { command = ["sh", "run.sh"] } }'
    assert digested(folder, "{command}", keys=keys)[0] == ["perf/other.py", "perf/run", "perf/run.sh"]


def test_what_versions_have_is_known_by_their_trees(folder):
    keys = 'arms = { a = { ref = "worktree" }, b = { ref = "main" } }'
    assert digested(folder, "python", "bench.py", keys=keys)[0] == []
