"""Registered before the evidence? Asked of real repositories, one for each way in which it can come out."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from scenes import CLAIM, FIRST, OTHER, Scene, evidence_of, past_of

from pytest_prereg.audit.history.git import Repository
from pytest_prereg.audit.history.order import Grade, grade_all
from pytest_prereg.registry.model import Study
from pytest_prereg.registry.tables import StudyTable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import GitRepository


@pytest.fixture
def scene(git_repository: Callable[..., GitRepository]) -> Scene:
    return Scene(git_repository())


def test_a_registration_committed_before_the_evidence_is_registered(scene: Scene):
    scene.register()
    scene.commit()
    evidence = scene.measure()
    introduced = scene.commit()
    order = scene.grade(evidence)
    assert (order.grade, order.commit) == (Grade.REGISTERED, introduced)


def test_both_in_one_commit_are_simultaneous(scene: Scene):
    scene.commit()
    scene.register()
    evidence = scene.measure()
    scene.commit()
    assert scene.grade(evidence).grade == Grade.SIMULTANEOUS


def test_both_in_the_first_commit_are_simultaneous(scene: Scene):
    scene.register()
    evidence = scene.measure()
    scene.commit()
    assert scene.grade(evidence).grade == Grade.SIMULTANEOUS


def test_evidence_committed_first_is_after_evidence(scene: Scene):
    evidence = scene.measure()
    scene.commit()
    scene.register()
    scene.commit()
    assert scene.grade(evidence).grade == Grade.AFTER_EVIDENCE


def test_forged_dates_change_nothing(scene: Scene, monkeypatch: pytest.MonkeyPatch):
    evidence = scene.measure()
    scene.commit()
    for name in ("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"):
        monkeypatch.setenv(name, "2001-01-01T00:00:00Z")
    scene.register()
    scene.commit()
    assert scene.grade(evidence).grade == Grade.AFTER_EVIDENCE


def test_uncommitted_evidence_is_compared_with_head(scene: Scene):
    scene.register()
    head = scene.commit()
    order = scene.grade(scene.measure())
    assert (order.grade, order.commit) == (Grade.REGISTERED, head)


def test_a_lock_that_is_not_committed_registers_nothing(scene: Scene):
    scene.register(prediction="another")
    scene.commit()
    scene.register()
    assert scene.grade().grade == Grade.UNREGISTERED
    assert scene.grade(scene.measure()).grade == Grade.UNREGISTERED


def test_without_evidence_the_grade_is_the_state_of_the_lock(scene: Scene):
    scene.register()
    scene.commit()
    assert scene.grade().grade == Grade.REGISTERED
    assert scene.grade(digest=OTHER).grade == Grade.MISMATCH


def test_without_a_commit_nothing_is_registered(scene: Scene):
    scene.register()
    assert scene.grade(scene.measure()).grade == Grade.UNREGISTERED


def test_without_git_nothing_can_be_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert Repository.find(tmp_path) is None
    study = Study(
        id="s", table=StudyTable(id="s"), path=tmp_path / "predictions.toml", experiments={}, predictions={}
    )
    assert grade_all(past_of(None, "s", ()), study, {"p": FIRST}, {})["p"].grade == Grade.UNVERIFIABLE


def test_without_the_git_command_there_is_no_repository(scene: Scene, monkeypatch: pytest.MonkeyPatch):
    scene.commit()
    monkeypatch.setenv("PATH", "")
    assert Repository.find(scene.repository.path) is None


def test_a_moved_threshold_is_a_mismatch(scene: Scene):
    scene.register(FIRST)
    scene.commit()
    evidence = scene.measure()
    scene.commit()
    scene.register(OTHER)
    scene.commit()
    assert scene.grade(evidence, digest=OTHER).grade == Grade.MISMATCH


def test_a_study_that_differs_from_its_lock_is_a_mismatch(scene: Scene):
    scene.register(FIRST)
    scene.commit()
    evidence = scene.measure()
    scene.commit()
    assert scene.grade(evidence, digest=OTHER).grade == Grade.MISMATCH


def test_an_amendment_before_the_data_is_registered(scene: Scene):
    scene.register(FIRST)
    scene.commit()
    scene.register(OTHER)
    scene.commit()
    evidence = scene.measure()
    scene.commit()
    assert scene.grade(evidence_of(evidence, bound=OTHER), digest=OTHER).grade == Grade.REGISTERED


def test_a_change_and_its_reversal_between_do_not_hide_evidence(scene: Scene):
    """Registered, changed, measured, changed back: at the evidence another version stood."""
    scene.register(FIRST)
    scene.commit()
    scene.register(OTHER)
    scene.commit()
    evidence = scene.measure()
    scene.commit()
    scene.register(FIRST)
    scene.commit()
    assert scene.grade(evidence).grade == Grade.MISMATCH


def test_the_worst_of_several_files_decides(scene: Scene):
    early = scene.measure("early.jsonl", "early\n")
    scene.commit()
    scene.register()
    scene.commit()
    late = scene.measure("late.jsonl", "late\n")
    scene.commit()
    assert scene.grade(late).grade == Grade.REGISTERED
    order = scene.grade(late, early)
    assert order.grade == Grade.AFTER_EVIDENCE
    assert "early.jsonl" in order.detail


def branch_and_merge(scene: Scene, *, registered_on_main: bool) -> Path:
    """A file that no side of a merge has comes in with the merge; the registration is on a branch."""
    scene.repository.write("readme", "x")
    scene.commit()
    scene.repository.git("switch", "--quiet", "--create", "side")
    scene.register()
    scene.commit("register")
    scene.repository.git("switch", "--quiet", "main")
    if registered_on_main:
        scene.register()
    scene.repository.write("other", "x")
    scene.commit("main goes on")
    scene.repository.git("merge", "--quiet", "--no-commit", "--no-ff", "side")
    evidence = scene.measure()
    scene.commit("merge")
    return evidence


def test_evidence_in_a_merge_of_which_one_side_was_registered(scene: Scene):
    order = scene.grade(branch_and_merge(scene, registered_on_main=False))
    assert order.grade == Grade.REGISTERED_ONE_SIDE
    assert "1 of 2 sides" in order.detail


def test_evidence_in_a_merge_of_which_both_sides_were_registered(scene: Scene):
    assert scene.grade(branch_and_merge(scene, registered_on_main=True)).grade == Grade.REGISTERED


@pytest.mark.parametrize("registered_first", [True, False])
def test_what_counts_is_the_branch_that_the_evidence_came_in_on(scene: Scene, *, registered_first: bool):
    scene.repository.write("readme", "x")
    scene.commit()
    if registered_first:
        scene.register()
        scene.commit("register")
    scene.repository.git("switch", "--quiet", "--create", "side")
    evidence = scene.measure()
    scene.commit("evidence")
    scene.repository.git("switch", "--quiet", "main")
    if not registered_first:
        scene.register()
    scene.repository.write("other", "x")
    scene.commit("main goes on")
    scene.repository.git("merge", "--quiet", "--no-edit", "side")
    expected = Grade.REGISTERED if registered_first else Grade.AFTER_EVIDENCE
    assert scene.grade(evidence).grade == expected


def test_evidence_that_was_on_a_merged_branch_first_is_found_there(scene: Scene):
    """The same file on main came later; simplified history would show that one alone."""
    scene.repository.write("readme", "x")
    scene.commit()
    scene.repository.git("switch", "--quiet", "--create", "side")
    scene.measure()
    scene.commit("evidence on a branch")
    scene.repository.git("switch", "--quiet", "main")
    scene.register()
    scene.commit("register")
    evidence = scene.measure()
    scene.commit("the same evidence")
    scene.repository.git("merge", "--quiet", "--no-edit", "side")
    assert scene.grade(evidence).grade == Grade.AFTER_EVIDENCE


@pytest.mark.parametrize("registered_first", [True, False])
def test_moving_and_renaming_change_nothing(scene: Scene, *, registered_first: bool):
    steps = [scene.register, scene.measure]
    for step in steps if registered_first else reversed(steps):
        step()
        scene.commit()
    (scene.repository.path / "moved").mkdir()
    for old, new in {
        "experiments/evidence/a.jsonl": "moved/b.jsonl",
        "predictions.lock": "moved/study.lock",
    }.items():
        scene.repository.git("mv", old, new)
    scene.commit("move")
    evidence = scene.repository.path / "moved/b.jsonl"
    expected = Grade.REGISTERED if registered_first else Grade.AFTER_EVIDENCE
    assert scene.grade(evidence).grade == expected


def test_a_copy_is_no_introduction(scene: Scene):
    scene.register()
    scene.commit()
    evidence = scene.measure()
    introduced = scene.commit()
    (scene.repository.path / "predictions.lock").unlink()
    scene.commit("the lock is gone for a while")
    scene.measure("copy.jsonl")
    scene.commit("copy")
    scene.register()
    scene.commit()
    order = scene.grade(evidence)
    assert (order.grade, order.commit) == (Grade.REGISTERED, introduced)


def test_evidence_deleted_and_added_again_is_judged_by_its_worst_introduction(scene: Scene):
    evidence = scene.measure()
    scene.commit()
    evidence.unlink()
    scene.register()
    scene.commit()
    scene.measure()
    scene.commit()
    assert scene.grade(evidence).grade == Grade.AFTER_EVIDENCE


def clone(scene: Scene, depth: int, tmp_path: Path) -> Scene:
    folder = tmp_path / f"depth-{depth}"
    source = scene.repository.path.as_uri()
    subprocess.run(["git", "clone", "--quiet", f"--depth={depth}", source, str(folder)], check=True)
    return Scene(type(scene.repository)(folder))


@pytest.mark.parametrize(("depth", "grade"), [(1, Grade.UNVERIFIABLE), (2, Grade.REGISTERED)])
def test_a_shallow_clone_is_believed_as_far_as_it_goes(
    scene: Scene, tmp_path: Path, depth: int, grade: Grade
):
    scene.register()
    scene.commit()
    evidence = scene.measure()
    scene.commit()
    shallow = clone(scene, depth, tmp_path)
    order = shallow.grade(shallow.repository.path / evidence.relative_to(scene.repository.path))
    assert order.grade == grade
    assert ("fetch-depth: 0" in order.detail) == (grade == Grade.UNVERIFIABLE)


def test_a_shallow_clone_without_evidence_needs_no_history(scene: Scene, tmp_path: Path):
    scene.commit()
    scene.register()
    scene.commit()
    assert clone(scene, 1, tmp_path).grade().grade == Grade.REGISTERED


def test_a_clone_without_blobs_is_as_good_as_a_full_one(scene: Scene, tmp_path: Path):
    scene.repository.git("config", "uploadpack.allowFilter", "true")
    scene.register()
    scene.commit()
    evidence = scene.measure()
    scene.commit()
    folder = tmp_path / "partial"
    source = scene.repository.path.as_uri()
    subprocess.run(["git", "clone", "--quiet", "--filter=blob:none", source, str(folder)], check=True)
    partial = Scene(type(scene.repository)(folder))
    order = partial.grade(folder / evidence.relative_to(scene.repository.path))
    assert order.grade == Grade.REGISTERED


def test_a_study_in_a_subfolder(git_repository: Callable[..., GitRepository]):
    scene = Scene(git_repository(), folder="work/latency/")
    scene.register()
    scene.commit()
    evidence = scene.measure()
    scene.commit()
    assert scene.grade(evidence).grade == Grade.REGISTERED


def test_the_same_id_in_another_study_registers_nothing(git_repository: Callable[..., GitRepository]):
    repository = git_repository()
    mine, theirs = Scene(repository, "mine/"), Scene(repository, "theirs/", study="another")
    theirs.register()
    theirs.commit()
    evidence = mine.measure()
    mine.commit()
    mine.register()
    mine.commit()
    assert mine.grade(evidence).grade == Grade.AFTER_EVIDENCE


def test_two_locks_that_name_one_study_both_count(git_repository: Callable[..., GitRepository]):
    """A study that was copied: what either lock registered was registered."""
    repository = git_repository()
    one, two = Scene(repository, "one/"), Scene(repository, "two/")
    one.register(FIRST)
    two.register(OTHER)
    one.commit()
    evidence = one.measure()
    one.commit()
    assert one.grade(evidence).grade == Grade.REGISTERED
    assert one.grade(evidence_of(evidence, bound=OTHER), digest=OTHER).grade == Grade.REGISTERED
    assert one.grade(evidence, digest=CLAIM).grade == Grade.MISMATCH


def test_names_with_spaces_and_other_scripts(git_repository: Callable[..., GitRepository]):
    scene = Scene(git_repository(), folder="Latenz größer/測定 1/")
    scene.register()
    scene.commit()
    evidence = scene.measure('wie "üblich": a.jsonl')
    scene.commit()
    assert scene.grade(evidence).grade == Grade.REGISTERED


def test_locks_of_other_tools_and_broken_ones_are_passed_over(scene: Scene):
    scene.repository.write("poetry.lock", "[[package]]\nname = 'x'\n")
    scene.repository.write("broken.lock", 'study = "latency"\n[predictions.p]\ndigest = ')
    (scene.repository.path / "binary.lock").write_bytes(b"\xff\xfe\x00")
    scene.commit()
    scene.register()
    scene.commit()
    evidence = scene.measure()
    scene.commit()
    assert scene.grade(evidence).grade == Grade.REGISTERED


def test_grafts_and_replaced_objects_are_not_believed(scene: Scene):
    evidence = scene.measure()
    measured = scene.commit("evidence")
    scene.register()
    registered = scene.commit("register")
    scene.repository.git("switch", "--quiet", "--orphan", "before")
    scene.register()
    before = scene.commit("a registration from nowhere")
    scene.repository.git("switch", "--quiet", "main")
    scene.repository.git("replace", "--graft", measured, before)
    assert scene.grade(evidence).grade == Grade.AFTER_EVIDENCE
    scene.repository.git("replace", "--delete", measured)
    scene.repository.write(".git/info/grafts", f"{measured} {before}\n{registered} {measured}\n")
    assert scene.grade(evidence).grade == Grade.AFTER_EVIDENCE


def test_what_a_git_hook_exports_redirects_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    scene.register()
    scene.commit()
    monkeypatch.setenv("GIT_DIR", str(tmp_path))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    assert scene.grade().grade == Grade.REGISTERED


class TestHeader:
    """What a file of evidence says of itself."""

    @pytest.fixture
    def measured(self, scene: Scene) -> tuple[Scene, str, str, Path]:
        before = scene.commit("before")
        scene.register()
        registered = scene.commit("register")
        evidence = scene.measure()
        scene.commit("evidence")
        return scene, before, registered, evidence

    def test_measured_at_the_registration(self, measured: tuple[Scene, str, str, Path]):
        scene, _, registered, evidence = measured
        order = scene.grade(evidence_of(evidence, head=registered))
        assert (order.grade, order.flags) == (Grade.REGISTERED, ())

    def test_measured_where_it_was_not_registered(self, measured: tuple[Scene, str, str, Path]):
        scene, before, _, evidence = measured
        order = scene.grade(evidence_of(evidence, head=before))
        assert order.grade == Grade.AFTER_EVIDENCE
        assert before[:8] in order.detail

    def test_imports_are_bound_when_imported_and_not_by_a_commit(
        self, measured: tuple[Scene, str, str, Path]
    ):
        scene, before, _, evidence = measured
        order = scene.grade(evidence_of(evidence, head=before, origin="imported"))
        assert (order.grade, order.flags) == (Grade.REGISTERED, ("imported early",))

    @pytest.mark.parametrize("origin", ["measured", "imported"])
    @pytest.mark.parametrize("bound", [None, OTHER])
    def test_measured_for_something_else(
        self, measured: tuple[Scene, str, str, Path], bound: str | None, origin: str
    ):
        scene, _, registered, evidence = measured
        file = evidence_of(evidence, head=registered, bound=bound, origin=origin)
        assert scene.grade(file).grade == Grade.AFTER_EVIDENCE

    @pytest.mark.parametrize("head", ["f" * 40, None, "HEAD", "HEAD\nmain", "main"])
    def test_a_commit_that_is_not_here_is_unbound(
        self, measured: tuple[Scene, str, str, Path], head: str | None
    ):
        scene, _, _, evidence = measured
        order = scene.grade(evidence_of(evidence, head=head))
        assert (order.grade, order.flags) == (Grade.REGISTERED, ("unbound",))

    def test_nothing_that_a_header_says_makes_a_grade_better(self, scene: Scene):
        evidence = scene.measure()
        scene.commit()
        scene.register()
        registered = scene.commit()
        assert scene.grade(evidence_of(evidence, head=registered)).grade == Grade.AFTER_EVIDENCE

    def test_what_was_registered_instead_is_told_only_if_that_is_all_there_is_to_say(self, scene: Scene):
        """Else an amendment that lists it would excuse another file as well, for which nothing was there."""
        scene.register()
        both = scene.measure("both.jsonl", "both\n")
        scene.commit("registration and evidence")
        of_another = evidence_of(scene.measure(), bound=OTHER)
        assert scene.grade(of_another).instead == {OTHER}
        order = scene.grade(of_another, both)
        assert (order.grade, order.instead) == (Grade.AFTER_EVIDENCE, set())

    def test_uncommitted_evidence_is_asked_as_well(self, scene: Scene):
        before = scene.commit("before")
        scene.register()
        scene.commit("register")
        assert scene.grade(evidence_of(scene.measure(), head=before)).grade == Grade.AFTER_EVIDENCE


def test_many_predictions_and_files_cost_the_same_few_processes(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    digests = {f"p{number}": FIRST for number in range(20)}
    scene.register(**digests)
    scene.commit()
    files = [scene.measure(f"{number}.jsonl", f"{number}\n") for number in range(20)]
    for file in files:
        scene.repository.commit("evidence", str(file))
        scene.repository.git("branch", f"at-{file.stem}")
    scene.repository.git("switch", "--quiet", "--orphan", "scratch")
    for number in range(20):
        scene.repository.commit("evidence", str(scene.measure(f"{number}.jsonl", f"{number}\n")))
    scene.repository.git("switch", "--quiet", "main")
    log = tmp_path / "log"
    shim = tmp_path / "bin" / "git"
    shim.parent.mkdir()
    found = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout.strip()
    shim.write_text(f'#!/bin/sh\necho "$@" >> {log}\nexec {found} "$@"\n')
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(shim.parent), prepend=os.pathsep)
    path = scene.repository.path / "predictions.toml"
    study = Study(id="latency", table=StudyTable(id="latency"), path=path, experiments={}, predictions={})
    evidence = {name: [evidence_of(file) for file in files] for name in digests}
    every = [file for several in evidence.values() for file in several]
    orders = grade_all(past_of(Repository.find(path.parent), "latency", every), study, digests, evidence)
    assert {order.grade for order in orders.values()} == {Grade.REGISTERED}
    assert {len(order.contests) for order in orders.values()} == {20}
    assert len(log.read_text().splitlines()) <= 10
