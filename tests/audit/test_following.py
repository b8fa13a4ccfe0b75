"""Trees that are followed from change to change are those that git has, in histories of any shape."""

from __future__ import annotations

import random
import subprocess
from typing import TYPE_CHECKING

import pytest

from pytest_prereg.audit.history.commit_graph import CommitGraph
from pytest_prereg.audit.history.following import Following
from pytest_prereg.audit.history.git import Repository

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import GitRepository

PLACES = ("a.lock", "deep/b.lock", "deep/er/c.lock", "d.lock", "e.txt")


def made(repository: GitRepository, seed: int, commits: int = 60) -> None:
    """A history whose every commit comes from one to three others and has any of a few files with any content."""
    dice = random.Random(seed)
    lines: list[str] = []
    for mark in range(1, commits + 1):
        parents = dice.sample(range(max(1, mark - 6), mark), k=min(dice.choice((1, 1, 2, 3)), mark - 1))
        lines += [f"commit refs/heads/b{dice.randrange(3)}", f"mark :{mark}"]
        lines += [f"committer T <t@example.invalid> {mark} +0000", "data 1", "x"]
        for number, parent in enumerate(parents):
            lines.append(f"{'merge' if number else 'from'} :{parent}")
        if dice.random() < 0.7 or mark == 1:
            lines.append("deleteall")
            for place in PLACES:
                if dice.random() < 0.6:
                    lines += [f"M 100644 inline {place}", "data 1", dice.choice("xyz")]
    lines += ["reset refs/heads/main", f"from :{commits}", ""]
    command = ["git", "-C", str(repository.path), "fast-import", "--quiet", "--force"]
    subprocess.run(command, input="\n".join(lines).encode(), check=True)


def found(path: Path) -> tuple[Repository, CommitGraph]:
    repository = Repository.find(path)
    assert repository is not None
    tips = set(repository.refs().values())
    return repository, CommitGraph(repository.ancestry(tips))


@pytest.mark.parametrize("seed", range(4))
def test_every_tree_is_what_git_says_it_is(git_repository: Callable[..., GitRepository], seed: int):
    made(git := git_repository(), seed)
    repository, graph = found(git.path)
    assert graph.merges
    changed = repository.history(graph.parents, (".lock",))
    single = [commit for commit in changed if len(commit.parents) < 2]
    following = Following(graph, [*single, *repository.merged(graph.merges, ".lock")], ".lock")
    trees = dict(following.at(graph.parents.keys()))
    assert trees.keys() == graph.parents.keys()
    names = [f"{commit}:{place}" for commit in trees for place in PLACES]
    asked = dict(zip(names, repository.names(names), strict=True))
    for commit, files in trees.items():
        there = {place: asked[f"{commit}:{place}"] for place in PLACES if place.endswith(".lock")}
        assert files == {place: blob for place, blob in there.items() if blob}


def test_only_what_is_looked_for_is_followed(git_repository: Callable[..., GitRepository]):
    repository = git_repository()
    repository.write("a.lock", "1")
    repository.write("b.lock", "2")
    first = repository.commit("both")
    wanted = repository.git("rev-parse", "HEAD:a.lock")
    repository.write("a.lock", "3")
    second = repository.commit("a is another")
    git, graph = found(repository.path)
    following = Following(graph, git.history(graph.parents, (".lock",)), ".lock")
    assert dict(following.at({first, second}, {wanted})) == {first: {"a.lock": wanted}, second: {}}


@pytest.mark.parametrize("seed", range(2))
def test_refs_that_hold_commits_are_those_that_git_names(
    git_repository: Callable[..., GitRepository], seed: int
):
    made(git := git_repository(), seed)
    repository, graph = found(git.path)
    held = random.Random(seed).sample(sorted(graph.parents), k=8)
    for commit, names in graph.holders(held, repository.refs()).items():
        said = git.git("for-each-ref", "--contains", commit, "--format=%(refname)").splitlines()
        assert sorted(names) == sorted(said)
        inside = {name for name, tip in repository.refs().items() if commit in graph.of([tip])}
        assert set(names) == inside
