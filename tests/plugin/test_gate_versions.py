"""What the gate says of claims and guards whose subject a pull request changes: PR205 and PR206."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from gated_study import TOML, PullRequest, pull_request
from small_study import new_repository

if TYPE_CHECKING:
    from pathlib import Path

STUDY = """\
[study]
id = "kernel"

[experiments.work]
fixture = "work"
repeats = 5
subject = ["kernel.txt"]

[predictions.was-quick]
claim = "It takes less than two seconds."
experiment = "work"
quantity = "t"
predicts = "< 2 s"
falsifier = ">= 2 s"

[predictions.stays-quick]
claim = "It takes less than two seconds, whatever is changed."
kind = "guard"
experiment = "work"
quantity = "t"
predicts = "< 2 s"
falsifier = ">= 2 s"
expected = 1.0
detect = 3.0
cv = 0.02
"""
WORK = """\
from pathlib import Path

from pytest_prereg import Repeat, experiment


@experiment(metrics={"t": "s"})
def work(repeat: Repeat) -> None:
    takes = float((Path(__file__).parents[1] / "kernel.txt").read_text())
    repeat.record("t", takes + repeat.index / 100)
"""
GUARD, CLAIM = "stays-quick", "was-quick"
STALE = [("PR206", GUARD, "notice", 16), ("PR206", CLAIM, "notice", 9)]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = new_repository(tmp_path_factory.mktemp("kernel") / "main")
    project = PullRequest(made.path, made.path)
    project.write(TOML, STUDY)
    project.write("experiments/work.py", WORK)
    project.write("kernel.txt", "1.0\n")
    project.write(".gitignore", "__pycache__/\n")
    project.done("lock")
    project.commit("Register")
    measure(project)
    return project.path


@pytest.fixture
def project(recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PullRequest:
    """A pull request against a study that was measured and recorded."""
    made = pull_request(recorded, tmp_path / "kernel")
    monkeypatch.chdir(made.path)
    return made


def measure(project: PullRequest) -> str:
    """Measures, records and commits."""
    done = project.process(
        "--prereg", "--prereg-record", "-p", "no:cacheprovider", "-p", "no:hypothesispytest"
    )
    assert "recorded" in done.stdout, done.stdout + done.stderr
    return project.keep("Measure", ".")


def changed(project: PullRequest, takes: str) -> None:
    project.write("kernel.txt", f"{takes}\n")
    project.keep("Change the kernel", "kernel.txt")


def test_206_a_subject_that_changed_is_a_notice_and_on_the_default_branch_a_review_of_the_guard(
    project: PullRequest,
):
    changed(project, "1.1")
    gated = project.gate()
    assert (sorted(gated.said), gated.exit) == (STALE, 0)
    messages = {one["id"]: one["message"] for one in gated.findings}
    assert messages[GUARD].startswith(f'"{GUARD}" is stale: series 1 found it supported for ')
    assert messages[CLAIM].startswith(f'"{CLAIM}" is about an earlier version of its subject (')
    gated = project.gate("--default-branch")
    assert (gated.grave, gated.exit) == ([("PR206", GUARD, "review", 16)], 1)
    assert [one["id"] for one in gated.findings if one["level"] == "notice"] == [CLAIM]
    project.acknowledge("PR206", GUARD)
    gated = project.gate("--default-branch", "--acknowledge", "lock")
    assert (gated.open, gated.exit) == ([], 0)


def test_206_on_the_default_branch_a_guard_that_was_stale_before_is_still_told(project: PullRequest):
    changed(project, "1.1")
    project.merged()
    project.go_on()
    assert project.gate().findings == []
    assert project.gate("--default-branch").open == [("PR206", GUARD, "review", 16)]


def test_205_a_guard_that_gives_way_is_a_review_and_one_that_holds_needs_nobody(
    project: PullRequest, recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    changed(project, "1.1")
    measure(project)
    gated = project.gate("--default-branch")
    assert (gated.grave, gated.exit) == ([], 0)
    slower = pull_request(recorded, tmp_path / "slower")
    monkeypatch.chdir(slower.path)
    changed(slower, "2.5")
    measure(slower)
    gated = slower.gate()
    assert ("PR205", GUARD, "review", 16) in gated.open
    assert gated.exit == 1
    (only,) = (one for one in gated.findings if (one["code"], one["id"]) == ("PR205", GUARD))
    assert only["about"] == "supported -> refuted"
    assert gated.prediction(GUARD)["base"]["verdict"] == "supported"
    assert gated.prediction(GUARD)["head"]["verdict"] == "refuted"
