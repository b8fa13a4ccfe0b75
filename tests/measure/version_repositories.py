"""Real git repositories with a study whose arms are versions of the code."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_prereg.measure.versions.checkout import Checkout
from pytest_prereg.measure.versions.resolving import Resolved, resolve
from pytest_prereg.registry.load import load_study

if TYPE_CHECKING:
    from pytest_prereg.registry.model import Experiment, Study

STUDY = """\
[study]
id = "versions"

[experiments.pr]
command = {command}
repeats = 3
{more}
[experiments.pr.arms]
{arms}

[predictions.no-slower]
claim = "No slower."
experiment = "pr"
contrast = "head / base"
quantity = "wall"
predicts = "<= 1.05"
falsifier = ">= 1.1"
"""
ARMS = {"base": "merge-base:main", "head": "worktree"}


@dataclass(frozen=True)
class Repository:
    """A repository, and the study in it."""

    path: Path
    inside: str = "."
    """The study's folder."""

    @classmethod
    def made(cls, path: Path, *, inside: str = ".") -> Repository:
        path.mkdir(parents=True)
        made = cls(path, inside)
        made.git("init", "--quiet", "--initial-branch=main", "--template=")
        made.git("config", "user.name", "Test")
        made.git("config", "user.email", "test@example.invalid")
        made.git("config", "gc.auto", "0")
        return made

    def copy(self, path: Path) -> Repository:
        shutil.copytree(self.path, path, symlinks=True)
        return Repository(path, self.inside)

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=self.path, env=plain(), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def write(self, name: str, text: str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def commit(self, message: str = "A commit", **files: str) -> str:
        """Commits all, with files whose names have ``_`` for the dot; returns the commit."""
        for name, text in files.items():
            self.write(name.replace("_", "."), text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD")

    def tree(self, revision: str = "HEAD") -> str:
        return self.git("rev-parse", f"{revision}^{{tree}}")

    def write_study(
        self, arms: dict[str, str] | None = None, *, command: str = '["true"]', more: str = ""
    ) -> None:
        lines = "\n".join(f'{arm} = {{ ref = "{ref}" }}' for arm, ref in (arms or ARMS).items())
        text = STUDY.format(command=command, more=more, arms=lines)
        self.write(f"{self.inside}/predictions.toml", text)

    def study(self) -> tuple[Study, Experiment]:
        study = load_study(self.path / self.inside / "predictions.toml")
        return study, study.experiments["pr"]

    def resolved(self, **options: object) -> Resolved:
        found = resolve(*self.study(), **options)  # type: ignore[arg-type]
        assert found is not None
        return found

    def checkout(self, said: list[str] | None = None) -> Checkout:
        return Checkout(*self.study(), self.resolved(), say=None if said is None else said.append)

    def worktrees(self) -> list[Path]:
        lines = self.git("worktree", "list", "--porcelain").splitlines()
        return [Path(line.partition(" ")[2]) for line in lines if line.startswith("worktree ")]


def plain() -> dict[str, str]:
    """This process's environment without what steers git."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**kept, "GIT_CONFIG_GLOBAL": os.devnull}
