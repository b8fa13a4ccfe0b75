"""The questions that are put to git, on repositories that make them hard."""

from __future__ import annotations

import os
import resource
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_prereg.audit.history.git import Repository, blob_id, environment
from pytest_prereg.audit.history.order import EvidenceRef, Grade, grade_all
from pytest_prereg.audit.history.past import Past
from pytest_prereg.errors import HistoryError
from pytest_prereg.registry.model import Study
from pytest_prereg.registry.tables import StudyTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import GitRepository

    from pytest_prereg.audit.history.changed_files import Commit

NAMES = ["plain.txt", "with space.txt", "größe.txt", "測定.txt", 'quoted "x".txt', "tab\tbed.txt", ":colon"]


@pytest.fixture
def files(git_repository: Callable[..., GitRepository]) -> GitRepository:
    repository = git_repository()
    for name in NAMES:
        repository.write(f"in a folder/{name}", f"content of {name}\n")
    repository.commit("all")
    return repository


def found(path: Path) -> Repository:
    repository = Repository.find(path)
    assert repository is not None
    return repository


def history(path: Path, *blobs: str) -> list[Commit]:
    """What happened to files that are called like evidence, or have one of these contents."""
    repository = found(path)
    return list(repository.history(repository.ancestry(["HEAD"]), (".jsonl",), blobs))


def test_a_repository_is_found_from_a_folder_and_from_a_file(files: GitRepository):
    inside = files.path / "in a folder"
    assert found(inside).root == found(inside / NAMES[0]).root == files.path.resolve()


def test_there_is_no_head_before_the_first_commit(git_repository: Callable[..., GitRepository]):
    repository = git_repository()
    assert found(repository.path).head() is None
    commit = repository.commit("x")
    assert found(repository.path).head() == commit


@pytest.mark.parametrize("name", NAMES)
def test_files_are_read_as_they_were_whatever_they_are_called(files: GitRepository, name: str):
    path = files.path / "in a folder" / name
    path.write_text("changed since")
    assert found(files.path).file_at("HEAD", path) == f"content of {name}\n".encode()


def test_all_files_are_listed_from_the_root_wherever_one_asks(files: GitRepository):
    assert sorted(found(files.path / "in a folder").files_at("HEAD")) == sorted(
        f"in a folder/{n}" for n in NAMES
    )


def test_a_file_that_was_not_there_is_none(files: GitRepository, tmp_path: Path):
    repository = found(files.path)
    assert repository.file_at("HEAD", files.path / "nowhere.txt") is None
    assert repository.file_at("nowhere", files.path / "in a folder" / NAMES[0]) is None
    assert repository.file_at("HEAD", tmp_path / "outside.txt") is None
    assert repository.file_at("HEAD", files.path / "in a folder") is None


def test_a_path_through_a_symbolic_link_is_the_file_behind_it(files: GitRepository, tmp_path: Path):
    (tmp_path / "link").symlink_to(files.path)
    path = tmp_path / "link" / "in a folder" / NAMES[0]
    assert found(path.parent).file_at("HEAD", path) == path.read_bytes()


def test_only_files_that_git_keeps_make_a_tree_dirty(files: GitRepository):
    repository = found(files.path)
    files.write("experiments/evidence/new.jsonl", "x")
    assert not repository.dirty()
    files.write(f"in a folder/{NAMES[0]}", "x")
    assert repository.dirty()


def test_answers_come_in_the_order_of_the_questions(files: GitRepository):
    questions = [
        "HEAD:in a folder/plain.txt",
        "HEAD:no\nsuch",
        "HEAD:none",
        "HEAD:in a folder",
        f"HEAD:in a folder/{NAMES[1]}",
    ]
    repository = found(files.path)
    contents = list(repository.contents(questions))
    assert contents == [b"content of plain.txt\n", None, None, None, b"content of with space.txt\n"]
    names = list(repository.names(questions))
    assert [name is None for name in names] == [False, True, True, False, False]


def test_no_question_needs_no_answer(files: GitRepository):
    assert list(found(files.path).contents([])) == []


def test_a_blob_is_named_as_git_names_it(files: GitRepository):
    data = (files.path / "in a folder" / NAMES[0]).read_bytes()
    assert blob_id(data) == files.git("rev-parse", f"HEAD:in a folder/{NAMES[0]}")


def test_repositories_that_use_sha_256_are_graded_too(
    git_repository: Callable[..., GitRepository], tmp_path: Path
):
    path = tmp_path / "long names"
    subprocess.run(["git", "init", "--quiet", "--object-format=sha256", str(path)], check=True)
    repository = git_repository(path)
    data = repository.write("a.jsonl", "x\n").read_bytes()
    repository.commit("x")
    assert found(path).algorithm == "sha256"
    assert blob_id(data, "sha256") == repository.git("rev-parse", "HEAD:a.jsonl")


def test_deleted_files_and_kept_ones_are_no_changes(files: GitRepository):
    files.write("a.jsonl", "one\n")
    first = files.commit("add")
    files.git("rm", "--quiet", "a.jsonl")
    files.commit("remove")
    files.write("unrelated", "x")
    files.commit("other")
    commits = {commit.id: commit.changes for commit in history(files.path)}
    assert [change.path for changes in commits.values() for change in changes] == ["a.jsonl"]
    assert commits[first][0].blob == blob_id(b"one\n")


def test_a_file_is_listed_with_what_it_replaced_and_one_that_went_with_what_it_was(files: GitRepository):
    files.write("a.jsonl", "one\n")
    files.commit("add")
    files.write("a.jsonl", "two\n")
    second = files.commit("change")
    files.git("mv", "a.jsonl", "notes.txt")
    third = files.commit("move")
    nothing = "0" * 40
    (moved, changed, added) = history(files.path, blob_id(b"two\n"))
    assert [(each.path, each.blob, each.before) for each in added.changes] == [
        ("a.jsonl", blob_id(b"one\n"), (nothing,))
    ]
    assert (changed.id, changed.changes[0].before) == (second, (blob_id(b"one\n"),))
    assert (moved.id, [each.path for each in moved.changes]) == (third, ["notes.txt"])
    assert [(each.path, each.before) for each in moved.removals] == [("a.jsonl", (blob_id(b"two\n"),))]


def test_a_merge_is_listed_with_what_neither_side_has_and_beside_its_first_parent_with_all(
    files: GitRepository,
):
    files.git("switch", "--quiet", "--create", "side")
    files.write("side.jsonl", "side\n")
    files.commit("side")
    files.git("switch", "--quiet", "main")
    files.write("main.jsonl", "main\n")
    files.commit("main")
    files.git("merge", "--quiet", "--no-commit", "--no-ff", "side")
    files.write("both.jsonl", "both\n")
    merge = files.commit("merge")
    repository = found(files.path)
    parents = repository.ancestry([merge])[merge]
    (listed,) = (commit for commit in history(files.path) if commit.id == merge)
    (beside,) = repository.merged({merge: parents}, ".jsonl")
    assert ([each.path for each in listed.changes], listed.parents) == (["both.jsonl"], parents)
    assert ([each.path for each in beside.changes], beside.id) == (["both.jsonl", "side.jsonl"], merge)


def test_the_day_of_a_commit_is_what_the_commit_says(files: GitRepository):
    first = files.git("rev-parse", "HEAD").strip()
    files.write("later.txt", "later")
    second = files.commit("Later", "later.txt")
    days = found(files.path).days([second, first])
    assert list(days) == [second, first]
    assert days[second] == files.git("show", "--no-patch", "--format=%cs", second).strip()
    assert found(files.path).days([]) == {}


def test_refs_are_branches_remote_branches_and_tags(files: GitRepository):
    head = files.git("rev-parse", "HEAD")
    names = ["refs/heads/größe", "refs/remotes/origin/x", "refs/tags/v1"]
    for name in (*names, "refs/stash", "refs/notes/x", "refs/pull/1"):
        files.git("update-ref", name, head)
    assert found(files.path).refs() == dict.fromkeys(["refs/heads/main", *names], head)


@pytest.mark.parametrize("ask", ["contents", "history"])
def test_a_git_that_ends_before_its_time_is_told(
    files: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: str
):
    repository = found(files.path)
    dying = tmp_path / "git"
    dying.write_text("#!/bin/sh\necho 'fatal: out of memory' >&2\nexit 128\n")
    dying.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    asked = {"contents": lambda: next(repository.contents(["HEAD:x"])), "history": lambda: list(history_of())}

    def history_of():
        return repository.history(["HEAD"], (".jsonl",))

    with pytest.raises(HistoryError, match="failed: fatal: out of memory"):
        asked[ask]()


def test_what_the_user_configured_for_people_changes_nothing(files: GitRepository):
    files.write("a.jsonl", "one\n")
    files.commit("add")
    before = history(files.path)
    settings = {
        "log.showSignature": "true",
        "log.follow": "true",
        "diff.renames": "copies",
        "diff.noprefix": "true",
        "color.ui": "always",
        "core.quotePath": "true",
        "diff.mnemonicPrefix": "true",
        "status.showUntrackedFiles": "all",
        "core.abbrev": "7",
    }
    for key, value in settings.items():
        files.git("config", key, value)
    assert history(files.path) == before
    files.write("untracked", "x")
    assert not found(files.path).dirty()


def test_a_linked_work_tree_is_a_repository_of_its_own(files: GitRepository, tmp_path: Path):
    files.git("worktree", "add", "--quiet", str(tmp_path / "linked"))
    assert found(tmp_path / "linked").root == (tmp_path / "linked").resolve()


def test_a_bare_repository_has_no_work_tree(tmp_path: Path):
    subprocess.run(["git", "init", "--quiet", "--bare", str(tmp_path)], check=True)
    assert Repository.find(tmp_path) is None


def test_a_repository_that_git_will_not_open_is_told_with_its_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    refusing = tmp_path / "git"
    refusing.write_text("#!/bin/sh\necho 'fatal: detected dubious ownership in repository' >&2\nexit 128\n")
    refusing.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(HistoryError, match="PR212: git rev-parse failed: fatal: detected dubious ownership"):
        Repository.find(tmp_path)


def test_a_history_that_can_not_be_read_is_unverifiable(files: GitRepository):
    evidence = files.write("a.jsonl", "one\n")
    commit = files.commit("add")
    files.commit("next")
    repository = found(files.path)
    (files.path / ".git/objects" / commit[:2] / commit[2:]).unlink()
    path = files.path / "predictions.toml"
    study = Study(id="s", table=StudyTable(id="s"), path=path, experiments={}, predictions={})
    file = EvidenceRef(path=evidence, blob=blob_id(b"one\n"), head=None, origin="measured", bound=None)
    past = Past.read(repository, "s", {file.blob: evidence}, set())
    order = grade_all(past, study, {"p": "sha256:1"}, {"p": [file]})["p"]
    assert order.grade == Grade.UNVERIFIABLE
    assert "git rev-list failed" in order.detail


SUBMODULE = "1" * 40


def test_a_submodule_is_no_file_whatever_it_is_called(files: GitRepository):
    files.write("deps/b.jsonl", "one\n")
    files.commit("a file")
    files.git("rm", "--quiet", "deps/b.jsonl")
    for name in ("deps/a.jsonl", "deps/b.jsonl"):
        files.git("update-index", "--add", "--cacheinfo", f"160000,{SUBMODULE},{name}")
    files.git("commit", "--quiet", "--message", "two submodules")
    last, _ = history(files.path)
    assert not last.changes
    assert [(each.path, each.before) for each in last.removals] == [("deps/b.jsonl", (blob_id(b"one\n"),))]
    repository = found(files.path)
    questions = ["HEAD:deps/a.jsonl", f"HEAD:in a folder/{NAMES[0]}"]
    assert next(repository.names(questions)) is None
    assert next(repository.contents(questions)) is None
    assert repository.blobs_at("HEAD", "deps") == {}


def test_an_object_that_is_missing_is_told_and_never_taken_for_no_file(files: GitRepository):
    blob = files.git("rev-parse", f"HEAD:in a folder/{NAMES[0]}")
    (files.path / ".git/objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(HistoryError, match=f"object {blob} is missing"):
        next(found(files.path).contents([blob]))


def test_a_repository_is_found_though_its_path_has_a_line_break(
    git_repository: Callable[..., GitRepository], tmp_path: Path
):
    path = tmp_path / "two\nlines\n"
    path.mkdir()
    git_repository(path)
    assert found(path).root == path.resolve()


def test_a_list_of_cut_commits_that_can_not_be_read_is_told(files: GitRepository):
    (files.path / ".git" / "shallow").write_bytes(b"x\xff")
    with pytest.raises(HistoryError, match="git rev-parse failed: fatal: bad shallow line"):
        Repository.find(files.path)


def test_git_is_run_in_the_users_environment_but_for_what_would_redirect_it():
    ran = environment(
        {"PATH": "/bin", "GIT_DIR": "/x", "GIT_NO_REPLACE_OBJECTS": "0", "GIT_SSH_COMMAND": "ssh"}
    )
    assert ran["PATH"] == "/bin"
    assert ran["GIT_SSH_COMMAND"] == "ssh"
    assert "GIT_DIR" not in ran
    assert ran["GIT_NO_REPLACE_OBJECTS"] == "1"
    assert ran["GIT_GRAFT_FILE"] == os.devnull


def test_that_no_process_can_be_had_is_told_as_any_other_failure_of_git(files):
    repository = found(files.path)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len([*Path("/proc/self/fd").iterdir()]) - 1, hard))
    try:
        with pytest.raises(HistoryError, match="git status failed: Too many open files"):
            repository.dirty()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
