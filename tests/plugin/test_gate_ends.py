"""Which two commits the gate compares, whatever the work tree, the clone and the environment are like."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from audited_study import CLAIM, LINE, Small, new_study
from gated_study import EASIER, LOCK, MORE_ROWS, STRICTER, TOML, PullRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from gated_study import Gated

    Against = Callable[[str], PullRequest]

AMENDED = [("PR202", CLAIM, "review", LINE)]
WEAKENED = [("PR209", CLAIM, "error", LINE), ("PR202", CLAIM, "review", LINE)]


def everything(folder: Path) -> dict[str, str]:
    """Every file below a folder, by what it has; a folder or a link by being there."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        for path in folder.rglob("*")
    }


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left there is left by this test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("temporary")))


def temporary() -> set[str]:
    return {one.name for one in Path(tempfile.gettempdir()).glob("prereg-*")}


@pytest.fixture
def amended(against: Against) -> PullRequest:
    """What the base recorded is amended."""
    project = against("recorded")
    project.amend(*STRICTER)
    return project


@pytest.fixture
def weakened(against: Against) -> PullRequest:
    """What the base recorded is made easier."""
    project = against("recorded")
    project.amend(*EASIER)
    return project


# Which commits


def test_a_base_that_moved_on_is_compared_from_where_they_parted(amended: PullRequest):
    parted = amended.git("rev-parse", "main")
    amended.git("switch", "--quiet", "main")
    amended.take_more(MORE_ROWS)
    (amended.path / "more.csv").unlink()
    amended.git("switch", "--quiet", "change")
    gated = amended.gate()
    assert gated.grave == AMENDED
    assert f"{parted[:8]} → " in amended.prereg("gate", "--base", "main").output


def test_branches_that_were_merged_into_each_other_have_two_commits_in_common(amended: PullRequest):
    """One side had the other's first commit, and the other way round."""
    amended.git("branch", "first")
    amended.git("switch", "--quiet", "main")
    amended.go_on("on-main.txt")
    amended.git("branch", "other")
    amended.git("merge", "--quiet", "--no-edit", "first")
    amended.git("switch", "--quiet", "change")
    amended.git("merge", "--quiet", "--no-edit", "other")
    assert len(amended.git("merge-base", "--all", "main", "change").split()) == 2
    assert amended.gate().exit in (0, 1)
    amended.take_more(MORE_ROWS)
    amended.edit(TOML, "<= 1.5 s", "<= 1.7 s")
    amended.done("amend", CLAIM, "--reason", "a little more room")
    amended.keep("Amend again", TOML, LOCK)
    assert ("PR209", CLAIM, "error", LINE) in amended.gate().grave


def test_a_merge_commit_as_github_makes_it_has_the_same_answer(weakened: PullRequest):
    weakened.git("switch", "--quiet", "main")
    weakened.go_on("on-main.txt")
    weakened.git("switch", "--quiet", "--detach", "main")
    weakened.git("merge", "--quiet", "--no-ff", "--message", "Merge change into main", "change")
    assert weakened.gate().grave == WEAKENED
    assert weakened.gate(base="HEAD^1").grave == WEAKENED


def test_nothing_came_between_a_commit_and_itself(weakened: PullRequest):
    for base in ("HEAD", "change"):
        gated = weakened.gate(base=base)
        assert (gated.findings, gated.exit) == ([], 0)


def test_a_head_behind_its_base_brings_nothing(weakened: PullRequest):
    gated = weakened.gate("--head", "main", base="change")
    assert (gated.findings, gated.exit) == ([], 0)


def test_another_head_than_what_is_checked_out(weakened: PullRequest):
    there = weakened.gate()
    weakened.git("tag", "reviewed", "change")
    weakened.git("switch", "--quiet", "main")
    for head in ("reviewed", weakened.git("rev-parse", "change")):
        assert weakened.gate("--head", head).content == there.content
    assert weakened.gate().findings == []


# The work tree


def dirty(project: PullRequest) -> None:
    """Edited, staged, deleted, untracked: nothing of it is committed."""
    project.edit(LOCK, '"supported"', '"refuted"')
    project.edit(TOML, "less than two seconds", "no time")
    project.write("experiments/evidence/rows/new.jsonl", "{}\n")
    (project.evidence()[0]).unlink()
    project.write("other.lock", (project.path / LOCK).read_text(encoding="utf-8"))
    project.write("conftest.py", "raise SystemExit\n")
    project.git("add", "--all")
    project.write("README.md", "It took <!-- prereg: below-two.estimate -->1.1<!-- /prereg --> s.\n")
    (project.path / TOML).unlink()


def test_a_work_tree_has_no_say_in_it(weakened: PullRequest):
    clean = weakened.gate()
    assert clean.grave == WEAKENED
    dirty(weakened)
    assert weakened.gate().content == clean.content
    assert weakened.gate("--study", TOML).content == clean.content


def test_a_repository_is_left_as_it_was(weakened: PullRequest):
    dirty(weakened)
    before, held = everything(weakened.path), temporary()
    for form in ("json", "terminal"):
        weakened.prereg("gate", "--base", "main", "--format", form)
    weakened.prereg("gate", "--base", "nowhere")
    assert everything(weakened.path) == before
    assert temporary() == held


def test_after_an_interrupt_too(weakened: PullRequest, tmp_path: Path):
    """Git is slow here, so that it comes at a time when both trees are there."""
    own = tmp_path / "bin"
    held = tmp_path / "tmp"
    own.mkdir()
    held.mkdir()
    git = shutil.which("git")
    slow = f'#!/bin/sh\ncase "$*" in *rev-list*) touch "{own}/ready"; sleep 5;; esac\nexec "{git}" "$@"\n'
    (own / "git").write_text(slow)
    (own / "git").chmod(0o755)
    before = everything(weakened.path)
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest_prereg", "gate", "--base", "main"],
        cwd=weakened.path,
        env={**os.environ, "PATH": f"{own}:{os.environ['PATH']}", "TMPDIR": str(held)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    )
    try:
        while not (own / "ready").exists():
            assert process.poll() is None
        os.killpg(process.pid, signal.SIGINT)
        said, _ = process.communicate(timeout=30)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode != 0
    assert "Traceback" not in said
    assert list(held.iterdir()) == []
    assert everything(weakened.path) == before


def test_a_linked_work_tree_has_the_same_answer(
    weakened: PullRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    there = weakened.gate()
    weakened.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "linked"), "change")
    linked = PullRequest(tmp_path / "linked", tmp_path / "linked")
    monkeypatch.chdir(linked.path)
    assert linked.gate().content == there.content


@pytest.mark.parametrize("options", [(), ("--object-format=sha256",)])
def test_a_study_in_a_folder_of_any_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
):
    top = tmp_path / "größe und maß"
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main", *options, str(top)], check=True)
    study = Small(top / "ein ordner", top)
    study.path.mkdir()
    for name, value in (("user.name", "Test"), ("user.email", "test@example.invalid")):
        study.git("config", name, value)
    study.begin()
    study.register()
    study.take_in()
    project = PullRequest(study.path, top)
    project.git("switch", "--quiet", "--create", "change")
    project.amend(*EASIER)
    inside = project.gate()
    assert inside.grave == WEAKENED
    assert inside.only("PR209")["path"] == TOML
    (top / "elsewhere").mkdir()
    for folder, named in ((top, TOML), (top / "elsewhere", ".")):
        monkeypatch.chdir(folder)
        gated = PullRequest(folder, top).gate("--study", os.path.relpath(study.path / named))
        assert gated.grave == WEAKENED
        assert gated.only("PR209")["path"] == f"ein ordner/{TOML}"


def test_what_is_told_names_no_folder_that_is_gone_afterwards(
    against: Against, monkeypatch: pytest.MonkeyPatch
):
    """The page lies above the folder where the gate is asked, and was wrong at the base already."""
    project = against("recorded")
    page = "It took <!-- prereg: below-two.estimate -->1.1<!-- /prereg --> s.\n"
    (project.path / "predictions").mkdir()
    for old, new in ((TOML, "small.toml"), (LOCK, "small.lock")):
        project.git("mv", old, f"predictions/{new}")
    project.on_main("README.md", page, ".")
    project.write("more.md", page)
    project.keep("Quote it again", "more.md")
    folder = project.path / "predictions"
    monkeypatch.chdir(folder)
    inside = PullRequest(folder, project.path)
    gated = inside.gate("--study", "small.toml")
    assert [(one["code"], one["path"]) for one in gated.findings] == [("PR210", "../more.md")]
    for form in ("terminal", "markdown", "sarif"):
        said = inside.prereg(
            "gate", "--base", "main", "--study", "small.toml", "--all", "--format", form
        ).output
        assert "more.md" in said
        assert tempfile.gettempdir() not in said


def test_two_studies_are_asked_for_one_by_one(weakened: PullRequest):
    other = (weakened.path / TOML).read_text(encoding="utf-8").replace('id = "small"', 'id = "other"')
    weakened.write("predictions/other.toml", other)
    weakened.done("lock", "--study", "predictions/other.toml")
    weakened.keep("Another study", "predictions")
    result = weakened.prereg("gate", "--base", "main")
    assert result.exit_code == 2
    assert "there are 2 studies here; name one with --study: predictions.toml, predictions/other.toml" in (
        result.stderr
    )
    assert weakened.gate("--study", TOML).grave == WEAKENED
    assert weakened.gate("--study", "predictions/other.toml").grave == []


def test_submodules_and_links_that_lead_out_are_left_out(
    weakened: PullRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    clean = weakened.gate()
    new_study(tmp_path / "kept")
    secret = tmp_path / "secret.md"
    secret.write_text("It took <!-- prereg: below-two.estimate -->1.1<!-- /prereg --> s.\n")
    weakened.git(
        "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tmp_path / "kept"), "kept"
    )
    for name, target in (("out.md", str(secret)), ("up.md", "../secret.md"), ("loop.md", "loop.md")):
        (weakened.path / name).symlink_to(target)
    (weakened.path / "folder").symlink_to("..")
    weakened.keep("Links", ".gitmodules", "kept", "out.md", "up.md", "loop.md", "folder")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    assert weakened.gate().said == clean.said
    assert secret.exists()


# Clones


@pytest.fixture
def cloned(against: Against, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., PullRequest]:
    """Of a repository whose base recorded a verdict, and a pull request of two commits that weakens it."""
    project = against("recorded")
    project.git("config", "uploadpack.allowFilter", "true")
    project.go_on()
    project.amend(*EASIER)

    def make(*options: str) -> PullRequest:
        clone = project.cloned(tmp_path / "clone", "--branch", "change", *options)
        monkeypatch.chdir(clone.path)
        return PullRequest(clone.path, clone.top)

    return make


def said(project: PullRequest, *arguments: str) -> tuple[int, str]:
    result = project.prereg("gate", "--base", "origin/main", *arguments)
    return result.exit_code, " ".join(result.output.split())


def test_a_whole_clone(cloned: Callable[..., PullRequest]):
    assert cloned().gate(base="origin/main").grave == WEAKENED


def test_where_the_base_is_not_here_it_says_what_to_fetch(cloned: Callable[..., PullRequest]):
    exit_code, text = said(cloned("--depth=1"))
    assert exit_code == 4
    assert 'PR212 no commit "origin/main" is here; this clone is shallow' in text
    assert "git fetch origin main" in text
    assert "fetch-depth: 0" in text


def test_where_only_the_tips_are_here_it_says_what_to_fetch(cloned: Callable[..., PullRequest]):
    project = cloned("--depth=1")
    project.git("fetch", "--quiet", "--depth=1", "origin", "main:refs/remotes/origin/main")
    exit_code, text = said(project)
    assert exit_code == 4
    assert 'nothing here shows where "HEAD" left "origin/main": history is cut at ' in text
    assert "git fetch --unshallow --tags" in text
    project.git("fetch", "--quiet", "--unshallow")
    assert project.gate(base="origin/main").grave == WEAKENED


@pytest.mark.parametrize("depth", [3, 4])
def test_a_clone_that_reaches_where_they_parted_is_enough(cloned: Callable[..., PullRequest], depth: int):
    project = cloned(f"--depth={depth}", "--no-single-branch")
    gated = project.gate(base="origin/main")
    assert gated.grave == WEAKENED
    assert gated.exit == 1


def test_a_clone_without_contents_and_without_a_network_says_so(cloned: Callable[..., PullRequest]):
    project = cloned("--filter=blob:none")
    url = project.git("remote", "get-url", "origin")
    project.git("remote", "set-url", "origin", "file:///nowhere/at/all")
    exit_code, text = said(project)
    assert exit_code == 4
    assert "PR212 this is a partial clone, and what it lacks can't be fetched" in text
    assert "git fetch --refetch --no-filter" in text
    project.git("remote", "set-url", "origin", url)
    project.git("fetch", "--quiet", "--refetch", "--no-filter")
    project.git("remote", "set-url", "origin", "file:///nowhere/at/all")
    assert project.gate(base="origin/main").grave == WEAKENED


# What is not there


@pytest.mark.parametrize("revision", ["nope", "", "-x", "main:predictions.toml", "a\nb", "main..change"])
def test_a_revision_that_names_no_commit_could_not_be_told(weakened: PullRequest, revision: str):
    gated = weakened.gate(base=revision)
    assert (gated.said, gated.exit) == ([("PR212", "", "error", None)], 4)
    assert weakened.gate("--head", revision).exit == 4


def test_what_was_typed_is_quoted_in_the_command_that_fetches_it(weakened: PullRequest):
    weakened.git("remote", "add", "origin", str(weakened.path))
    text = weakened.prereg("gate", "--base", "origin/$(touch gone)").output
    assert "git fetch origin '$(touch gone)'" in text


def test_branches_without_a_commit_in_common_could_not_be_told(weakened: PullRequest):
    weakened.git("checkout", "--quiet", "--orphan", "alone")
    weakened.git("commit", "--quiet", "--message", "Alone")
    gated = weakened.gate()
    assert (gated.said, gated.exit) == ([("PR212", "", "error", None)], 4)
    assert gated.only("PR212")["message"] == (
        'nothing here shows where "HEAD" left "main": they have no commit in common'
    )


def test_without_a_repository_there_is_nothing_to_compare(
    weakened: PullRequest, monkeypatch: pytest.MonkeyPatch
):
    shutil.rmtree(weakened.path / ".git")
    gated: Gated = weakened.gate()
    assert (gated.said, gated.exit) == ([("PR212", "", "error", None)], 4)


@pytest.mark.parametrize(
    ("study", "message"),
    [
        ("no.toml", 'neither commit has "no.toml"'),
        ("../predictions.toml", '"../predictions.toml" lies outside of the repository'),
        ("experiments", 'neither commit has "experiments/predictions.toml"'),
    ],
)
def test_a_study_that_is_nowhere_is_a_mistake_of_who_typed_it(
    weakened: PullRequest, study: str, message: str
):
    result = weakened.prereg("gate", "--base", "main", "--study", study)
    assert result.exit_code == 2
    assert f"PR100: {message}" in result.stderr
