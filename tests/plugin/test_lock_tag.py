"""``pytest-prereg lock --tag``: what keeps the order of a branch that will be squashed."""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from small_study import Project


@pytest.fixture
def project(at_stage: Callable[[str], Project]) -> Project:
    """Registered and committed."""
    return at_stage("registered")


def name_of(project: Project) -> str:
    """The tag's name, from the lock alone."""
    lock = tomllib.loads((project.path / "predictions.lock").read_text(encoding="utf-8"))
    pairs = sorted([name, entry["digest"]] for name, entry in lock["predictions"].items())
    data = json.dumps(pairs, separators=(",", ":")).encode()
    return f"prereg/small/{hashlib.sha256(data).hexdigest()[:8]}"


def tags(project: Project) -> dict[str, str]:
    listed = project.git("for-each-ref", "--format=%(refname:short) %(objecttype) %(objectname)", "refs/tags")
    return {line.split()[0]: " ".join(line.split()[1:]) for line in listed.splitlines()}


def test_a_lightweight_tag_at_head_and_the_command_that_shares_it(project: Project):
    head = project.git("rev-parse", "HEAD")
    name = name_of(project)
    assert project.done("lock", "--tag") == (f"tagged  {name} at {head[:8]}\nnext:  git push origin {name}\n")
    assert tags(project) == {name: f"commit {head}"}


def test_it_needs_nobodys_name_and_no_key(project: Project, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    project.git("config", "--unset", "user.name")
    project.git("config", "--unset", "user.email")
    project.git("config", "user.useConfigOnly", "true")
    project.git("config", "tag.gpgSign", "true")
    project.git("config", "core.logAllRefUpdates", "always")
    assert "tagged" in project.done("lock", "--tag")


def test_again_it_says_so(project: Project):
    project.done("lock", "--tag")
    before = tags(project)
    assert "already tagged" in project.done("lock", "--tag")
    assert tags(project) == before


def test_the_earlier_of_two_equal_ones_is_the_better_witness(project: Project):
    first = project.git("rev-parse", "HEAD")
    project.done("lock", "--tag")
    project.write("other.txt", "x")
    project.commit("Something else")
    assert f"already tagged  {name_of(project)} at {first[:8]}" in project.done("lock", "--tag")
    assert tags(project) == {name_of(project): f"commit {first}"}


def test_a_verdict_that_is_recorded_changes_no_name(at_stage: Callable[[str], Project]):
    recorded = at_stage("recorded")
    registered = recorded.git("rev-parse", "HEAD~2")
    recorded.git("tag", name_of(recorded), registered)
    assert f"already tagged  {name_of(recorded)} at {registered[:8]}" in recorded.done("lock", "--tag")


def test_another_registration_has_another_name(project: Project):
    project.done("lock", "--tag")
    before = name_of(project)
    project.edit("predictions.toml", "[0.999, 1.001] s", "[0.998, 1.001] s")
    project.done("amend", "near-one", "--reason", "a millisecond more")
    project.commit("Amend")
    assert "tagged" in project.done("lock", "--tag")
    assert before != name_of(project)
    assert set(tags(project)) == {before, name_of(project)}


def refused(project: Project) -> str:
    """What it says that tags nothing."""
    before = tags(project)
    result = project.prereg("lock", "--tag")
    assert result.exit_code == 1
    assert tags(project) == before
    assert "PR107" in result.output
    return result.output


def test_nothing_is_tagged_before_all_is_registered(at_stage: Callable[[str], Project]):
    said = refused(at_stage("written"))
    assert 'PR102: "below-two" is not registered' in said
    assert "pytest-prereg lock && git add predictions.* && git commit" in said


def test_nothing_is_tagged_before_the_first_commit(at_stage: Callable[[str], Project]):
    project = at_stage("written")
    project.done("lock")
    said = refused(project)
    assert "nothing is committed yet" in said
    assert "git add predictions.* && git commit -m" in said


def test_nothing_is_tagged_that_head_does_not_have(project: Project):
    project.edit("predictions.toml", "[0.999, 1.001] s", "[0.998, 1.001] s")
    assert "PR104" in refused(project)
    project.done("amend", "near-one", "--reason", "a millisecond more")
    said = refused(project)
    assert "predictions.lock is not what HEAD" in said
    assert "git add predictions.* && git commit -m" in said


@pytest.mark.parametrize("target", ["HEAD:predictions.toml", "HEAD~1"])
def test_a_name_that_is_taken_is_no_witness(project: Project, target: str):
    project.git("commit", "--quiet", "--allow-empty", "--message", "x")
    if target == "HEAD~1":
        project.git("switch", "--quiet", "--orphan", "other")
        project.git("commit", "--quiet", "--allow-empty", "--message", "without a lock")
        other = project.git("rev-parse", "HEAD")
        project.git("switch", "--quiet", "main")
        target = other
    project.git("tag", name_of(project), target)
    assert f"git tag --delete {name_of(project)}" in refused(project)


def test_a_tag_in_the_way_is_told_in_gits_words(project: Project):
    project.git("tag", "prereg/small")
    assert "can't be made: git update-ref failed" in refused(project)


@pytest.mark.parametrize("other", [("--check",), ("--anchor", "http://127.0.0.1:1")])
def test_it_is_a_command_of_its_own(project: Project, other: tuple[str, ...]):
    assert project.prereg("lock", "--tag", *other).exit_code == 2


def test_from_another_folder_the_command_goes_there(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    from click.testing import CliRunner

    from pytest_prereg import cli

    arguments = ("lock", "--tag", "--study", str(project.path / "predictions.toml"))
    result = CliRunner().invoke(cli.main, arguments)
    assert f"git -C ../{project.path.name} push origin {name_of(project)}" in result.output


def told(project: Project) -> str:
    """What an audit prints, without line breaks."""
    return " ".join(project.prereg("audit").output.split())


def take_in_everything(project: Project) -> None:
    for name, first in {"rows": "1.01", "elsewhere": "1.31"}.items():
        project.edit("rows.csv", "1.01" if name == "elsewhere" else first, first)
        project.done("import", "rows.csv", "--experiment", name)


class TestACommitThatHasTheEvidence:
    """It can show nothing: a tag on it would only take the name."""

    @pytest.fixture
    def squashed(self, project: Project) -> Project:
        """Everything is measured, and registration and evidence are one commit; a branch has the first."""
        project.git("branch", "before")
        take_in_everything(project)
        project.commit("Evidence")
        project.git("reset", "--quiet", "--soft", "HEAD~1")
        project.git("commit", "--quiet", "--amend", "--message", "Squashed")
        return project

    def test_it_is_refused_and_the_commit_that_can_is_named(self, squashed: Project):
        before = squashed.git("rev-parse", "before")[:8]
        advice = f"git switch --detach {before} && pytest-prereg lock --tag && git switch -"
        said = refused(squashed)
        assert "has the evidence of all that it registers, so a tag on it shows nothing" in said
        assert advice in said
        assert f"Commit {before} has it without the evidence: {advice}" in told(squashed)

    def test_what_is_advised_makes_it_witnessed(self, squashed: Project):
        squashed.git("switch", "--quiet", "--detach", "before")
        squashed.done("lock", "--tag")
        squashed.git("switch", "--quiet", "main")
        assert "PR212" not in told(squashed)

    def test_without_such_a_commit_it_says_so(self, squashed: Project):
        squashed.git("branch", "--quiet", "--delete", "--force", "before")
        squashed.git("reflog", "expire", "--expire=now", "--all")
        squashed.git("gc", "--quiet", "--prune=now")
        assert "No commit that is known here has the registration without" in refused(squashed)
        said = told(squashed)
        assert "If a reflog, or another clone, has the commit that registered it alone, tag that:" in said

    def test_a_tag_that_took_the_name_there_is_replaced_in_two_commands(self, squashed: Project):
        name = name_of(squashed)
        squashed.git("tag", name)
        squashed.git("switch", "--quiet", "--detach", "before")
        said = refused(squashed)
        replacing = f"git tag --delete {name} && pytest-prereg lock --tag && git push --force origin {name}"
        assert replacing in said
        squashed.git("tag", "--delete", name)
        squashed.done("lock", "--tag")

    def test_it_is_told_for_which_it_shows_something_where_others_are_not_measured(self, project: Project):
        project.done("import", "rows.csv", "--experiment", "rows")
        project.commit("Evidence")
        said = " ".join(project.done("lock", "--tag").split())
        assert 'it shows what came first for "not-there"; of "above-two", "below-two" and "near-one"' in said

    def test_what_is_not_committed_yet_is_not_there(self, project: Project):
        take_in_everything(project)
        assert "there is evidence" not in project.done("lock", "--tag")
