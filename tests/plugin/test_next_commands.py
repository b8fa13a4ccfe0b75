"""The command that comes next is run as it was printed, from wherever it was printed, and does what it says."""

from __future__ import annotations

import contextlib
import shlex
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import click.testing
import pytest
from small_study import MEASURED, WORK, Project, new_repository

from pytest_prereg import cli

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LOCK = "predictions.lock"
WHY = ("--reason", "why not")


def in_folder(folder: Path, *arguments: str) -> str:
    """What ``pytest-prereg`` says, typed in a folder; it has to succeed."""
    with contextlib.chdir(folder):
        result = click.testing.CliRunner().invoke(cli.main, arguments, prog_name="pytest-prereg")
    assert result.exit_code == 0, result.output
    return result.output


def follow(said: str, folder: Path) -> None:
    """Types the last line of what was said, in the same folder."""
    (line,) = [each for each in said.splitlines() if each.startswith("next:  ")]
    done = subprocess.run(
        line.removeprefix("next:  "), shell=True, cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


def changed(project: Project) -> str:
    """What git has to say of lock and evidence."""
    return project.git("status", "--porcelain", "--ignored", "--", "*predictions.*", "*evidence*")


@pytest.fixture
def nested(at_stage: Callable[[str], Project], tmp_path: Path) -> Project:
    """The study, in a folder whose name has spaces and more, of a repository that has more than it."""
    project = new_repository(tmp_path / "whole")
    shutil.copytree(at_stage("written").path, project.path / "my stüdy's (1)", ignore=lambda *_: [".git"])
    (project.path / "elsewhere").mkdir()
    return project


@pytest.mark.parametrize("place", [".", "my stüdy's (1)", "elsewhere"])
def test_in_any_folder_of_the_repository(nested, place):
    folder, study = nested.path / place, nested.path / "my stüdy's (1)"
    named = ("--study", str(study))
    follow(in_folder(folder, "lock", *named), folder)
    assert changed(nested) == ""
    (study / "predictions.toml").write_text(
        (study / "predictions.toml").read_text().replace(">= 3 s", ">= 4 s", 1)
    )
    follow(in_folder(folder, "amend", "below-two", *WHY, *named), folder)
    in_folder(study, "import", "rows.csv", "--experiment", "rows")

    follow(in_folder(folder, "exclude", "rows/1/1", "--cause", "tool", *WHY, *named), folder)
    follow(in_folder(folder, "void", "rows/1", *WHY, *named), folder)
    follow(in_folder(folder, "withdraw", "above-two", *WHY, *named), folder)

    assert changed(nested) == ""
    assert nested.git("log", "--format=%s").splitlines() == [
        "Withdraw above-two",
        "Void rows/1",
        "Exclude rows/1/1",
        "Amend below-two",
        "Register 4 predictions of small",
    ]


@pytest.mark.parametrize("around", ["another repository", "no repository"])
def test_from_outside_of_the_repository(nested, tmp_path, around):
    outside = tmp_path / "outside"
    if around == "another repository":
        new_repository(outside)
    else:
        outside.mkdir()

    follow(in_folder(outside, "lock", "--study", str(nested.path / "my stüdy's (1)")), outside)

    assert nested.git("log", "--format=%s") == "Register 4 predictions of small"


def test_where_there_is_no_repository_yet_one_is_begun_for_the_study(nested, tmp_path, monkeypatch):
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "Test")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "test@example.invalid")
    shutil.rmtree(nested.path / ".git")
    study = nested.path / "my stüdy's (1)"

    follow(in_folder(tmp_path, "lock", "--study", str(study)), tmp_path)

    assert Project(study).git("log", "--format=%s") == "Register 4 predictions of small"


def test_a_lock_that_git_is_told_to_ignore_is_committed_all_the_same(at_stage, judge):
    project = at_stage("written")
    project.write(".gitignore", "*.lock\n")
    project.commit("Ignore locks")

    follow(project.done("lock"), project.path)

    assert project.git("ls-files", LOCK) == LOCK
    assert set(judge(project, "--prereg-verify").parseoutcomes()) == {"pending"}


def test_evidence_that_git_is_told_to_ignore_is_told_of_and_committed(at_stage, judge):
    project = at_stage("measurable")
    project.write(".gitignore", "witness.txt\n__pycache__\nexperiments/evidence/\n")
    project.commit("Ignore evidence")

    result = judge(project, "--prereg-record")

    result.stdout.fnmatch_lines(["git is told to ignore experiments/evidence/work/*.jsonl: unless it is *"])
    follow(result.stdout.str(), project.path)
    assert len(project.git("ls-files", "experiments/evidence").splitlines()) == 1
    assert "verdict" in project.git("show", f"HEAD:{LOCK}")


def test_a_run_in_a_folder_below_says_what_to_commit_from_there(nested, judge, monkeypatch):
    study = nested.path / "my stüdy's (1)"
    follow(in_folder(study, "lock"), study)
    in_folder(study, "import", "rows.csv", "--experiment", "rows")
    below = study / "experiments"
    monkeypatch.chdir(below)

    done = Project(below).process(
        "--prereg", "--prereg-record", "../predictions.toml", "-p", "no:cacheprovider"
    )

    assert "next:  git add ../predictions.lock evidence && git commit" in done.stdout, done.stdout
    follow(done.stdout, below)
    assert changed(nested) == ""


# What is not committed is not measured, and what to type is told


def test_code_that_was_amended_and_not_committed_is_not_measured(at_stage, judge):
    project = at_stage("measurable")
    project.edit("experiments/work.py", "0.25", "0.5")
    project.done("amend", "quick-is-quicker", *WHY)
    project.git("commit", "--quiet", "--message", "Amend", "--", LOCK)

    result = judge(project)

    said = '*PR102: "quick-is-quicker" is registered, but the code of experiment "work" is not committed as it is*'
    result.stdout.fnmatch_lines([said, "    git add predictions.* experiments/[*].py && git commit *"])
    assert (result.parseoutcomes(), project.repeats_run()) == ({"pending": 1}, 0)


def test_nor_is_a_module_that_it_imports(tmp_path, judge):
    project = new_repository(tmp_path / "project")
    project.write(".gitignore", "witness.txt\n__pycache__\n")
    project.write("predictions.toml", MEASURED)
    project.write("experiments/work.py", f"from tools import helper\n{WORK}")
    project.write("tools/__init__.py", "")
    project.write("tools/helper.py", "FACTOR = 1\n")
    project.done("lock")
    project.git("add", "predictions.toml", LOCK, "experiments/work.py")
    project.git("commit", "--quiet", "--message", "Register")

    result = judge(project)

    result.stdout.fnmatch_lines(["*PR102: *is not committed as it is*"])
    command = next(line for line in result.outlines if line.startswith("    git add "))
    follow(f"next:  {command.strip()}", project.path)
    assert judge(project).parseoutcomes() == {"passed": 1}


@pytest.mark.parametrize("where", ["detached", "fresh"])
def test_a_detached_head_measures_and_a_repository_without_commits_does_not(at_stage, judge, where):
    project = at_stage("measurable")
    if where == "detached":
        project.git("checkout", "--quiet", "--detach")
        assert judge(project).parseoutcomes() == {"passed": 1}
        return
    shutil.rmtree(project.path / ".git")
    project.git("init", "--quiet")
    (project.path / LOCK).unlink()

    result = judge(project)

    result.stdout.fnmatch_lines(
        [
            '*PR102: "quick-is-quicker" is not in the lock at HEAD, so nothing was measured for it.',
            "    pytest-prereg lock && git add predictions.* experiments/[*].py && git commit -m *",
        ]
    )
    assert project.repeats_run() == 0


def test_a_registration_that_changed_before_it_was_committed_is_amended_first(at_stage, judge):
    project = at_stage("measurable")
    project.git("update-ref", "-d", "HEAD")
    project.edit("predictions.toml", '"<= 0.5"', '"<= 0.4"')

    judge(project).stdout.fnmatch_lines(
        [
            '*PR102: "quick-is-quicker" is not in the lock at HEAD*',
            "    Restore it, or: pytest-prereg amend quick-is-quicker --reason '…' && git add *",
        ]
    )


def test_who_tried_an_experiment_before_registering_is_told_to_say_so(at_stage):
    project = at_stage("measurable")
    (project.path / "predictions.lock").unlink()
    project.done("try", "work", "--arm", "quick")

    said = project.done("lock")
    assert 'work was tried before: data-seen = "pilot" in quick-is-quicker would say so' in said
    project.edit("predictions.toml", 'tags = ["speed"]', 'data-seen = "pilot"')
    project.done("amend", "quick-is-quicker", "--reason", "it was tried")
    (project.path / "predictions.lock").unlink()
    assert "tried before" not in project.done("lock")


def with_another(project: Project) -> None:
    """A study with one prediction more than the lock has."""
    text = (project.path / "predictions.toml").read_text()
    _, _, table = text.partition("[predictions.quick-is-quicker]\n")
    project.write("predictions.toml", f"{text}\n[predictions.again]\n{table.replace('<= 0.5', '<= 0.4')}")


def test_the_message_names_what_the_commit_touches_and_nothing_else(at_stage, judge):
    project = at_stage("measurable")
    with_another(project)

    unlocked = judge(project, "-k", "again").stdout
    unlocked.fnmatch_lines(["    pytest-prereg lock && git add * && git commit -m 'Register again'"])
    assert "git commit -m 'Register again'" in project.done("lock")
    judge(project, "-k", "again").stdout.fnmatch_lines(["    git add * && git commit -m 'Register again'"])


def test_code_that_is_not_committed_is_committed_in_the_name_of_what_it_serves(at_stage, judge):
    project = at_stage("measurable")
    project.edit("experiments/work.py", "0.25", "0.5")
    project.done("amend", "quick-is-quicker", "--reason", "the machine is slower")
    project.git("add", "predictions.lock")
    project.git("commit", "--quiet", "--message", "The lock alone")

    judge(project).stdout.fnmatch_lines(["    git add * && git commit -m 'Register quick-is-quicker'"])


def test_where_the_lock_alone_changed_no_evidence_is_committed(at_stage, judge):
    project = at_stage("judged")

    said = judge(project, "--prereg-record").stdout.str()

    assert "next:  git add predictions.lock && git commit -m 'Record verdicts of small'" in said


class TestPagesThatAreCheckedByAHook:
    """``cite --check`` refuses a commit whose pages quote what was: they are written in the same one."""

    @pytest.fixture
    def project(self, at_stage) -> Project:
        project = at_stage("measurable")
        project.write("README.md", "It registers <!-- prereg: study.registered -->1<!-- /prereg -->.\n")
        project.write("other.md", "Nothing is quoted here.\n")
        project.commit("Quote")
        hook = project.write(
            ".git/hooks/pre-commit",
            f"#!/bin/sh\nexec {shlex.quote(sys.executable)} -m pytest_prereg cite --check\n",
        )
        hook.chmod(0o755)
        return project

    def run(self, project: Project, command: str) -> None:
        tool = f'pytest-prereg() {{ {shlex.quote(sys.executable)} -m pytest_prereg "$@"; }}'
        done = subprocess.run(
            ["bash", "-c", f"{tool}\n{command}"],
            cwd=project.path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert project.git("status", "--porcelain") == ""

    def test_a_registration_writes_them_first(self, project):
        with_another(project)

        said = project.done("lock")

        command = said.partition("next:  ")[2].strip()
        assert command.startswith(
            "pytest-prereg cite && git add predictions.* experiments/*.py README.md && "
        )
        self.run(project, command)

    def test_so_does_a_verdict(self, project, judge):
        text = "It took <!-- prereg: study.supported -->0<!-- /prereg -->.\n"
        project.write("README.md", text)
        project.commit("Quote a count")

        said = judge(project, "--prereg-record").stdout.str()

        command = said.partition("next:  ")[2].splitlines()[0]
        assert command.startswith(
            "pytest-prereg cite && git add predictions.lock experiments/evidence README.md"
        )
        self.run(project, command)

    def test_pages_that_stay_as_they_are_are_not_named(self, project):
        project.write("README.md", "It has <!-- prereg: study.refuted -->0<!-- /prereg --> misses.\n")
        project.commit("Quote another")
        with_another(project)

        assert "cite" not in project.done("lock")
