"""A small study in a repository of its own, at every stage of its life, and the commands typed there."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click.testing

from pytest_prereg import cli

if TYPE_CHECKING:
    from pathlib import Path

STUDY = """\
[study]
id = "small"

[experiments.rows]
metrics = { wall = "s" }
repeats = 5

[experiments.elsewhere]
metrics = { wall = "s" }
repeats = 3

[predictions.below-two]
claim = "It takes less than two seconds."
experiment = "rows"
quantity = "wall"
predicts = "<= 2 s"
falsifier = ">= 3 s"
tags = ["speed"]

[predictions.above-two]
claim = "It takes more than three seconds."
experiment = "rows"
quantity = "wall"
predicts = ">= 3 s"
falsifier = "< 2 s"

[predictions.near-one]
claim = "It takes a second, to the millisecond."
experiment = "rows"
quantity = "wall"
predicts = "[0.999, 1.001] s"
falsifier = "outside [0.5, 1.5] s"

[predictions.not-there]
claim = "Elsewhere it takes less than a second."
experiment = "elsewhere"
quantity = "wall"
predicts = "< 1 s"
falsifier = ">= 1 s"
"""
ROWS = "repeat,metric,value,unit\n1,wall,1.01,s\n2,wall,1.12,s\n3,wall,0.93,s\n4,wall,1.04,s\n5,wall,0.95,s\n"

MEASURED = """\
[study]
id = "measured"

[experiments.work]
fixture = "work"
repeats = 3
[experiments.work.arms]
quick = { spin = 1 }
slow = { spin = 4 }

[predictions.quick-is-quicker]
claim = "Quick takes at most half of slow."
experiment = "work"
contrast = "quick / slow"
quantity = "t"
predicts = "<= 0.5"
falsifier = ">= 0.8"
tags = ["speed"]
"""
WORK = """\
import time
from pathlib import Path

from pytest_prereg import Repeat, experiment


@experiment(metrics={"t": "s"})
def work(repeat: Repeat, *, spin: int) -> None:
    with Path(__file__).with_name("witness.txt").open("a") as witness:
        print(repeat.arm, file=witness)
    repeat.record("t", spin * 0.25 + repeat.index * 0.001)
"""


@dataclass(frozen=True)
class Project:
    """A study in a repository, and the two commands that a person types there."""

    path: Path

    def git(self, *arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=self.path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def commit(self, message: str) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)

    def write(self, name: str, text: str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def edit(self, name: str, old: str, new: str) -> None:
        text = (self.path / name).read_text(encoding="utf-8")
        assert old in text
        (self.path / name).write_text(text.replace(old, new), encoding="utf-8")

    def prereg(self, *arguments: str) -> click.testing.Result:
        """Runs ``pytest-prereg`` here, in this process."""
        with contextlib.chdir(self.path):
            return click.testing.CliRunner().invoke(cli.main, arguments, prog_name="pytest-prereg")

    def done(self, *arguments: str) -> str:
        """Runs ``pytest-prereg``, which has to succeed."""
        result = self.prereg(*arguments)
        assert result.exit_code == 0, result.output
        return result.output

    def process(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Runs pytest here in a process of its own, as ordinary projects do."""
        command = [sys.executable, "-m", "pytest", *arguments]
        outer = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV"))}
        environ = {**outer, "PYTHONDONTWRITEBYTECODE": "1", **environment}
        return subprocess.run(
            command, cwd=self.path, env=environ, capture_output=True, text=True, check=False, timeout=120
        )

    def evidence(self, experiment: str = "rows") -> list[Path]:
        return sorted((self.path / "experiments" / "evidence" / experiment).glob("*.jsonl"))

    def repeats_run(self) -> int:
        """How many repeats of ``work`` began, by its own account."""
        witness = self.path / "experiments" / "witness.txt"
        return len(witness.read_text().splitlines()) if witness.exists() else 0


class Verdicts:
    """The records that a run wrote with ``--prereg-json``."""

    def __init__(self, path: Path) -> None:
        self.content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))

    def __getitem__(self, prediction: str) -> dict[str, Any]:
        (record,) = (one for one in self.content["predictions"] if one["id"] == prediction)
        return record

    def each(self, key: str) -> dict[str, Any]:
        return {one["id"]: one[key] for one in self.content["predictions"]}


def stages_of_rows(folder: Path) -> list[Path]:
    written = new_repository(folder / "written")
    written.write("predictions.toml", STUDY)
    written.write("rows.csv", ROWS)
    registered = copied(written, folder / "registered")
    registered.done("lock")
    registered.commit("Register")
    judged = copied(registered, folder / "judged")
    judged.done("import", "rows.csv", "--experiment", "rows")
    judged.commit("Evidence")
    recorded = copied(judged, folder / "recorded")
    done = recorded.process("--prereg", "--prereg-record", "-p", "no:cacheprovider")
    assert done.returncode == 1, done.stdout
    recorded.commit("Record")
    return [written.path, registered.path, judged.path, recorded.path]


def measurable(folder: Path) -> Path:
    project = new_repository(folder / "measurable")
    project.write("predictions.toml", MEASURED)
    project.write("experiments/work.py", WORK)
    project.write(".gitignore", "witness.txt\n__pycache__\n")
    project.done("lock")
    project.commit("Register")
    return project.path


def halfway(folder: Path) -> Path:
    """Both studies in one: four predictions judged or waiting for others, and one that is to be measured."""
    project = new_repository(folder / "halfway")
    _, _, measured = MEASURED.partition("\n\n")
    project.write("predictions.toml", f"{STUDY}\n{measured}")
    project.write("experiments/work.py", WORK)
    project.write("rows.csv", ROWS)
    project.write(".gitignore", "witness.txt\n__pycache__\n.coverage*\n")
    project.done("lock")
    project.commit("Register")
    project.done("import", "rows.csv", "--experiment", "rows")
    project.commit("Evidence")
    return project.path


def new_repository(path: Path) -> Project:
    path.mkdir()
    project = Project(path)
    project.git("init", "--quiet", "--initial-branch=main", "--template=")
    project.git("config", "user.name", "Test")
    project.git("config", "user.email", "test@example.invalid")
    project.git("config", "gc.auto", "0")
    return project


def copied(project: Project, path: Path) -> Project:
    shutil.copytree(project.path, path, symlinks=True)
    return Project(path)
