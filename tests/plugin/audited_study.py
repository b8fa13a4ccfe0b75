"""A study of one claim whose repeats are imported, committed in whatever order a test likes, and its audit."""

from __future__ import annotations

import json
import subprocess
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from small_study import Project, new_repository

from pytest_prereg.audit.assess import StudyState
from pytest_prereg.audit.recordable import is_recordable, recorded_entry
from pytest_prereg.registry.load import load_study
from pytest_prereg.registry.lock import write_lock

if TYPE_CHECKING:
    from pathlib import Path

STUDY = """\
[study]
id = "small"

[experiments.rows]
metrics = { wall = "s" }
repeats = 5

[predictions.below-two]
claim = "It takes less than two seconds."
experiment = "rows"
quantity = "wall"
predicts = "<= 2 s"
falsifier = ">= 3 s"
"""
LINE = STUDY.splitlines().index("[predictions.below-two]") + 1
ROWS = "repeat,metric,value,unit\n1,wall,1.01,s\n2,wall,1.12,s\n3,wall,0.93,s\n4,wall,1.04,s\n5,wall,0.95,s\n"
CLAIM = "below-two"

Told = tuple[str, str, int | None]
"""Code, level and line of a finding."""


@dataclass(frozen=True)
class Audited:
    """What ``pytest-prereg audit --format json`` printed, and with which status it ended."""

    content: dict[str, Any]
    exit: int

    def order(self, prediction: str = CLAIM) -> tuple[str, str]:
        """Grade and standing."""
        (one,) = (one for one in self.content["predictions"] if one["id"] == prediction)
        return one["order"], one["standing"]

    @property
    def findings(self) -> list[dict[str, Any]]:
        """All but the notices that something was registered, which every registration gives."""
        return [one for one in self.content["findings"] if (one["code"], one["level"]) != ("PR201", "notice")]

    @property
    def told(self) -> list[Told]:
        return [(one["code"], one["level"], one["line"]) for one in self.findings]

    def message(self, code: str) -> str:
        """Of the only finding with this code."""
        (one,) = (one for one in self.findings if one["code"] == code)
        return str(one["message"])


@dataclass(frozen=True)
class Small(Project):
    """The study in a folder of a repository, by default at its root."""

    top: Path
    """The root of the repository."""

    def begin(self, text: str = STUDY) -> None:
        """Writes study and rows, and commits something else."""
        self.write("predictions.toml", text)
        self.write("rows.csv", ROWS)
        (self.top / "readme.txt").write_text("An example.\n")
        self.git("add", str(self.top / "readme.txt"))
        self.git("commit", "--quiet", "--message", "Begin")

    def lock(self) -> None:
        """Registers, and commits nothing."""
        self.done("lock")

    def register(self, message: str = "Register") -> str:
        self.done("lock")
        return self.keep(message, "predictions.toml", "predictions.lock")

    def measure(self, rows: str = "rows.csv") -> Path:
        """Takes the rows in as evidence, and commits nothing."""
        before = set(self.evidence())
        self.done("import", rows, "--experiment", "rows")
        (new,) = set(self.evidence()) - before
        return new

    def keep(self, message: str, *names: str) -> str:
        """Commits these files alone, or everything; returns the commit."""
        self.git("add", "--all", "--", *(names or (".",)))
        self.git("commit", "--quiet", "--message", message)
        return self.git("rev-parse", "HEAD")

    def take_in(self) -> str:
        """Imports the rows and commits the evidence."""
        self.measure()
        return self.keep("Evidence", "experiments")

    def digest(self, prediction: str = CLAIM) -> str:
        """What the lock registers it under."""
        lock = tomllib.loads((self.path / "predictions.lock").read_text(encoding="utf-8"))
        return str(lock["predictions"][prediction]["digest"])

    def record(self) -> str:
        """Records the verdicts that the evidence gives, as ``--prereg-record`` does, and commits the lock."""
        state = StudyState(load_study(self.path / "predictions.toml"))
        assert state.lock is not None
        entries = dict(state.lock.predictions)
        for prediction in state.study.predictions.values():
            assessment = state.assess(prediction)
            assert is_recordable(assessment)
            entries[prediction.id] = recorded_entry(assessment, entries[prediction.id])
        write_lock(state.study.lock_path, replace(state.lock, predictions=entries))
        return self.keep("Record", "predictions.lock")

    def go_on(self, name: str = "other.txt") -> str:
        """A commit that has nothing to do with the study."""
        self.write(name, name)
        return self.keep(f"Write {name}", name)

    def audit(self, *arguments: str) -> Audited:
        result = self.prereg("audit", "--format", "json", *arguments)
        assert result.exit_code in (0, 1, 4), result.output
        content = json.loads(result.stdout)
        assert content["exit"] == result.exit_code
        return Audited(content, result.exit_code)

    def cloned(self, path: Path, *options: str) -> Small:
        """A clone over the file transport, so that ``--depth`` and ``--filter`` mean something."""
        command = ["git", "clone", "--quiet", *options, self.top.as_uri(), str(path)]
        subprocess.run(command, check=True, capture_output=True)
        return Small(path / self.path.relative_to(self.top), path)


def new_study(path: Path, folder: str = "", text: str = STUDY) -> Small:
    """The study, not registered yet, in a new repository with one commit."""
    top = new_repository(path).path
    (top / folder).mkdir(parents=True, exist_ok=True)
    project = Small(top / folder, top)
    project.begin(text)
    return project
