"""Was it registered before its evidence? An audit of real histories, each beside an honest one."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from audited_study import LINE, ROWS, STUDY, Small, new_study
from small_study import new_repository

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

REGISTERED = ("registered", "confirmatory")
AFTER = ("after-evidence", "exploratory")
ORDER_ERROR = [("PR212", "error", LINE)]


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Small]:
    """``study()``: a new study in a repository with one commit, and the current folder is in it."""

    def make(folder: str = "", text: str = STUDY) -> Small:
        project = new_study(tmp_path / "study", folder, text)
        monkeypatch.chdir(project.path)
        return project

    return make


@pytest.fixture
def honest(study: Callable[..., Small]) -> Small:
    """Registered, then measured, in two commits."""
    project = study()
    project.register()
    project.take_in()
    return project


def evidence_first(project: Small) -> None:
    """The evidence in one commit, then what it is evidence for."""
    project.lock()
    project.take_in()
    project.keep("Register", "predictions.toml", "predictions.lock")


def test_registered_then_measured(honest: Small):
    audit = honest.audit()
    assert audit.order() == REGISTERED
    assert (audit.told, audit.exit) == ([], 0)
    (notice,) = audit.content["findings"]
    assert (notice["code"], notice["level"], notice["id"], notice["line"]) == (
        "PR201",
        "notice",
        "below-two",
        LINE,
    )


def test_both_in_one_commit(study: Callable[..., Small]):
    project = study()
    project.lock()
    project.measure()
    project.keep("Everything")
    audit = project.audit()
    assert audit.order() == ("simultaneous", "exploratory")
    assert (audit.told, audit.exit) == (ORDER_ERROR, 1)


def test_evidence_before_its_registration(study: Callable[..., Small]):
    project = study()
    evidence_first(project)
    audit = project.audit()
    assert audit.order() == AFTER
    assert (audit.told, audit.exit) == (ORDER_ERROR, 1)


@pytest.mark.parametrize("is_honest", [True, False])
def test_dates_are_never_asked(
    study: Callable[..., Small], monkeypatch: pytest.MonkeyPatch, *, is_honest: bool
):
    """What comes second claims to be from long before."""
    project = study()
    if is_honest:
        project.register()
    else:
        project.lock()
        project.take_in()
    for name in ("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"):
        monkeypatch.setenv(name, "2001-01-01T00:00:00Z")
    if is_honest:
        project.take_in()
    else:
        project.keep("Register", "predictions.toml", "predictions.lock")
    audit = project.audit()
    assert audit.order() == (REGISTERED if is_honest else AFTER)
    assert audit.told == ([] if is_honest else ORDER_ERROR)


def test_evidence_that_is_not_committed_is_compared_with_head(study: Callable[..., Small]):
    project = study()
    project.register()
    project.measure()
    audit = project.audit()
    assert audit.order() == REGISTERED
    assert audit.told == []


def test_neither_evidence_nor_registration_committed(study: Callable[..., Small]):
    project = study()
    project.lock()
    project.measure()
    audit = project.audit()
    assert audit.order() == ("unregistered", "exploratory")
    assert (audit.told, audit.exit) == (ORDER_ERROR, 1)


def test_a_prediction_that_is_not_committed_yet(study: Callable[..., Small]):
    project = study()
    project.lock()
    audit = project.audit()
    assert audit.order() == ("unregistered", "exploratory")
    assert (audit.told, audit.exit) == ([("PR102", "notice", LINE)], 0)


# Squashed, rebased, merged


def on_a_branch(project: Small, *, tagged: bool = False) -> None:
    """Registers and measures on branch ``work``, in two commits; then HEAD is main again."""
    project.git("switch", "--quiet", "--create", "work")
    project.register()
    if tagged:
        project.done("lock", "--tag")
    project.take_in()
    project.git("switch", "--quiet", "main")


@pytest.mark.parametrize("tagged", [False, True])
@pytest.mark.parametrize("branch_is_kept", [False, True])
def test_a_branch_with_both_is_squashed(study: Callable[..., Small], *, tagged: bool, branch_is_kept: bool):
    project = study()
    on_a_branch(project, tagged=tagged)
    project.git("merge", "--quiet", "--squash", "work")
    project.keep("Squashed")
    if not branch_is_kept:
        project.git("branch", "--quiet", "-D", "work")
    audit = project.audit()
    assert audit.order() == (("witnessed", "confirmatory") if tagged else ("simultaneous", "exploratory"))
    assert audit.told == ([] if tagged else ORDER_ERROR)


def test_a_tag_that_was_not_fetched_is_no_witness(study: Callable[..., Small], tmp_path: Path):
    project = study()
    on_a_branch(project, tagged=True)
    project.git("merge", "--quiet", "--squash", "work")
    project.keep("Squashed")
    with_tags = project.cloned(tmp_path / "with").audit()
    without = project.cloned(tmp_path / "without", "--no-tags", "--single-branch", "--branch", "main").audit()
    assert (with_tags.order()[0], without.order()[0]) == ("witnessed", "simultaneous")
    assert (with_tags.told, without.told) == ([], ORDER_ERROR)


def test_two_squashed_branches(study: Callable[..., Small]):
    project = study()
    for name, step in {"one": project.register, "two": project.take_in}.items():
        project.git("switch", "--quiet", "--create", name)
        step()
        project.git("switch", "--quiet", "main")
        project.git("merge", "--quiet", "--squash", name)
        project.keep("Squashed")
        project.git("branch", "--quiet", "-D", name)
    audit = project.audit()
    assert audit.order() == REGISTERED
    assert audit.told == []


@pytest.mark.parametrize("is_honest", [True, False])
def test_rebased_and_fast_forwarded(study: Callable[..., Small], tmp_path: Path, *, is_honest: bool):
    project = study()
    project.git("switch", "--quiet", "--create", "work")
    if is_honest:
        project.register()
        project.take_in()
    else:
        evidence_first(project)
    project.git("switch", "--quiet", "main")
    project.go_on()
    project.git("rebase", "--quiet", "main", "work")
    project.git("switch", "--quiet", "main")
    project.git("merge", "--quiet", "--ff-only", "work")
    for audit in (project.audit(), project.cloned(tmp_path / "clone").audit()):
        assert audit.order() == (REGISTERED if is_honest else AFTER)
        assert audit.told == ([] if is_honest else ORDER_ERROR)


@pytest.mark.parametrize("is_honest", [True, False])
def test_parallel_branches_merged(study: Callable[..., Small], *, is_honest: bool):
    """The registration on one side, the evidence on the other: that is no order."""
    project = study()
    if is_honest:
        project.register()
    else:
        project.lock()
    project.measure()
    project.git("switch", "--quiet", "--create", "evidence")
    project.keep("Evidence", "experiments")
    project.git("switch", "--quiet", "main")
    if is_honest:
        project.go_on()
    else:
        project.keep("Register", "predictions.toml", "predictions.lock")
    project.git("merge", "--quiet", "--no-edit", "evidence")
    audit = project.audit()
    assert audit.order() == (REGISTERED if is_honest else AFTER)
    assert audit.told == ([] if is_honest else ORDER_ERROR)


@pytest.mark.parametrize("both_sides", [True, False])
def test_evidence_in_a_merge_commit(study: Callable[..., Small], *, both_sides: bool):
    project = study()
    if both_sides:
        project.register()
    project.git("switch", "--quiet", "--create", "side")
    if both_sides:
        project.go_on("side.txt")
    else:
        project.register()
    project.measure()
    project.git("switch", "--quiet", "main")
    project.go_on()
    project.git("merge", "--quiet", "--no-commit", "--no-ff", "side")
    project.keep("Merge, and evidence with it", ".")
    audit = project.audit()
    grade = "registered" if both_sides else "registered-one-side"
    assert audit.order() == (grade, "confirmatory")
    assert audit.told == []


@pytest.mark.parametrize("tagged", [False, True])
@pytest.mark.parametrize("is_honest", [True, False])
def test_cherry_picked_from_a_scratch_branch(study: Callable[..., Small], *, tagged: bool, is_honest: bool):
    """On the scratch branch the evidence came without its registration; it was picked once that was there."""
    project = study()
    if is_honest:
        project.register()
    else:
        project.lock()
    project.git("switch", "--quiet", "--create", "scratch")
    picked = project.take_in()
    project.git("switch", "--quiet", "main")
    if not is_honest:
        project.keep("Register", "predictions.toml", "predictions.lock")
    else:
        project.go_on()
    if tagged:
        project.done("lock", "--tag")
    project.git("cherry-pick", "--allow-empty", picked)
    audit = project.audit()
    assert audit.order() == REGISTERED
    assert audit.told == ([] if is_honest else [("PR212", "review", LINE)])
    assert audit.exit == (0 if is_honest else 1)
    if not is_honest:
        assert "scratch" in audit.message("PR212")


def test_a_scratch_branch_that_is_gone_contests_nothing(study: Callable[..., Small]):
    """Nobody can see any more that there was one: this is why an audit lists it as unprovable."""
    project = study()
    project.lock()
    project.git("switch", "--quiet", "--create", "scratch")
    picked = project.take_in()
    project.git("switch", "--quiet", "main")
    project.keep("Register", "predictions.toml", "predictions.lock")
    project.git("cherry-pick", picked)
    project.git("branch", "--quiet", "-D", "scratch")
    audit = project.audit()
    assert audit.told == []
    assert any(
        "elsewhere" in sentence or "never committed" in sentence for sentence in audit.content["unproven"]
    )


# Renamed, reformatted, amended


@pytest.mark.parametrize("is_honest", [True, False])
def test_renamed_files(study: Callable[..., Small], *, is_honest: bool):
    project = study()
    if is_honest:
        project.register()
        project.take_in()
    else:
        evidence_first(project)
    project.git("mv", "predictions.toml", "speed.toml")
    project.git("mv", "predictions.lock", "speed.lock")
    project.edit("speed.toml", 'id = "small"', 'id = "small"\nevidence = "seen"')
    project.git("mv", "experiments/evidence", "seen")
    project.keep("Rename everything")
    audit = project.audit("--study", "speed.toml")
    line = LINE + 1
    assert audit.order() == (REGISTERED if is_honest else AFTER)
    assert audit.told == ([] if is_honest else [("PR212", "error", line)])


AMENDED = STUDY.replace("<= 2 s", "<= 2.5 s")


def test_amended_before_the_data(study: Callable[..., Small]):
    project = study()
    project.register()
    project.write("predictions.toml", AMENDED)
    project.done("amend", "below-two", "--reason", "two and a half are meant")
    project.keep("Amend")
    project.take_in()
    audit = project.audit()
    assert audit.order() == REGISTERED
    assert sorted(audit.told) == [("PR202", "notice", LINE), ("PR209", "review", LINE)]
    (weakened,) = (one for one in audit.findings if one["code"] == "PR209")
    assert "two and a half are meant" in weakened["acknowledged"]
    assert audit.exit == 0


def test_a_threshold_moved_after_the_data(honest: Small):
    honest.write("predictions.toml", AMENDED)
    honest.done("amend", "below-two", "--reason", "two and a half are meant")
    honest.keep("Amend")
    audit = honest.audit()
    assert audit.order() == ("mismatch", "exploratory")
    assert sorted(set(audit.told)) == [("PR202", "review", LINE), ("PR209", "error", LINE)]
    assert audit.exit == 1


@pytest.mark.parametrize("how", ["gone from disk", "edited on disk", "gone from the commit"])
def test_a_threshold_moved_after_data_that_are_no_longer_there(honest: Small, how: str):
    before = honest.digest()
    honest.edit("predictions.toml", '"<= 2 s"', '"<= 2.5 s"')
    honest.done("amend", "below-two", "--reason", "a typo")
    honest.keep("Amend")
    there = honest.audit()
    (file,) = honest.evidence()
    text = file.read_text()
    file.unlink()
    if how == "edited on disk":
        file.write_text(text.replace(before, honest.digest()))
    elif how == "gone from the commit":
        honest.keep("Tidy up")

    audit = honest.audit()

    assert audit.order() == there.order() == ("mismatch", "exploratory")
    assert {one[:2] for one in audit.told} == {*(one[:2] for one in there.told), ("PR207", "error")}
    assert ("PR209", "error") in {one[:2] for one in audit.told}
    assert "after the data" in audit.message("PR209")


def test_a_threshold_moved_after_the_data_and_moved_back(honest: Small):
    for text in (AMENDED, STUDY):
        honest.write("predictions.toml", text)
        honest.done("amend", "below-two", "--reason", "on second thoughts")
        honest.keep("Amend")
    audit = honest.audit()
    assert audit.order() == REGISTERED
    assert sorted(audit.told) == [("PR202", "review", LINE)] * 2 + [("PR209", "review", LINE)]
    assert "after the data" in audit.message("PR209")


def test_a_threshold_moved_in_the_text_alone(honest: Small):
    honest.write("predictions.toml", AMENDED)
    honest.keep("Move it")
    audit = honest.audit()
    assert audit.order() == ("mismatch", "exploratory")
    assert ("PR212", "error", LINE) in audit.told


def test_a_threshold_moved_in_text_and_lock_and_both_moved_back(honest: Small):
    """Without ``amend``: the lock says nothing of it, and its history does."""
    before = (honest.path / "predictions.lock").read_text()
    honest.write("predictions.toml", AMENDED)
    (honest.path / "predictions.lock").unlink()
    honest.lock()
    honest.keep("Move both")
    honest.write("predictions.toml", STUDY)
    honest.write("predictions.lock", before)
    honest.keep("Move both back")
    audit = honest.audit()
    assert audit.order() == REGISTERED
    assert ("PR202", "error", LINE) in audit.told
    assert audit.exit == 1


REFORMATTED = """\
# The same study, written otherwise.
[predictions.below-two]
falsifier  = '>= 3.0 s'
predicts   = "<=   2.0 s"
quantity   = "wall"
experiment = "rows"
claim      = "It takes less than two seconds."
tags       = ["quick"]

[study]
id    = "small"
title = "Small"

[experiments]
rows = { repeats = 5, metrics.wall = "s" }
"""


def test_reformatted(honest: Small):
    honest.write("predictions.toml", REFORMATTED)
    honest.keep("Reformat")
    audit = honest.audit()
    assert audit.order() == REGISTERED
    assert audit.told == []


# Evidence that goes, comes and changes


@pytest.mark.parametrize("is_honest", [True, False])
def test_evidence_deleted_and_added_again(study: Callable[..., Small], *, is_honest: bool):
    project = study()
    if is_honest:
        project.register()
    else:
        project.lock()
    project.take_in()
    (file,) = project.evidence()
    data = file.read_bytes()
    file.unlink()
    project.keep("Delete", "experiments")
    if not is_honest:
        project.keep("Register", "predictions.toml", "predictions.lock")
    else:
        project.go_on()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    project.keep("Evidence, again", "experiments")
    audit = project.audit()
    assert audit.order() == (REGISTERED if is_honest else AFTER)
    assert audit.told == ([] if is_honest else ORDER_ERROR)


def test_one_byte_of_old_evidence_rewritten_and_committed(honest: Small):
    honest.record()
    (file,) = honest.evidence()
    data = file.read_bytes()
    assert data.count(b"1.12") == 1
    file.write_bytes(data.replace(b"1.12", b"1.11"))
    honest.keep("Typo")
    audit = honest.audit()
    assert {("PR207", "error")} <= {(code, level) for code, level, _ in audit.told}
    assert audit.exit == 1


def test_evidence_that_has_grown_is_not_rewritten(study: Callable[..., Small]):
    project = study()
    project.register()
    file = project.measure()
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:4]))
    project.keep("Half of it", "experiments")
    file.write_bytes(b"".join(lines))
    project.keep("All of it", "experiments")
    audit = project.audit()
    assert audit.order() == REGISTERED
    assert audit.told == []


# Clones and other repositories


def test_a_clone_of_one_commit_can_not_tell(honest: Small, tmp_path: Path):
    audit = honest.cloned(tmp_path / "clone", "--depth=1").audit()
    assert audit.order() == ("unverifiable", "exploratory")
    assert (audit.told, audit.exit) == (ORDER_ERROR, 4)
    assert "fetch-depth: 0" in audit.message("PR212")


def test_a_clone_of_two_commits_can_tell(honest: Small, tmp_path: Path):
    audit = honest.cloned(tmp_path / "clone", "--depth=2").audit()
    assert audit.order() == REGISTERED
    assert (audit.told, audit.exit) == ([], 0)


@pytest.mark.parametrize("is_honest", [True, False])
def test_a_clone_without_blobs(study: Callable[..., Small], tmp_path: Path, *, is_honest: bool):
    project = study()
    if is_honest:
        project.register()
        project.take_in()
    else:
        evidence_first(project)
    project.git("config", "uploadpack.allowFilter", "true")
    audit = project.cloned(tmp_path / "clone", "--filter=blob:none").audit()
    assert audit.order() == (REGISTERED if is_honest else AFTER)
    assert audit.told == ([] if is_honest else ORDER_ERROR)


def test_replaced_objects_are_not_believed(study: Callable[..., Small]):
    """``git replace`` shows everybody a history in which the registration came first."""
    project = study()
    begun = project.git("rev-parse", "HEAD")
    evidence_first(project)
    evidence = project.git("rev-parse", "HEAD~1")
    project.git("switch", "--quiet", "--detach", begun)
    project.git("checkout", "--quiet", "main", "--", "predictions.toml", "predictions.lock")
    made_up = project.keep("Register", "predictions.toml", "predictions.lock")
    project.git("replace", "--graft", evidence, made_up)
    project.git("switch", "--quiet", "main")
    assert project.git("log", "--format=%s").splitlines() == ["Register", "Evidence", "Register", "Begin"]
    audit = project.audit()
    assert audit.order() == AFTER
    assert audit.told == ORDER_ERROR


@pytest.mark.parametrize("is_honest", [True, False])
def test_in_a_submodule(study: Callable[..., Small], tmp_path: Path, *, is_honest: bool):
    project = study()
    if is_honest:
        project.register()
        project.take_in()
    else:
        evidence_first(project)
    outer = new_repository(tmp_path / "outer")
    outer.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(project.top), "inner")
    outer.git("commit", "--quiet", "--message", "Add a submodule")
    inner = Small(outer.path / "inner", outer.path / "inner")
    audit = inner.audit()
    assert audit.order() == (REGISTERED if is_honest else AFTER)
    assert audit.told == ([] if is_honest else ORDER_ERROR)


@pytest.mark.parametrize("is_honest", [True, False])
def test_in_another_worktree(study: Callable[..., Small], tmp_path: Path, *, is_honest: bool):
    project = study()
    if is_honest:
        project.register()
        project.take_in()
    else:
        evidence_first(project)
    project.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "tree"))
    audit = Small(tmp_path / "tree", tmp_path / "tree").audit()
    assert audit.order() == (REGISTERED if is_honest else AFTER)
    assert audit.told == ([] if is_honest else ORDER_ERROR)


@pytest.mark.parametrize("is_honest", [True, False])
def test_with_a_detached_head(study: Callable[..., Small], *, is_honest: bool):
    project = study()
    if is_honest:
        project.register()
        project.take_in()
    else:
        evidence_first(project)
    project.git("switch", "--quiet", "--detach", "main")
    audit = project.audit()
    assert audit.order() == (REGISTERED if is_honest else AFTER)
    assert audit.told == ([] if is_honest else ORDER_ERROR)


def test_without_any_commit(study: Callable[..., Small]):
    project = study()
    shutil.rmtree(project.top / ".git")
    project.git("init", "--quiet", "--initial-branch=main")
    project.lock()
    audit = project.audit()
    assert audit.order() == ("unregistered", "exploratory")
    assert (audit.told, audit.exit) == ([("PR102", "notice", LINE)], 0)


def test_without_any_repository(study: Callable[..., Small], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    project = study()
    shutil.rmtree(project.top / ".git")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    project.lock()
    project.measure()
    audit = project.audit()
    assert audit.order() == ("unverifiable", "exploratory")
    assert (audit.told, audit.exit) == (ORDER_ERROR, 4)


@pytest.mark.parametrize("is_honest", [True, False])
def test_unrelated_histories_merged(study: Callable[..., Small], *, is_honest: bool):
    """The evidence comes from a history of its own, with its registration in it or without."""
    project = study()
    if is_honest:
        project.register()
    else:
        project.lock()
    project.measure()
    project.git("switch", "--quiet", "--orphan", "elsewhere")
    project.git("checkout", "--quiet", "main", "--", "readme.txt")
    if is_honest:
        project.git("checkout", "--quiet", "main", "--", "predictions.toml", "predictions.lock")
        project.keep("Register elsewhere", "predictions.toml", "predictions.lock")
    project.keep("Evidence elsewhere", "experiments")
    if not is_honest:
        project.git("stash", "--include-untracked")
    project.git("switch", "--quiet", "main")
    if not is_honest:
        project.git("stash", "pop", "--quiet")
        project.keep("Register", "predictions.toml", "predictions.lock")
    project.git("merge", "--quiet", "--no-edit", "--allow-unrelated-histories", "elsewhere")
    audit = project.audit()
    assert audit.order() == (REGISTERED if is_honest else AFTER)
    assert audit.told == ([] if is_honest else ORDER_ERROR)


@pytest.mark.parametrize("folder", ["work/latency", "Läufe 測定/wie es war, 'so'"])
@pytest.mark.parametrize("is_honest", [True, False])
def test_in_a_folder_of_any_name(study: Callable[..., Small], folder: str, *, is_honest: bool):
    project = study(folder)
    if is_honest:
        project.register()
        project.take_in()
    else:
        evidence_first(project)
    audit = project.audit()
    assert audit.order() == (REGISTERED if is_honest else AFTER)
    assert audit.told == ([] if is_honest else ORDER_ERROR)


def test_from_the_root_of_the_repository(study: Callable[..., Small], monkeypatch: pytest.MonkeyPatch):
    project = study("Läufe 測定")
    evidence_first(project)
    monkeypatch.chdir(project.top)
    audit = Small(project.top, project.top).audit("--study", "Läufe 測定/predictions.toml")
    (finding,) = audit.findings
    assert (finding["path"], finding["line"]) == (os.path.join("Läufe 測定", "predictions.toml"), LINE)  # noqa: PTH118


def test_two_studies_with_the_same_prediction_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What another study registered under this id registers nothing here."""
    mine = new_study(tmp_path / "repository", "mine")
    theirs = Small(mine.top / "theirs", mine.top)
    theirs.path.mkdir()
    theirs.write("predictions.toml", STUDY.replace('id = "small"', 'id = "other"'))
    theirs.write("rows.csv", ROWS.replace("1.0", "1.3"))
    monkeypatch.chdir(theirs.path)
    theirs.register("Register theirs")
    theirs.take_in()
    monkeypatch.chdir(mine.path)
    evidence_first(mine)
    audit = mine.audit()
    assert audit.order() == AFTER
    assert audit.told == ORDER_ERROR
    assert theirs.audit().told == []


def test_graders_ask_git_once_not_once_per_file(
    honest: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    log, shim = tmp_path / "log", tmp_path / "bin" / "git"
    found = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout.strip()
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\necho "$@" >> {log}\nexec {found} "$@"\n')
    shim.chmod(0o755)
    for number in range(6):
        honest.write(
            "more.csv",
            "repeat,metric,value,unit\n" + "".join(f"{i},wall,1.{number}{i},s\n" for i in range(1, 6)),
        )
        honest.done("import", "more.csv", "--experiment", "rows")
        honest.keep("More")
    monkeypatch.setenv("PATH", str(shim.parent), prepend=os.pathsep)
    honest.audit()
    several = len(log.read_text().splitlines())
    log.unlink()
    honest.git("reset", "--quiet", "--hard", "HEAD~5")
    log.unlink(missing_ok=True)
    honest.audit()
    assert several <= len(log.read_text().splitlines()) + 1
