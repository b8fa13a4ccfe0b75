"""Ways round the gate that an author could try, beyond what its codes name: each is stopped, or without effect."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from audited_study import CLAIM, LINE
from gated_study import EASIER, LOCK, MORE_ROWS, SLOW_ROWS, STRICTER, SUCCESSOR, TOML

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gated_study import PullRequest

    Against = Callable[[str], PullRequest]

WEAKENED = [("PR209", CLAIM, "error", LINE), ("PR202", CLAIM, "review", LINE)]


def codes(project: PullRequest, *arguments: str) -> set[tuple[str, str]]:
    """Code and level of what the gate fails for, whoever has to approve the lock."""
    gated = project.gate("--acknowledge", "lock", *arguments)
    assert gated.exit == (1 if gated.open else 0)
    return {(one[0], one[2]) for one in gated.open}


@pytest.fixture
def weakened(against: Against) -> PullRequest:
    """What the base recorded is made easier."""
    project = against("recorded")
    project.amend(*EASIER)
    return project


# By what is committed


def test_amending_twice_does_not_make_the_first_one_innocent(against: Against):
    project = against("recorded")
    project.amend(*EASIER)
    project.amend("<= 2.5 s", "<= 2.4 s", "a bit stricter, see")
    assert ("PR209", "error") in codes(project)


def test_what_is_taken_back_is_no_error_any_more(against: Against):
    project = against("recorded")
    project.amend(*EASIER)
    project.amend(*EASIER[::-1], "we had no right to")
    assert codes(project) == set()


def test_a_revert_that_takes_the_amendment_along_is_told(weakened: PullRequest):
    """And what is made again after it is as much of an error."""
    weakened.git("revert", "--no-edit", "HEAD")
    assert ("PR202", "error") in codes(weakened)
    weakened.git("revert", "--no-edit", "HEAD")
    assert ("PR209", "error") in codes(weakened)


def test_an_id_that_is_changed_is_another_prediction_and_the_first_one_gone(against: Against):
    project = against("recorded")
    for name in (TOML, LOCK):
        project.edit(name, CLAIM, "under-two")
    project.keep("A better name", TOML, LOCK)
    assert ("PR203", "error") in codes(project)


def test_a_merge_that_changes_what_neither_side_had_is_told(against: Against):
    project = against("recorded")
    project.go_on()
    project.git("switch", "--quiet", "--create", "side", "main")
    project.go_on("side.txt")
    project.git("switch", "--quiet", "change")
    project.git("merge", "--quiet", "--no-commit", "--no-ff", "side")
    project.edit(LOCK, '"supported"', '"refuted"')
    project.git("add", LOCK)
    project.git("commit", "--quiet", "--message", "Merge side")
    assert {("PR205", "review"), ("PR211", "error")} <= codes(project)


def test_a_merge_of_the_base_that_drops_what_the_base_has_is_told(against: Against):
    project = against("registered")
    project.go_on()
    project.git("switch", "--quiet", "main")
    project.take_in()
    project.git("switch", "--quiet", "change")
    project.git("merge", "--quiet", "--strategy=ours", "--message", "Merge main", "main")
    assert codes(project) == {("PR207", "error")}


def test_evidence_that_refutes_is_not_left_behind_by_a_merge_that_takes_none_of_it(against: Against):
    project = against("registered")
    project.take_more(SLOW_ROWS)
    project.git("branch", "--quiet", "first-try")
    project.git("reset", "--quiet", "--hard", "main")
    project.take_in()
    project.git("merge", "--quiet", "--strategy=ours", "--message", "Tidy", "first-try")
    assert ("PR207", "error") in codes(project)


def test_evidence_from_before_a_registration_is_not_after_it_by_a_merge_of_the_base(against: Against):
    """The registration is at the base, and the evidence was committed on a branch that had none."""
    project = against("registered")
    project.measure()
    project.git("switch", "--quiet", "--force-create", "change", "main~1")
    project.keep("Results", "experiments")
    project.git("merge", "--quiet", "--no-edit", "main")
    gated = project.gate("--acknowledge", "lock")
    assert gated.prediction()["is_at_base"] is True
    assert (gated.grave, gated.exit) == ([("PR212", CLAIM, "error", LINE)], 1)
    assert gated.only("PR212")["message"].startswith(f'"{CLAIM}" is after-evidence: ')


def test_a_second_lock_with_another_wording_does_not_choose_by_the_data(against: Against):
    project = against("begun")
    project.lock()
    first = (project.path / LOCK).read_text(encoding="utf-8")
    project.edit(TOML, *EASIER)
    (project.path / LOCK).unlink()
    project.lock()
    project.write("assets/b.lock", (project.path / LOCK).read_text(encoding="utf-8"))
    project.edit(TOML, *EASIER[::-1])
    project.write(LOCK, first)
    project.keep("Both", TOML, LOCK, "assets")
    project.take_in()
    assert ("PR202", "review") in codes(project)


def test_a_lock_that_is_begun_anew_elsewhere_is_the_same_one(against: Against):
    """The study is moved, and its lock with the verdict is not."""
    project = against("recorded")
    project.git("rm", "--quiet", LOCK)
    (project.path / "moved").mkdir()
    project.git("mv", TOML, f"moved/{TOML}")
    project.edit(f"moved/{TOML}", *EASIER)
    project.done("lock", "--study", f"moved/{TOML}")
    project.keep("Move", "moved")
    found = codes(project, "--study", f"moved/{TOML}")
    assert {code for code, level in found if level == "error"} & {"PR202", "PR203", "PR207", "PR209", "PR212"}
    assert codes(project) == found


def test_another_study_in_its_place_does_not_hide_that_it_is_gone(against: Against):
    project = against("recorded")
    project.git("rm", "--quiet", "-r", TOML, LOCK, "experiments")
    other = '[study]\nid = "other"\nevidence = "measured"\n' + SUCCESSOR
    project.write("predictions/other.toml", other)
    project.done("lock", "--study", "predictions/other.toml")
    project.keep("Begin anew", ".")
    gated = project.gate("--acknowledge", "lock")
    assert ("PR203", "small", "error", None) in gated.open
    assert 'study "small" is gone, and 1 registered prediction with it' in gated.only("PR203")["message"]


def test_nor_that_it_was_put_where_nobody_looks(against: Against):
    project = against("recorded")
    project.amend(*EASIER)
    (project.path / "attic").mkdir()
    for name in (TOML, LOCK, "experiments"):
        project.git("mv", name, f"attic/{name}")
    project.write(TOML, '[study]\nid = "other"\n' + SUCCESSOR)
    project.lock()
    project.keep("Begin anew", TOML, LOCK, "attic")
    for arguments in ((), ("--study", TOML)):
        gated = project.gate("--acknowledge", "lock", *arguments)
        assert ("PR203", "small", "error", None) in gated.open
    message = next(one["message"] for one in gated.findings if one["code"] == "PR203")
    assert "small" in message
    assert ("PR209", "error") in codes(project, "--study", f"attic/{TOML}")


@pytest.mark.parametrize("how", ["key", "link"])
def test_evidence_that_the_study_no_longer_reads_is_told(against: Against, how: str):
    project = against("measured")
    if how == "key":
        project.edit(TOML, 'id = "small"', 'id = "small"\nevidence = "measured"')
    else:
        project.git("mv", "experiments/evidence", "kept")
        (project.path / "experiments").mkdir(exist_ok=True)
        (project.path / "experiments/evidence").symlink_to("../better")
    project.write("better/.keep", "")
    project.keep("Another folder", ".")
    assert ("PR207", "error") in codes(project)


def test_a_lock_that_is_a_link_is_no_way_to_say_two_things(against: Against):
    project = against("recorded")
    lock = (project.path / LOCK).read_text(encoding="utf-8")
    project.write("store/current.txt", lock.replace('"supported"', '"refuted"'))
    (project.path / LOCK).unlink()
    (project.path / LOCK).symlink_to("store/current.txt")
    project.keep("Keep locks in one place", ".")
    assert {level for _, level in codes(project)} >= {"error"}


def test_a_prediction_file_that_is_a_link_is_looked_at_where_it_leads(against: Against):
    project = against("recorded")
    text = (project.path / TOML).read_text(encoding="utf-8")
    project.write("store/current.toml", text.replace(*EASIER))
    (project.path / TOML).unlink()
    (project.path / TOML).symlink_to("store/current.toml")
    project.keep("Keep them in one place", ".")
    assert {level for _, level in codes(project)} >= {"error"}


def test_a_tombstone_is_not_dug_up(against: Against):
    project = against("recorded")
    lock = (project.path / LOCK).read_text(encoding="utf-8")
    project.withdraw()
    project.merged()
    project.write(LOCK, lock)
    project.keep("It stands after all", LOCK)
    assert ("PR203", "error") in codes(project)


# By what git is told


def test_attributes_and_filters_change_nothing(weakened: PullRequest):
    weakened.git("config", "filter.kind.smudge", "sed s/2.5/2/")
    weakened.git("config", "filter.kind.clean", "cat")
    attributes = (
        "predictions.* export-ignore filter=kind ident\n*.jsonl export-ignore -diff merge=ours eol=crlf\n"
        "*.lock binary working-tree-encoding=UTF-16\n"
    )
    weakened.write(".gitattributes", attributes)
    weakened.git("add", ".gitattributes")
    weakened.git("commit", "--quiet", "--message", "Attributes", ".gitattributes")
    assert weakened.gate().grave == WEAKENED


def test_ignored_files_are_looked_at_if_they_are_committed(weakened: PullRequest):
    weakened.write(".gitignore", "*\n")
    weakened.git("add", "--force", ".gitignore")
    weakened.git("commit", "--quiet", "--message", "Ignore")
    assert weakened.gate().grave == WEAKENED


def test_what_git_is_told_by_the_environment_is_not_heard(
    weakened: PullRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    decoy = tmp_path / "decoy"
    subprocess.run(
        ["git", "clone", "--quiet", "--branch", "main", str(weakened.path), str(decoy)], check=True
    )
    for name, value in (
        ("GIT_DIR", str(decoy / ".git")),
        ("GIT_WORK_TREE", str(decoy)),
        ("GIT_COMMON_DIR", str(decoy / ".git")),
        ("GIT_INDEX_FILE", str(tmp_path / "index")),
        ("GIT_NAMESPACE", "elsewhere"),
        ("GIT_SHALLOW_FILE", str(tmp_path / "shallow")),
        ("GIT_LITERAL_PATHSPECS", "1"),
        ("GIT_REPLACE_REF_BASE", "refs/heads/"),
        ("GIT_EXTERNAL_DIFF", "true"),
        ("GIT_DIFF_OPTS", "--unified=0"),
    ):
        monkeypatch.setenv(name, value)
    result = weakened.prereg("gate", "--base", "main", "--format", "json")
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    assert result.stdout == weakened.prereg("gate", "--base", "main", "--format", "json").stdout
    assert weakened.gate().grave == WEAKENED


def test_configuration_of_the_clone_changes_nothing(weakened: PullRequest):
    for name, value in (
        ("diff.renames", "copies"),
        ("diff.noprefix", "true"),
        ("core.quotePath", "true"),
        ("core.autocrlf", "true"),
        ("core.symlinks", "false"),
        ("log.follow", "true"),
        ("diff.ignoreSubmodules", "all"),
        ("core.hooksPath", "/nowhere"),
        ("core.fsmonitor", "touch fsmonitor-ran"),
        ("color.ui", "always"),
    ):
        weakened.git("config", name, value)
    assert weakened.gate().grave == WEAKENED
    assert not (weakened.path / "fsmonitor-ran").exists()


def test_replaced_objects_and_grafts_change_nothing(weakened: PullRequest):
    head, main = weakened.git("rev-parse", "change"), weakened.git("rev-parse", "main")
    weakened.git("replace", head, main)
    assert weakened.gate("--head", head).grave == WEAKENED
    weakened.git("replace", "--delete", head)
    tampered = weakened.git("rev-parse", f"main:{LOCK}")
    weakened.git("replace", weakened.git("rev-parse", f"change:{LOCK}"), tampered)
    assert weakened.gate().grave == WEAKENED
    weakened.git("replace", "--delete", weakened.git("rev-parse", f"change:{LOCK}"))
    weakened.write(".git/info/grafts", f"{head}\n")
    assert weakened.gate().grave == WEAKENED


@pytest.mark.parametrize("kind", ["heads", "remotes"])
def test_a_tag_that_is_called_like_the_base_is_not_taken_for_it(weakened: PullRequest, kind: str):
    """Git takes the tag. Whoever may push tags could make the base what the pull request is."""
    name = "main" if kind == "heads" else "origin/main"
    weakened.git("update-ref", f"refs/{kind}/{name}", "main")
    weakened.git("update-ref", f"refs/tags/{name}", "change")
    gated = weakened.gate(base=name)
    assert (gated.said, gated.exit) == ([("PR212", "", "error", None)], 4)
    assert gated.only("PR212")["message"].startswith(f'"{name}" is a branch and a tag, of different commits')
    assert weakened.gate(base=f"refs/{kind}/{name}").grave == WEAKENED
    weakened.git("update-ref", f"refs/tags/{name}", "refs/heads/main")
    assert weakened.gate(base=name).grave == WEAKENED


def test_a_tag_that_was_planted_before_does_not_hold_what_it_has_not(against: Against):
    """It has the name of a registration, and its commit has none."""
    project = against("begun")
    project.lock()
    digest = project.digest()[7:15]
    project.measure()
    project.git("tag", f"prereg/small/{digest}", "main")
    project.keep("Everything", TOML, LOCK, "experiments")
    assert codes(project) == {("PR204", "error")}


def test_a_tag_does_not_make_two_pull_requests_of_one(against: Against):
    project = against("begun")
    project.edit(TOML, 'id = "small"', 'id = "small"\nregistration = "separate"')
    project.register()
    project.done("lock", "--tag")
    project.take_in()
    assert codes(project) == {("PR204", "error")}


# By what it is told


@pytest.mark.parametrize("stage", ["registered", "recorded"])
def test_code_of_the_pull_request_is_not_run(against: Against, stage: str):
    project = against(stage)
    ran = f"open({str(project.path / 'ran')!r}, 'w')\n"
    for name in ("experiments/work.py", "conftest.py", "sitecustomize.py", "tomllib.py", "pytest_prereg.py"):
        project.write(name, ran)
    project.keep("Code", ".")
    command = [sys.executable, "-P", "-m", "pytest_prereg", "gate", "--base", "main"]
    done = subprocess.run(command, cwd=project.path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (project.path / "ran").exists()


def test_an_honest_pull_request_is_none_of_all_that(against: Against):
    """Two branches, of which one is merged into the other, and the base into both."""
    project = against("registered")
    project.take_in()
    project.git("switch", "--quiet", "main")
    project.go_on("on-main.txt")
    project.git("switch", "--quiet", "--create", "side", "main")
    project.add(SUCCESSOR)
    project.register("Another")
    project.git("switch", "--quiet", "change")
    project.git("merge", "--quiet", "--no-edit", "main")
    project.git("merge", "--quiet", "--no-edit", "side")
    gated = project.gate()
    assert (gated.grave, gated.exit) == ([], 0)


def test_a_stricter_one_beside_a_second_series_is_none_either(against: Against):
    project = against("registered")
    project.owned()
    project.amend(*STRICTER)
    project.merged()
    project.take_in()
    project.take_more(MORE_ROWS)
    project.record()
    gated = project.gate()
    assert (gated.grave, gated.exit) == ([], 0)
