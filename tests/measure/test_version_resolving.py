"""Refs become commits and trees once, the work tree as it is, and nothing of the user's is touched by that."""

from __future__ import annotations

import hashlib
import subprocess
from typing import TYPE_CHECKING

import pytest
from version_repositories import Repository, plain

from pytest_prereg.errors import MeasureError
from pytest_prereg.evidence.model import Series

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_prereg.evidence.model import Version


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """A study on a branch that has left main."""
    made = Repository.made(tmp_path_factory.mktemp("template") / "repository")
    made.write_study()
    made.write(".gitignore", "ignored.txt\n")
    made.commit("Base", work_py="1")
    made.git("checkout", "--quiet", "-b", "topic")
    made.commit("Head", work_py="2")
    return made


@pytest.fixture
def repository(template: Repository, tmp_path: Path) -> Repository:
    return template.copy(tmp_path / "repository")


def begun(trees: dict[str, Version]) -> Series:
    """A series that was begun with these versions."""
    return Series(
        experiment="pr",
        number=3,
        origin="measured",
        pairing="block",
        planned={"base": 3, "head": 3},
        repeats=(),
        faults=(),
        complete=False,
        source=None,
        seed="sha256:0",
        predictions={},
        sessions=(),
        trees=trees,
    )


def refused(repository: Repository, **options: object) -> str:
    with pytest.raises(MeasureError) as caught:
        repository.resolved(**options)
    assert {problem.code for problem in caught.value.problems} == {"PR134"}
    return str(caught.value)


def files_of(repository: Repository, tree: str) -> dict[str, str]:
    names = repository.git("ls-tree", "-r", "--name-only", tree).splitlines()
    return {name: repository.git("show", f"{tree}:{name}") for name in names}


def test_an_arm_is_where_head_left_another_branch(repository: Repository):
    base = repository.git("rev-parse", "main")
    repository.git("checkout", "--quiet", "main")
    repository.commit("Main goes on", other_py="1")
    repository.git("checkout", "--quiet", "topic")

    found = repository.resolved()

    assert (found.versions["base"].commit, found.versions["base"].tree) == (base, repository.tree(base))
    assert not found.versions["base"].dirty


def test_a_work_tree_without_changes_is_the_tree_of_head(repository: Repository):
    found = repository.resolved()
    head = found.versions["head"]
    assert (head.commit, head.tree, head.dirty) == (
        repository.git("rev-parse", "HEAD"),
        repository.tree(),
        False,
    )
    assert found.notes == []
    assert repository.git("for-each-ref", "refs/prereg") == ""


def test_the_studys_own_files_are_no_change_of_what_is_measured(repository: Repository):
    study = repository.path / "predictions.toml"
    study.write_text(study.read_text().replace("No slower.", "Hardly slower."), encoding="utf-8")
    repository.write("predictions.lock", "new")
    repository.write("experiments/evidence/pr/one.jsonl", "new")
    repository.git("add", "predictions.lock")
    assert repository.resolved().versions["head"].tree == repository.tree()


def test_a_changed_work_tree_is_taken_as_it_is(repository: Repository):
    repository.commit("More", gone_py="1", staged_py="1")
    repository.write("work.py", "3")
    repository.write("new/file.py", "new")
    repository.write("ignored.txt", "ignored")
    repository.write("__pycache__/work.pyc", "compiled")
    repository.write("predictions.lock", "the study's own")
    repository.write("staged.py", "2")
    repository.git("add", "staged.py")
    repository.write("staged.py", "3")
    (repository.path / "gone.py").unlink()

    found = repository.resolved()
    head = found.versions["head"]

    files = files_of(repository, head.tree)
    assert files.keys() == {".gitignore", "predictions.toml", "work.py", "new/file.py", "staged.py"}
    assert (files["work.py"], files["staged.py"]) == ("3", "3")
    assert head.dirty
    assert head.commit == repository.git("rev-parse", "HEAD")
    assert found.notes == [f"head is the work tree, which differs from {head.commit[:7]} in 4 files"]


def test_taking_the_work_tree_leaves_index_branches_and_files_alone(repository: Repository):
    repository.write("staged.py", "1")
    repository.git("add", "staged.py")
    repository.write("work.py", "3")
    index = repository.path / ".git" / "index"
    repository.git("status")  # which may write the index
    before = hashlib.sha256(index.read_bytes()).hexdigest(), repository.git("status", "--porcelain")
    branches = repository.git("for-each-ref", "refs/heads")

    repository.resolved()

    after = hashlib.sha256(index.read_bytes()).hexdigest(), repository.git("status", "--porcelain")
    assert after == before
    assert repository.git("for-each-ref", "refs/heads") == branches
    assert repository.git("stash", "list") == ""


def test_the_tree_of_a_work_tree_outlives_what_git_clears_away(repository: Repository):
    repository.write("work.py", "3")
    kept = repository.resolved().versions["head"]
    repository.write("work.py", "4")
    tried = repository.resolved(kept=False).versions["head"]
    repository.git("checkout", "--quiet", "work.py")
    repository.git("gc", "--quiet", "--prune=now")

    assert repository.git("cat-file", "-t", kept.tree) == "tree"
    with pytest.raises(AssertionError):
        repository.git("cat-file", "-t", tried.tree)


def test_a_series_goes_on_with_the_versions_that_it_began_with(repository: Repository):
    repository.write_study({"base": "old", "head": "topic"})
    repository.git("branch", "old", "main")
    first = repository.resolved().versions
    repository.git("checkout", "--quiet", "--detach")
    repository.git("branch", "--quiet", "-D", "old", "topic")
    repository.commit("Another topic", work_py="5")
    repository.git("branch", "topic")

    assert '"old" names no commit' in refused(repository)
    assert repository.resolved(series=begun(first)).versions == first


def test_a_series_whose_tree_is_gone_says_how_to_go_on(repository: Repository, tmp_path: Path):
    repository.write("work.py", "3")
    first = repository.resolved().versions
    clone = Repository(tmp_path / "clone")
    subprocess.run(
        ["git", "clone", "--quiet", "--no-local", repository.path, clone.path], env=plain(), check=True
    )
    tree = first["head"].tree

    told = refused(clone, series=begun(first))

    assert "predictions.toml:10: PR134" in told
    assert f"tree {tree[:7]}, with which series 3 began, is not here" in told
    assert "pytest-prereg void pr/3" in told
    clone.git("fetch", "--quiet", "origin", f"refs/prereg/trees/{tree}")
    assert clone.resolved(series=begun(first)).versions == first


def test_every_ref_that_names_nothing_is_told_with_its_line(repository: Repository):
    repository.write_study({"base": "merge-base:origin/main", "head": "v9"})
    told = refused(repository)
    assert 'predictions.toml:9: PR134: experiment "pr", arm "base"' in told
    assert "git fetch origin main" in told
    assert 'predictions.toml:10: PR134: experiment "pr", arm "head": "v9" names no commit' in told


def test_a_ref_to_what_is_no_commit_is_refused(repository: Repository):
    repository.git("tag", "a-file", "HEAD:work.py")
    repository.write_study({"base": "a-file", "head": "worktree"})
    assert '"a-file" names no commit' in refused(repository)


def test_an_annotated_tag_is_the_commit_that_it_is_of(repository: Repository):
    repository.git("tag", "--annotate", "--message", "Release", "v1", "main")
    repository.write_study({"base": "v1", "head": "worktree"})
    assert repository.resolved().versions["base"].commit == repository.git("rev-parse", "main")


def test_a_shallow_clone_that_lacks_the_merge_base_says_how_to_have_it(
    repository: Repository, tmp_path: Path
):
    repository.git("checkout", "--quiet", "main")
    repository.commit("Main goes on", other_py="1")
    repository.git("checkout", "--quiet", "topic")
    repository.write_study({"base": "merge-base:origin/main", "head": "worktree"})
    repository.commit("Study")
    clone = Repository(tmp_path / "clone")
    source = f"file://{repository.path}"
    options = ["--quiet", "--depth=1", "--no-single-branch", "--branch=topic"]
    subprocess.run(["git", "clone", *options, source, clone.path], env=plain(), check=True)

    told = refused(clone)

    assert '"merge-base:origin/main": HEAD and it have no commit in common here' in told
    assert "fetch-depth: 0" in told


def test_of_several_merge_bases_one_is_taken_and_said(repository: Repository):
    """Each of two branches merges the other's first commit: both first commits are merge bases."""
    repository.git("checkout", "--quiet", "main")
    main = repository.commit("On main", main_py="1")
    repository.git("checkout", "--quiet", "topic")
    topic = repository.commit("On topic", topic_py="1")
    repository.git("merge", "--quiet", "--no-edit", main)
    repository.git("checkout", "--quiet", "main")
    repository.git("merge", "--quiet", "--no-edit", topic)
    repository.git("checkout", "--quiet", "topic")
    taken = repository.git("merge-base", "HEAD", "main")

    found = repository.resolved()

    assert found.versions["base"].commit == taken
    assert found.notes == [
        f"base is {taken[:7]}: HEAD and main have 2 merge bases, and git merge-base takes that one"
    ]


def test_after_main_was_merged_in_the_merge_base_is_its_last_commit_there(repository: Repository):
    repository.git("checkout", "--quiet", "main")
    main = repository.commit("On main", main_py="1")
    repository.git("checkout", "--quiet", "topic")
    repository.git("merge", "--quiet", "--no-edit", "main")
    found = repository.resolved()
    assert found.versions["base"].commit == main
    assert found.versions["head"].tree == repository.tree()


def test_arms_of_one_tree_are_said_to_be_one(repository: Repository):
    repository.write_study({"base": "HEAD", "head": "worktree"})
    assert repository.resolved().notes == ["base and head are one tree"]


def test_without_a_repository_or_a_commit_there_is_no_version(tmp_path: Path):
    outside = Repository(tmp_path / "outside")
    outside.path.mkdir()
    outside.write_study()
    told = refused(outside)
    assert '"ref" needs a git repository' in told
    assert told.endswith("    git init\n    git add --all && git commit -m 'Begin'")
    empty = Repository.made(tmp_path / "empty")
    empty.write_study()
    assert "there is no commit yet\n    git add --all && git commit -m 'Begin'" in refused(empty)


def test_a_repository_that_git_refuses_is_not_begun_anew(repository: Repository):
    repository.write_study()
    (repository.path / ".git" / "HEAD").write_text("broken", encoding="utf-8")
    told = refused(repository)
    assert '"ref" needs a git repository' in told
    assert "git init" not in told


def test_a_submodule_with_changes_of_its_own_is_refused(repository: Repository, tmp_path: Path):
    inner = Repository.made(tmp_path / "inner")
    inner.commit(inner_py="1")
    repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.path), "lib")
    repository.commit("A submodule")
    repository.write("lib/new.py", "1")
    said = repository.resolved().notes
    assert said == ['new files in "lib" are left out: it is a repository of its own']
    repository.write("lib/inner.py", "2")
    assert 'submodule "lib" has changes' in refused(repository)


def test_a_repository_in_the_work_tree_that_is_no_submodule_is_left_out_and_said(repository: Repository):
    nested = Repository.made(repository.path / "new" / "nested")
    nested.commit(nested_py="1")
    repository.write("new/own.py", "1")
    found = repository.resolved()
    names = files_of(repository, found.versions["head"].tree).keys()
    assert names == {".gitignore", "predictions.toml", "work.py", "new/own.py"}
    assert found.notes[0] == 'new files in "new/nested" are left out: it is a repository of its own'


def test_new_files_that_are_too_large_to_be_source_are_refused(repository: Repository):
    with repository.write("data.bin", "").open("wb") as file:
        file.truncate(2 << 30)
    assert "new files in the work tree have 2.0 GiB" in refused(repository)
    repository.write(".gitignore", "data.bin\n")
    assert repository.resolved().versions["head"].dirty


def test_the_versions_of_arms_that_are_not_run_need_not_be_there(repository: Repository):
    repository.write_study({"base": "nowhere", "head": "worktree"})
    assert repository.resolved(arms=["head"]).versions.keys() == {"head"}
