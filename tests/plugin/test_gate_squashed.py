"""What whoever squashes has to type first, as the gate gives it: typed, it keeps the order through a squash."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from audited_study import CLAIM

from pytest_prereg.audit.history.tags import tag_name
from pytest_prereg.registry.registered import registered

if TYPE_CHECKING:
    from collections.abc import Callable

    from gated_study import PullRequest

    Against = Callable[[str], PullRequest]


def parts(said: str) -> tuple[str, str]:
    """What the terminal tells the reviewer, and what the author."""
    reviewer, _, author = said.partition("\nthe author:\n")
    return reviewer, author


@pytest.fixture
def measured(against: Against) -> tuple[PullRequest, str]:
    """A pull request that registers and measures, and the commit that registers."""
    project = against("begun")
    commit = project.register()
    project.take_in()
    project.record()
    return project, commit


def test_who_squashes_is_given_a_command_that_works_and_nobody_else_is(
    measured: tuple[PullRequest, str], tmp_path: Path
) -> None:
    project, commit = measured
    said = project.prereg("gate", "--base", "main").stdout
    command = f"git switch --detach {commit[:8]} && pytest-prereg lock --tag && git switch -"
    reviewer, author = parts(said)
    lines = [line.strip() for line in reviewer.splitlines()]
    tag, push = lines[(place := lines.index(command))], lines[place + 1]
    assert "git switch" not in author
    assert "pytest-prereg lock --tag" not in author
    assert said.splitlines()[-1].startswith("next:  pytest-prereg acknowledge PR204")
    remote = tmp_path / "remote.git"
    project.git("init", "--quiet", "--bare", str(remote))
    project.git("remote", "add", "origin", str(remote))
    here = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for each in (tag, push):
        subprocess.run(["sh", "-c", each], cwd=project.path, check=True, capture_output=True, env=here)
    lock = registered((project.path / "predictions.lock").read_bytes())
    assert lock is not None
    assert push == f"git push origin {tag_name(lock)}"
    assert tag_name(lock) in project.git("ls-remote", "--tags", "origin")
    assert "git switch" not in project.prereg("gate", "--base", "main").stdout  # it is kept by now
    project.git("reset", "--quiet", "--soft", "main")
    project.keep("Squashed")
    squashed = project.gate().prediction(CLAIM)
    assert (squashed["order"], squashed["standing"]) == ("witnessed", "confirmatory")
    assert [one[0] for one in project.gate().open] == ["PR204"]  # a tag does not take the review away


@pytest.mark.parametrize("form", ["markdown", "github"])
def test_it_stands_where_the_reviewer_reads(measured: tuple[PullRequest, str], form: str) -> None:
    project, commit = measured
    said = project.prereg("gate", "--base", "main", "--format", form).stdout
    assert f"git switch --detach {commit[:8]} && pytest-prereg lock --tag && git switch -" in said
    assert "git push origin prereg/small/" in said
    if form == "markdown":
        assert "git switch" not in said.partition("**The author**")[2]
