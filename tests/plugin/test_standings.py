"""The standing of every verdict, as the terminal, the JSON records and JUnit tell it: each grade of order."""

from __future__ import annotations

import os
import shutil
import subprocess
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Any

import pytest
from small_study import Project, Verdicts, new_repository

from pytest_prereg.registry.lock import read_lock

if TYPE_CHECKING:
    from pathlib import Path

TOML = "predictions.toml"
GRADES = {
    "before": ("registered", "confirmatory"),
    "on-one-side": ("registered-one-side", "confirmatory"),
    "squashed-and-tagged": ("witnessed", "confirmatory"),
    "squashed": ("simultaneous", "exploratory"),
    "too-late": ("after-evidence", "exploratory"),
    "moved": ("mismatch", "exploratory"),
    "never": ("unregistered", "exploratory"),
    "seen": ("registered", "replication"),
    "on-a-scratch-branch": ("registered", "confirmatory"),
}
WORDS = {
    "before": "wants < 2 s*imported",
    "seen": "wants < 2 s*replication, imported",
    "on-one-side": "wants < 2 s*registered-one-side, imported",
    "squashed-and-tagged": "wants < 2 s*witnessed, imported",
    "squashed": "exploratory: simultaneous (*.jsonl came in with ????????, and so did the registration), imported",
    "too-late": "exploratory: after-evidence (*.jsonl came in with ????????, before anything was registered)",
    "moved": "exploratory: mismatch (something else was registered when *.jsonl came in with ????????)",
    "never": "exploratory: unregistered (not in the lock at HEAD (????????))",
    "on-a-scratch-branch": "wants < 2 s*imported, contested",
}
"""What stands beside each verdict, on however many lines."""


def tables(name: str, on: str | None = None, *lines: str) -> str:
    own = f'[experiments.{name}]\nmetrics = {{ t = "s" }}\nrepeats = 3\n' if on is None else ""
    claim = f'[predictions.{name}]\nclaim = "It takes less than two seconds."\nexperiment = "{on or name}"\n'
    regions = 'quantity = "t"\npredicts = "< 2 s"\nfalsifier = ">= 2 s"\n'
    return "\n".join(("", own, claim + regions, *lines, ""))


class Graded(Project):
    """A study that grows, one prediction after the other."""

    def add(self, *text: str) -> None:
        path = self.path / TOML
        before = path.read_text() if path.exists() else '[study]\nid = "graded"\n'
        self.write(TOML, "".join((before, *text)))

    def take(self, name: str) -> None:
        number = sum(map(ord, name)) / 1e5
        rows = "".join(f"{index},t,{1 + index / 100 + number},s\n" for index in range(1, 4))
        self.write(f"{name}.csv", "repeat,metric,value,unit\n" + rows)
        self.done("import", f"{name}.csv", "--experiment", name)
        (self.path / f"{name}.csv").unlink()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Graded:
    """A study with a prediction of each grade that a whole history gives."""
    project = Graded(new_repository(tmp_path_factory.mktemp("graded") / "project").path)
    project.add(
        *map(tables, ("before", "moved", "on-a-scratch-branch")), tables("seen", None, 'data-seen = "full"')
    )
    project.done("lock")
    project.commit("Register")
    for name in ("before", "moved", "seen"):
        project.take(name)
    project.commit("Evidence")
    contest(project)
    merge_one_side(project)
    squash(project)
    project.edit(TOML, *late(project))
    return project


def contest(project: Graded) -> None:
    """A branch has the evidence from before its registration; here it is committed after that."""
    project.take("on-a-scratch-branch")
    project.commit("Evidence")
    environment = {**os.environ, "GIT_INDEX_FILE": str(project.path / ".git" / "scratch-index")}
    path = project.evidence("on-a-scratch-branch")[0].relative_to(project.path)
    subprocess.run(["git", "add", path], cwd=project.path, env=environment, check=True)
    wrote = subprocess.run(
        ["git", "write-tree"], cwd=project.path, env=environment, check=True, capture_output=True, text=True
    )
    project.git("branch", "scratch", project.git("commit-tree", wrote.stdout.strip(), "-m", "Scratch"))


def merge_one_side(project: Graded) -> None:
    """A merge brings evidence, and one of the merged branches lacks its registration."""
    project.git("branch", "other")
    project.add(tables("on-one-side"))
    project.done("lock")
    project.commit("Register")
    project.git("checkout", "--quiet", "other")
    project.git("commit", "--quiet", "--allow-empty", "--message", "Other work")
    project.git("merge", "--quiet", "--no-commit", "--no-ff", "main")
    project.take("on-one-side")
    project.commit("Merge")
    project.git("checkout", "--quiet", "-B", "main")


def squash(project: Graded) -> None:
    """Registration and evidence come in one commit; of one of them a tag keeps the registration alone."""
    for name, tagged in (("squashed", False), ("squashed-and-tagged", True)):
        project.add(tables(name))
        project.done("lock")
        project.commit("Register")
        if tagged:
            digest = read_lock(project.path / "predictions.lock").predictions[name].digest
            project.git("tag", f"prereg/graded/{digest.removeprefix('sha256:')[:8]}")
        project.take(name)
        project.git("reset", "--quiet", "--soft", "HEAD~")
        project.commit("Squash")
    project.add(tables("too-late", "before").replace("< 2 s", "< 1.9 s"))
    project.done("lock")
    project.commit("Register")


def late(project: Graded) -> tuple[str, str]:
    """Moves one threshold and adds a prediction that is registered nowhere."""
    text = (project.path / TOML).read_text()
    moved = text.replace(tables("moved"), tables("moved").replace(">= 2 s", ">= 3 s"))
    return text, moved + tables("never", "before").replace("< 2 s", "< 1.8 s")


def told(project: Graded, judge: Any, folder: Path) -> tuple[pytest.RunResult, Verdicts, dict[str, Any]]:
    """The run, its records, and the JUnit properties of each prediction."""
    records, junit = folder / "records.json", folder / "junit.xml"
    flags = ("--prereg-verify", f"--prereg-json={records}", f"--junitxml={junit}", "-p", "no:cacheprovider")
    result = judge(project, *flags)
    cases = ET.parse(junit).getroot()[0].iter("testcase")
    properties = {
        case.get("name"): {one.get("name"): one.get("value") for one in case.iter("property")}
        for case in cases
    }
    return result, Verdicts(records), properties


def test_each_grade_is_told_by_all_three(made, judge, tmp_path):
    result, records, properties = told(made, judge, tmp_path)

    assert {name: (records[name]["order"], records[name]["standing"]) for name in GRADES} == GRADES
    assert {
        name: (properties[name]["prereg.order"], properties[name]["prereg.standing"]) for name in GRADES
    } == GRADES
    assert "contested" in records["on-a-scratch-branch"]["flags"]
    assert properties["on-a-scratch-branch"]["prereg.flags"] == "imported, contested"
    said = paragraphs(result)
    for name, words in WORDS.items():
        pytest.LineMatcher([said[name]]).fnmatch_lines([f"*{words}*"])
    counted = " ".join(result.stdout.str().split())
    assert "8 registered · 5 judged · 5 supported" in counted
    assert "3 not counted · 1 not registered" in counted
    assert "4 of 9 confirmatory · 3 exploratory, not counted" in counted


def paragraphs(result: pytest.RunResult) -> dict[str, str]:
    """What is said of each prediction, as one line."""
    found: dict[str, list[str]] = {}
    name = None
    for line in result.outlines:
        words = line.split()
        if line.startswith(" ") and len(words) > 1 and words[0] in "+-?r!." and words[1] in GRADES:
            name = words[1]
        elif not line.startswith("     "):
            name = None
        if name is not None:
            found.setdefault(name, []).append(line)
    return {name: " ".join(" ".join(lines).split()) for name, lines in found.items()}


def test_where_the_history_is_cut_nothing_is_confirmed_and_it_says_how_to_get_it(made, judge, tmp_path):
    url = f"file://{made.path}"
    subprocess.run(["git", "clone", "--quiet", "--depth=1", url, tmp_path / "clone"], check=True)
    shutil.copy(made.path / TOML, tmp_path / "clone" / TOML)

    result, records, properties = told(Graded(tmp_path / "clone"), judge, tmp_path)

    assert (records["before"]["order"], records["before"]["standing"]) == ("unverifiable", "exploratory")
    assert properties["before"]["prereg.order"] == "unverifiable"
    said = "exploratory: unverifiable (history is cut at ????????, which already has *: fetch all of it *"
    pytest.LineMatcher([paragraphs(result)["before"]]).fnmatch_lines([f"*{said}*"])
