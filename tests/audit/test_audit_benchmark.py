"""The repository that the benchmark of the audit builds is an honest one, of the length asked for."""

from __future__ import annotations

import importlib
import subprocess
from pathlib import Path

import pytest

from pytest_prereg.audit.assess import StudyState
from pytest_prereg.audit.auditing import audit_study
from pytest_prereg.audit.history.order import Grade
from pytest_prereg.registry.load import load_study

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(
    not (ROOT / "benchmarks").is_dir(), reason="runs in a checkout or an unpacked sdist"
)

COMMITS, PREDICTIONS = 60, 10


def git(folder: Path, *arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_what_is_audited_is_a_whole_study_with_nothing_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    importlib.import_module("audit_repository").build(tmp_path, COMMITS, PREDICTIONS)
    monkeypatch.chdir(tmp_path)
    audit = audit_study(StudyState(load_study(tmp_path / "predictions.toml")))

    assert [one.order for one in audit.predictions] == [Grade.REGISTERED] * PREDICTIONS
    assert {one.head.verdict for one in audit.predictions} == {"supported"}
    assert audit.exit == 0, audit.findings
    assert len(git(tmp_path, "rev-list", "HEAD")) == COMMITS
    assert git(tmp_path, "rev-list", "--merges", "HEAD")
    assert not git(tmp_path, "status", "--porcelain")


def test_a_study_that_does_not_fit_into_so_few_commits_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    with pytest.raises(ValueError, match="too few"):
        importlib.import_module("audit_repository").build(tmp_path, PREDICTIONS, PREDICTIONS)
