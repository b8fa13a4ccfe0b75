"""Pull requests against a small study, made as their authors make them, and what the gate says of them."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from audited_study import CLAIM, Small, new_study

if TYPE_CHECKING:
    from pathlib import Path

_HEAD = "repeat,metric,value,unit\n"
SLOW_ROWS = _HEAD + "".join(
    f"{number},wall,{value},s\n" for number, value in enumerate((3.91, 4.12, 3.93, 4.04, 3.95), 1)
)
"""They refute the claim."""
MORE_ROWS = _HEAD + "".join(
    f"{number},wall,{value},s\n" for number, value in enumerate((1.02, 1.08, 0.97, 1.05, 0.91), 1)
)
"""They support it, as the first ones do."""
EASIER = ("<= 2 s", "<= 2.5 s")
STRICTER = ("<= 2 s", "<= 1.5 s")
OPPOSITE = """
[predictions.above-three]
claim = "It takes more than three seconds."
experiment = "rows"
quantity = "wall"
predicts = ">= 3 s"
falsifier = "< 2 s"
"""
SUCCESSOR = """
[experiments.again]
metrics = { wall = "s" }
repeats = 5

[predictions.below-one-and-a-half]
claim = "It takes less than a second and a half."
experiment = "again"
quantity = "wall"
predicts = "<= 1.5 s"
falsifier = ">= 3 s"
"""
"""What is expected now, with an experiment of its own."""
STRONGER = SUCCESSOR[SUCCESSOR.index("\n[predictions") :].replace('"again"', '"rows"')
"""The same of the experiment that may have been done."""
OWNERS = ".github/CODEOWNERS"
LOCK, TOML = "predictions.lock", "predictions.toml"

Said = tuple[str, str, str, int | None]
"""Code, id, level and line of a finding."""


@dataclass(frozen=True)
class Gated:
    """What ``pytest-prereg gate --format json`` printed, and with which status it ended."""

    content: dict[str, Any]
    exit: int

    @property
    def findings(self) -> list[dict[str, Any]]:
        return list(self.content["findings"])

    @property
    def said(self) -> list[Said]:
        """All but the notices that something was registered, which every registration gives."""
        told = [_said(one) for one in self.findings]
        return [one for one in told if (one[0], one[2]) != ("PR201", "notice")]

    @property
    def grave(self) -> list[Said]:
        """Those above a notice."""
        return [one for one in self.said if one[2] != "notice"]

    @property
    def open(self) -> list[Said]:
        """Those above a notice that nobody has acknowledged."""
        waiting = [one for one in self.findings if one["level"] != "notice" and one["acknowledged"] is None]
        return [_said(one) for one in waiting]

    def only(self, code: str) -> dict[str, Any]:
        """The only finding with this code."""
        (one,) = (one for one in self.findings if one["code"] == code)
        return one

    def prediction(self, name: str = CLAIM) -> dict[str, Any]:
        (one,) = (one for one in self.content["predictions"] if one["id"] == name)
        return one


def _said(finding: dict[str, Any]) -> Said:
    return finding["code"], finding["id"], finding["level"], finding["line"]


@dataclass(frozen=True)
class PullRequest(Small):
    """A branch, ``change``, of a repository whose study is on ``main``."""

    def gate(self, *arguments: str, base: str = "main") -> Gated:
        result = self.prereg("gate", "--base", base, "--format", "json", *arguments)
        assert result.exit_code in (0, 1, 4), (result.output, result.exception)
        content = json.loads(result.stdout)
        assert content["exit"] == result.exit_code
        return Gated(content, result.exit_code)

    def add(self, text: str) -> None:
        """Writes more into the prediction file, and commits nothing."""
        self.write(TOML, (self.path / TOML).read_text(encoding="utf-8") + text)

    def on_main(self, name: str, text: str, *more: str) -> None:
        """Commits a file to the base branch, and begins this branch anew there."""
        self.git("switch", "--quiet", "main")
        self.write(name, text)
        self.keep(f"Write {name}", name, *more)
        self.git("switch", "--quiet", "--force-create", "change")

    def owned(self, text: str = "*.lock @reviewers\n") -> None:
        """Has the base say who has to approve a change of the lock."""
        self.on_main(OWNERS, text)

    def merged(self) -> None:
        """Merges this pull request, and begins the next one."""
        self.git("switch", "--quiet", "main")
        self.git("merge", "--quiet", "--no-ff", "--message", "Merge", "change")
        self.git("switch", "--quiet", "--force-create", "change")

    def amend(self, old: str, new: str, reason: str = "we know better now") -> str:
        """Edits the study, has the lock say why, and commits both."""
        self.edit(TOML, old, new)
        self.done("amend", CLAIM, "--reason", reason)
        return self.keep("Amend", TOML, LOCK)

    def withdraw(self, reason: str = "nobody asks any more") -> str:
        self.done("withdraw", CLAIM, "--reason", reason)
        return self.keep("Withdraw", TOML, LOCK)

    def take_more(self, rows: str) -> str:
        """Imports more rows and commits the evidence."""
        self.write("more.csv", rows)
        self.measure("more.csv")
        return self.keep("More evidence", "experiments")

    def acknowledge(self, code: str, name: str = CLAIM, reason: str = "both of us looked at it") -> str:
        self.done("acknowledge", code, name, "--base", "main", "--reason", reason)
        return self.keep("Acknowledge", LOCK)


def stages_of_main(folder: Path) -> dict[str, Path]:
    """Repositories by how far the study on ``main`` has come: begun, registered, measured, recorded.

    At the first one nothing of it is committed.
    """
    project = new_study(folder / "begun")
    stages = {"begun": project.path}
    for stage in ("registered", "measured", "recorded"):
        path = folder / stage
        shutil.copytree(project.path, path, symlinks=True)
        project = Small(path, path)
        {"registered": project.register, "measured": project.take_in, "recorded": project.record}[stage]()
        stages[stage] = path
    return stages


def pull_request(stage: Path, path: Path) -> PullRequest:
    """A new branch of a copy of a repository, with nothing in it yet."""
    shutil.copytree(stage, path, symlinks=True)
    project = PullRequest(path, path)
    project.git("switch", "--quiet", "--create", "change")
    return project
