"""Two studies of one repository under one id: told once, where it can be mended, and not as each other's fault."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from audited_study import ROWS, STUDY, Small, new_study
from small_study import new_repository

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ANOTHER = STUDY.replace("<= 2 s", "<= 1.9 s")


@pytest.fixture
def teams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Small, Small]:
    """Two folders of the same name; the study of the first is registered, that of the second written."""
    first = new_study(tmp_path / "repository", "team1/bench")
    second = Small(first.top / "team2" / "bench", first.top)
    second.path.mkdir(parents=True)
    second.write("predictions.toml", ANOTHER)
    second.write("rows.csv", ROWS.replace("1.0", "1.1"))
    monkeypatch.chdir(first.path)
    first.register()
    first.take_in()
    monkeypatch.chdir(second.path)
    return first, second


@pytest.mark.parametrize("command", [("lock",), ("lock", "--check"), ("audit",), ("explain", "below-two")])
def test_a_second_study_of_that_id_is_refused(teams: tuple[Small, Small], command: tuple[str, ...]):
    first, second = teams
    result = second.prereg(*command)
    assert result.exit_code == 1
    said = f'study id "small" is that of {first.path / "predictions.toml"}, too'
    whole = " ".join(result.output.replace("-\n", "-").split())
    assert "PR002" in whole
    assert said.replace(" ", "") in whole.replace(" ", "")


def test_of_which_the_first_is_told_once_both_are_registered(
    teams: tuple[Small, Small], monkeypatch: pytest.MonkeyPatch
):
    first, second = teams
    second.edit("predictions.toml", '"small"', '"other"')
    second.register()
    for name in ("predictions.toml", "predictions.lock"):
        second.edit(name, '"other"', '"small"')
    second.keep("Call it as the other is called")
    monkeypatch.chdir(first.path)
    result = first.prereg("audit")
    assert result.exit_code == 1
    assert "PR002" in result.output
    assert "PR202" not in result.output


def test_as_long_as_it_is_not_registered_it_disturbs_nobody(
    teams: tuple[Small, Small], monkeypatch: pytest.MonkeyPatch
):
    first, second = teams
    second.keep("Written, not registered")
    monkeypatch.chdir(first.path)
    assert first.audit().told == []


def test_under_another_id_it_is_fine(teams: tuple[Small, Small]):
    _, second = teams
    second.edit("predictions.toml", '"small"', '"other"')
    second.register()
    second.take_in()
    assert second.audit().told == []


@pytest.mark.parametrize("when", ["as it is", "as it once was"])
def test_a_copy_is_no_other_study(teams: tuple[Small, Small], monkeypatch: pytest.MonkeyPatch, when: str):
    first, second = teams
    shutil.rmtree(second.path)
    shutil.copytree(first.path, second.path)
    second.keep("Archive")
    monkeypatch.chdir(first.path)
    if when == "as it once was":
        first.edit("predictions.toml", "<= 2 s", "<= 1.9 s")
        first.done("amend", "below-two", "--reason", "bolder")
        first.keep("Amend")
    assert "PR002" not in first.prereg("audit").output
    monkeypatch.chdir(second.path)
    assert "PR002" not in second.prereg("audit").output


def test_what_git_does_not_keep_is_not_of_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A worktree of the same repository in one of its folders, say."""
    project = new_study(tmp_path / "repository")
    monkeypatch.chdir(project.path)
    project.register()
    project.git("worktree", "add", "--quiet", "-b", "aside", "work")
    project.write("predictions.toml", ANOTHER)
    project.done("amend", "below-two", "--reason", "bolder")
    project.keep("Amend", "predictions.toml", "predictions.lock")
    assert "PR002" not in project.prereg("audit").output


@pytest.mark.parametrize("folder", ["team2/bench", "team1/bench", "a b/Übung"])
def test_init_takes_no_id_that_another_study_has(tmp_path: Path, begin: Callable[[Path], str], folder: str):
    top = new_repository(tmp_path / "repository").path
    assert begin(top / "bench") == "bench"
    expected = {"team2/bench": "team2-bench", "team1/bench": "team1-bench", "a b/Übung": "bung"}
    assert begin(top / folder) == expected[folder]
    assert begin(top / "bench" / "bench") == "bench-bench"


@pytest.fixture
def begin(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], str]:
    """Begins a study in a folder, commits nothing, and returns its id."""

    def make(folder: Path) -> str:
        folder.mkdir(parents=True)
        monkeypatch.chdir(folder)
        Small(folder, folder).done("init")
        text = (folder / "predictions.toml").read_text(encoding="utf-8")
        line = next(one for one in text.splitlines() if one.startswith("id"))
        return line.split('"')[1]

    return make
