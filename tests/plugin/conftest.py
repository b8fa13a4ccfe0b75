"""Studies at every stage of their life, made once and copied for each test; runs of pytest in them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np  # noqa: F401 - pytester forgets what a run imports, and numpy is loaded only once
import pint  # noqa: F401
import pytest
import scipy.special  # noqa: F401
from gated_study import PullRequest, pull_request, stages_of_main
from small_study import Project, Verdicts, copied, halfway, measurable, stages_of_rows

import pytest_prereg.session  # noqa: F401

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(scope="session")
def stages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The repositories that tests copy, by how far the study has come."""
    folder = tmp_path_factory.mktemp("stages")
    made = dict(zip(("written", "registered", "judged", "recorded"), stages_of_rows(folder), strict=True))
    return {**made, "measurable": measurable(folder), "halfway": halfway(folder)}


@pytest.fixture
def at_stage(
    stages: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], Project]:
    """``at_stage("judged")``: a copy of the study as far as that, and the current folder is in it."""

    def make(stage: str) -> Project:
        project = copied(Project(stages[stage]), tmp_path / "project")
        monkeypatch.chdir(project.path)
        return project

    return make


@pytest.fixture(scope="session")
def stages_at_base(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The repositories that pull requests are made against."""
    return stages_of_main(tmp_path_factory.mktemp("main"))


@pytest.fixture
def against(
    stages_at_base: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], PullRequest]:
    """``against("measured")``: a pull request against a study that is as far as that."""

    def make(stage: str) -> PullRequest:
        project = pull_request(stages_at_base[stage], tmp_path / f"against-{stage}")
        monkeypatch.chdir(project.path)
        return project

    return make


@pytest.fixture
def judge(pytester: pytest.Pytester) -> Callable[..., pytest.RunResult]:
    """``judge(project, ...)``: pytest with ``--prereg`` in the project, in this process."""

    def run(project: Project, *arguments: str, asked: bool = True) -> pytest.RunResult:
        os.chdir(project.path)
        flags = ("--prereg",) if asked else ()
        return pytester.runpytest_inprocess(*flags, "--rootdir", str(project.path), *arguments)

    return run


@pytest.fixture
def records(judge: Callable[..., pytest.RunResult], tmp_path: Path) -> Callable[..., Verdicts]:
    """``records(project, ...)``: what such a run writes as JSON."""

    def run(project: Project, *arguments: str) -> Verdicts:
        out = tmp_path / "records.json"
        judge(project, f"--prereg-json={out}", *arguments)
        return Verdicts(out)

    return run
