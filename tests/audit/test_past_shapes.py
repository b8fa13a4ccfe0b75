"""Order in histories of every shape, and in clones of every kind."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from scenes import FIRST, OTHER, Scene, evidence_of, past_of

from pytest_prereg.audit.history.git import Repository, blob_id
from pytest_prereg.audit.history.order import EvidenceRef, Grade
from pytest_prereg.audit.history.past import Past

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def scene(git_repository: Callable[..., object]) -> Scene:
    return Scene(git_repository())


def in_order(scene: Scene, *, registered_first: bool) -> Path:
    """Registration and evidence, a commit for each."""
    for step in (scene.register, scene.measure) if registered_first else (scene.measure, scene.register):
        step()
        scene.commit()
    return scene.repository.path / scene.folder / "experiments/evidence/a.jsonl"


def expected(*, registered_first: bool) -> Grade:
    return Grade.REGISTERED if registered_first else Grade.AFTER_EVIDENCE


# Evidence by its content


@pytest.mark.parametrize("registered_first", [True, False])
@pytest.mark.parametrize("kept", [True, False])
def test_evidence_that_had_another_kind_of_name_before(scene: Scene, *, registered_first: bool, kept: bool):
    """It is known by its content: a name that no evidence has does not hide it."""
    hidden = scene.repository.write("results/notes.txt", "one\n")
    if registered_first:
        hidden.unlink()
    else:
        scene.commit("hidden")
    scene.register()
    scene.commit("register")
    if not (registered_first or kept):
        hidden.unlink()
    evidence = scene.measure()
    scene.commit("evidence")
    assert scene.grade(evidence).grade == expected(registered_first=registered_first)


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("registered_first", [True, False])
def test_evidence_that_has_grown_came_in_with_its_first_lines(
    scene: Scene, *, registered_first: bool, committed: bool
):
    if registered_first:
        scene.register()
    scene.measure(text="one\n")
    scene.commit("the first line")
    scene.register()
    scene.commit("register")
    evidence = scene.measure(text="one\ntwo\n")
    if committed:
        scene.commit("the second")
    # One commit had both at first: that is no order either.
    grade = Grade.SIMULTANEOUS if registered_first else Grade.AFTER_EVIDENCE
    assert scene.grade(evidence).grade == grade


def test_another_file_of_that_name_is_no_beginning(scene: Scene):
    scene.measure(text="other\n")
    scene.commit("another run, under the same name")
    scene.register()
    scene.commit("register")
    evidence = scene.measure(text="one\n")
    scene.commit("evidence")
    assert scene.grade(evidence).grade == Grade.REGISTERED


def test_one_file_moved_again_and_again_is_asked_for_once(scene: Scene):
    scene.register()
    scene.commit()
    evidence = scene.measure()
    introduced = scene.commit()
    for number in range(5):
        name = f"moved/{number}.jsonl"
        (scene.repository.path / "moved").mkdir(exist_ok=True)
        scene.repository.git("mv", str(evidence), name)
        evidence = scene.repository.path / name
        scene.commit()
    (scene.repository.path / "predictions.lock").unlink()
    scene.commit("the lock is gone for a while")
    scene.repository.git("mv", str(evidence), "last.jsonl")
    scene.commit()
    scene.register()
    scene.commit()
    order = scene.grade(scene.repository.path / "last.jsonl")
    assert (order.grade, order.commit) == (Grade.REGISTERED, introduced)


# Locks of the past


def test_a_lock_that_can_not_be_read_registers_nothing(scene: Scene):
    scene.register()
    readable = (scene.repository.path / "predictions.lock").read_text()
    scene.repository.write("predictions.lock", f"{readable}\nnot = [toml")
    scene.commit("broken")
    evidence = scene.measure()
    scene.commit("evidence")
    scene.register()
    scene.commit("repaired")
    assert scene.grade(evidence).grade == Grade.AFTER_EVIDENCE


@pytest.mark.parametrize("side", [FIRST, OTHER])
def test_a_lock_with_conflict_markers_registers_nothing(scene: Scene, side: str):
    """Else both sides of a merge that nobody resolved could be chosen from later."""
    scene.register(FIRST)
    ours = (scene.repository.path / "predictions.lock").read_text()
    theirs = ours.replace(FIRST, OTHER)
    scene.repository.write("predictions.lock", f"{ours}\n<<<<<<< ours\n=======\n{theirs}\n>>>>>>> theirs\n")
    scene.commit("unresolved")
    evidence = scene.measure()
    scene.commit("evidence")
    scene.register(side)
    scene.commit("resolved")
    order = scene.grade(evidence_of(evidence, bound=side), digest=side)
    assert order.grade == Grade.AFTER_EVIDENCE


def test_a_lock_with_two_tables_of_one_id_registers_nothing(scene: Scene):
    scene.register(FIRST)
    one = (scene.repository.path / "predictions.lock").read_text()
    table = one[one.index("[predictions.p]") :].replace(FIRST, OTHER)
    scene.repository.write("predictions.lock", f"{one}\n{table}")
    scene.commit("both")
    evidence = scene.measure()
    scene.commit("evidence")
    scene.register(OTHER)
    scene.commit("one of them")
    assert scene.grade(evidence_of(evidence, bound=OTHER), digest=OTHER).grade == Grade.AFTER_EVIDENCE


# Shapes


@pytest.mark.parametrize("registered_first", [True, False])
def test_unrelated_histories_merged(scene: Scene, *, registered_first: bool):
    """The study's own history was another repository's, and is merged into one that knows nothing of it."""
    scene.repository.write("readme", "x")
    scene.commit()
    scene.repository.git("switch", "--quiet", "--orphan", "theirs")
    evidence = in_order(scene, registered_first=registered_first)
    scene.repository.git("switch", "--quiet", "main")
    scene.repository.git("merge", "--quiet", "--no-edit", "--allow-unrelated-histories", "theirs")
    assert scene.grade(evidence).grade == expected(registered_first=registered_first)


def test_a_registration_from_an_unrelated_history_is_none_of_the_evidence(scene: Scene):
    evidence = scene.measure()
    scene.commit("evidence")
    scene.repository.git("switch", "--quiet", "--orphan", "theirs")
    scene.register()
    scene.commit("register")
    scene.repository.git("switch", "--quiet", "main")
    scene.repository.git("merge", "--quiet", "--no-edit", "--allow-unrelated-histories", "theirs")
    assert scene.grade(evidence).grade == Grade.AFTER_EVIDENCE


@pytest.mark.parametrize("with_lock", [0, 1, 2, 3])
def test_evidence_in_a_merge_of_three(scene: Scene, with_lock: int):
    git = scene.repository.git
    scene.repository.write("readme", "x")
    start = scene.commit()
    for number in range(3):
        git("switch", "--quiet", "--create", f"side-{number}", start)
        scene.repository.write(f"side-{number}", "x")
        if number < with_lock:
            scene.register()
        scene.commit()
    git("merge", "--quiet", "--no-commit", "side-0", "side-1")
    evidence = scene.measure()
    scene.commit("an octopus with evidence")
    assert len(git("log", "-1", "--format=%P").split()) == 3
    if not with_lock:
        scene.register()
        scene.commit("register")
    order = scene.grade(evidence)
    sides = (Grade.REGISTERED_ONE_SIDE, Grade.REGISTERED_ONE_SIDE, Grade.REGISTERED)
    assert order.grade == (Grade.AFTER_EVIDENCE, *sides)[with_lock]
    assert with_lock not in (1, 2) or f"{with_lock} of 3 sides" in order.detail


def test_a_lock_that_only_a_merge_changed(scene: Scene):
    """What a merge has, and neither of its sides, was registered from there on."""
    git = scene.repository.git
    scene.register(OTHER)
    scene.commit()
    git("switch", "--quiet", "--create", "side")
    scene.repository.write("side", "x")
    scene.commit()
    git("switch", "--quiet", "main")
    scene.repository.write("main", "x")
    scene.commit()
    git("merge", "--quiet", "--no-commit", "--no-ff", "side")
    scene.register(FIRST)
    scene.commit("merge, and amend")
    evidence = scene.measure()
    scene.commit("evidence")
    assert scene.grade(evidence).grade == Grade.REGISTERED


def test_a_lock_that_came_with_the_second_side_of_a_merge(scene: Scene):
    git = scene.repository.git
    scene.repository.write("readme", "x")
    scene.commit()
    git("switch", "--quiet", "--create", "side")
    scene.register()
    scene.commit()
    git("switch", "--quiet", "main")
    scene.repository.write("main", "x")
    scene.commit()
    git("merge", "--quiet", "--no-edit", "side")
    evidence = scene.measure()
    scene.commit("evidence")
    assert scene.grade(evidence).grade == Grade.REGISTERED


@pytest.mark.parametrize("registered_first", [True, False])
def test_a_detached_head(scene: Scene, *, registered_first: bool):
    evidence = in_order(scene, registered_first=registered_first)
    scene.repository.git("switch", "--quiet", "--detach", "main")
    scene.repository.git("branch", "--quiet", "-D", "main")
    assert scene.grade(evidence).grade == expected(registered_first=registered_first)


# Repositories


@pytest.mark.parametrize("registered_first", [True, False])
def test_another_worktree(scene: Scene, tmp_path: Path, *, registered_first: bool):
    evidence = in_order(scene, registered_first=registered_first)
    scene.repository.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "linked"))
    linked = Scene(type(scene.repository)(tmp_path / "linked"))
    there = tmp_path / "linked" / evidence.relative_to(scene.repository.path)
    assert linked.grade(there).grade == expected(registered_first=registered_first)


@pytest.mark.parametrize("registered_first", [True, False])
def test_a_submodule(scene: Scene, git_repository: Callable[..., object], *, registered_first: bool):
    """The history is the submodule's, not that of the repository around it."""
    evidence = in_order(scene, registered_first=registered_first)
    outer = git_repository()
    source = str(scene.repository.path)
    outer.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", source, "inner")
    outer.commit("everything at once")
    inner = Scene(type(scene.repository)(outer.path / "inner"))
    there = outer.path / "inner" / evidence.relative_to(scene.repository.path)
    assert inner.grade(there).grade == expected(registered_first=registered_first)


@pytest.mark.parametrize("registered_first", [True, False])
def test_names_of_sixty_four_digits(
    git_repository: Callable[..., object], tmp_path: Path, *, registered_first: bool
):
    path = tmp_path / "sha256"
    subprocess.run(["git", "init", "--quiet", "--object-format=sha256", str(path)], check=True)
    scene = Scene(git_repository(path))
    evidence = in_order(scene, registered_first=registered_first)
    blob = blob_id(evidence.read_bytes(), "sha256")
    head = scene.repository.git("rev-parse", "HEAD")
    file = EvidenceRef(path=evidence, blob=blob, head=head, origin="measured", bound=FIRST)
    order = scene.grade(file)
    assert (order.grade, order.flags) == (expected(registered_first=registered_first), ())


def test_a_commit_that_is_here_and_on_no_branch_is_asked_as_well(scene: Scene):
    """A header may name a commit that was rewritten since: as long as it is here, it is looked at."""
    scene.repository.write("readme", "x")
    scene.commit()
    scene.register()
    registered = scene.commit("register")
    scene.repository.git("commit", "--quiet", "--amend", "--message", "other words")
    evidence = scene.measure()
    scene.commit("evidence")
    order = scene.grade(evidence_of(evidence, head=registered))
    assert (order.grade, order.flags) == (Grade.REGISTERED, ())


def test_evidence_on_no_branch_is_nobodys(scene: Scene):
    """The ancestry of a commit that only evidence names is read for its locks, and contests nothing."""
    scene.measure()
    first = scene.commit("evidence")
    scene.repository.git("switch", "--quiet", "--orphan", "main-2")
    scene.register()
    scene.commit("register")
    evidence = scene.measure()
    scene.commit("evidence")
    scene.repository.git("branch", "--quiet", "-D", "main")
    past = past_of(Repository.find(scene.repository.path), "latency", [evidence_of(evidence, head=first)])
    assert isinstance(past, Past)
    assert (first in past.graph.parents, past.elsewhere) == (True, {})


def test_commits_come_back_children_first_whatever_their_dates(scene: Scene, monkeypatch: pytest.MonkeyPatch):
    ids = []
    for number, date in enumerate(("2020-01-01", "2030-01-01", "2010-01-01")):
        monkeypatch.setenv("GIT_COMMITTER_DATE", f"{date}T00:00:00Z")
        scene.measure(f"{number}.jsonl", f"{number}\n")
        ids.append(scene.commit())
    past = past_of(Repository.find(scene.repository.path), "latency", [])
    assert isinstance(past, Past)
    assert [commit.id for commit in past.commits] == ids[::-1]
