"""What other branches and tags say of evidence: against its order, and for it."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from scenes import FIRST, OTHER, Scene, evidence_of

from pytest_prereg.audit.history.order import Grade

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_prereg.audit.history.order import Order


@pytest.fixture
def scene(git_repository: Callable[..., object]) -> Scene:
    """With one commit, which has nothing to do with the study."""
    scene = Scene(git_repository())
    scene.repository.write("readme", "x")
    scene.commit()
    return scene


def said(order: Order) -> tuple[Grade, bool]:
    """The grade, and whether it is contested: said by the flag and by what contests it."""
    assert ("contested" in order.flags) == bool(order.contests)
    return order.grade, bool(order.contests)


def scratch(scene: Scene) -> tuple[Path, str]:
    """Evidence on branch ``scratch`` before anything is registered, and again on main after that was."""
    git = scene.repository.git
    git("switch", "--quiet", "--create", "scratch")
    scene.measure()
    first = scene.commit("measured on a scratch branch")
    git("switch", "--quiet", "main")
    scene.register()
    scene.commit("register")
    evidence = scene.measure()
    scene.commit("the same evidence")
    return evidence, first


class TestContested:
    """A worse introduction on another ref never changes the grade, and is told."""

    @pytest.mark.parametrize("hold", ["branch", "remote branch", "tag"])
    def test_by_what_holds_the_commit(self, scene: Scene, hold: str):
        evidence, first = scratch(scene)
        git = scene.repository.git
        names = {"branch": "scratch", "remote branch": "origin/scratch", "tag": "keep"}
        if hold == "remote branch":
            git("update-ref", f"refs/remotes/{names[hold]}", first)
        elif hold == "tag":
            git("tag", "--annotate", "--message", "x", "keep", first)
        if hold != "branch":
            git("branch", "--quiet", "-D", "scratch")
        order = scene.grade(evidence)
        assert said(order) == (Grade.REGISTERED, True)
        (contest,) = order.contests
        assert (contest.grade, contest.commit) == (Grade.AFTER_EVIDENCE, first)
        assert contest.detail.endswith(f"{first[:8]} on {hold} {names[hold]}: after-evidence there")

    def test_by_nothing_once_no_ref_holds_the_commit(self, scene: Scene):
        evidence, _ = scratch(scene)
        scene.repository.git("branch", "--quiet", "-D", "scratch")
        order = scene.grade(evidence)
        assert said(order) == (Grade.REGISTERED, False)

    @pytest.mark.parametrize("ref", ["refs/stash", "refs/notes/scratch", "refs/replace/scratch", "refs/kept"])
    def test_not_by_stashes_notes_and_what_is_no_branch(self, scene: Scene, ref: str):
        evidence, first = scratch(scene)
        scene.repository.git("branch", "--quiet", "-D", "scratch")
        scene.repository.git("update-ref", ref, first)
        assert said(scene.grade(evidence)) == (Grade.REGISTERED, False)

    def test_all_refs_are_named_up_to_three_and_a_remotes_head_is_none(self, scene: Scene):
        evidence, first = scratch(scene)
        for name in ("heads/scratch-2", "remotes/origin/scratch", "remotes/origin/HEAD", "tags/a", "tags/b"):
            scene.repository.git("update-ref", f"refs/{name}", first)
        (contest,) = scene.grade(evidence).contests
        assert (
            "on branch scratch, branch scratch-2, remote branch origin/scratch and 2 more:" in contest.detail
        )

    def test_not_by_one_that_is_no_worse(self, scene: Scene):
        """The branch from which evidence was picked had the registration as well."""
        scene.register()
        scene.commit("register")
        scene.repository.git("switch", "--quiet", "--create", "work")
        evidence = scene.measure()
        scene.commit("evidence")
        scene.repository.git("switch", "--quiet", "main")
        scene.measure()
        scene.commit("picked")
        order = scene.grade(evidence)
        assert said(order) == (Grade.REGISTERED, False)

    def test_not_where_head_is_as_bad(self, scene: Scene):
        evidence = scene.measure()
        scene.commit("evidence")
        scene.register()
        scene.commit("register")
        scene.repository.git("switch", "--quiet", "--orphan", "other")
        scene.measure()
        scene.commit("evidence from nowhere")
        scene.repository.git("switch", "--quiet", "main")
        order = scene.grade(evidence)
        assert said(order) == (Grade.AFTER_EVIDENCE, False)

    def test_by_a_branch_alone_where_the_evidence_is_not_committed_here(self, scene: Scene):
        scene.repository.git("switch", "--quiet", "--create", "scratch")
        evidence = scene.measure()
        first = scene.commit("evidence")
        scene.repository.git("switch", "--quiet", "main")
        scene.register()
        scene.commit("register")
        scene.measure()
        order = scene.grade(evidence)
        assert said(order) == (Grade.REGISTERED, True)
        assert order.contests[0].commit == first

    def test_by_what_comes_after_head_as_well(self, scene: Scene):
        """A detached HEAD: main is ahead, where the evidence came in when nothing was registered any more."""
        scene.register()
        registered = scene.commit("register")
        (scene.repository.path / "predictions.lock").unlink()
        scene.commit("without lock")
        evidence = scene.measure()
        late = scene.commit("nothing is registered")
        scene.repository.git("switch", "--quiet", "--detach", registered)
        assert evidence == scene.measure()
        order = scene.grade(evidence)
        assert said(order) == (Grade.REGISTERED, True)
        assert (order.contests[0].grade, order.contests[0].commit) == (Grade.AFTER_EVIDENCE, late)

    def test_not_by_an_honest_branch_that_is_ahead(self, scene: Scene):
        scene.register()
        registered = scene.commit("register")
        evidence = scene.measure()
        scene.commit("evidence")
        scene.repository.git("switch", "--quiet", "--detach", registered)
        scene.measure()
        order = scene.grade(evidence)
        assert said(order) == (Grade.REGISTERED, False)

    def test_not_by_a_branch_whose_history_is_cut(self, scene: Scene, tmp_path: Path):
        evidence, _ = scratch(scene)
        folder = tmp_path / "shallow"
        source = scene.repository.path.as_uri()
        subprocess.run(["git", "clone", "--quiet", "--depth=2", source, str(folder)], check=True)
        shallow = Scene(type(scene.repository)(folder))
        into = "scratch:refs/remotes/origin/scratch"
        shallow.repository.git("fetch", "--quiet", "--depth=1", "origin", into)
        assert len(shallow.repository.git("log", "--format=%H", "origin/scratch").splitlines()) == 1
        order = shallow.grade(folder / evidence.relative_to(scene.repository.path))
        assert said(order) == (Grade.REGISTERED, False)

    def test_by_a_branch_that_head_was_squashed_onto(self, scene: Scene):
        scene.repository.git("switch", "--quiet", "--create", "work")
        scene.register()
        scene.commit("register")
        evidence = scene.measure()
        scene.commit("evidence")
        scene.repository.git("switch", "--quiet", "main")
        scene.repository.git("merge", "--quiet", "--squash", "work")
        scene.commit("squashed")
        scene.repository.git("switch", "--quiet", "work")
        order = scene.grade(evidence)
        assert said(order) == (Grade.REGISTERED, True)
        scene.repository.git("tag", "prereg/latency/1", "work~1")
        assert said(scene.grade(evidence)) == (Grade.REGISTERED, False)

    def test_a_ref_that_names_no_commit_says_nothing(self, scene: Scene):
        scene.register()
        scene.commit("register")
        evidence = scene.measure()
        scene.commit("evidence")
        scene.repository.git("tag", "a-tree", "HEAD^{tree}")
        scene.repository.git("tag", "a-file", "HEAD:readme")
        scene.repository.write(".git/refs/heads/gone", f"{'d' * 40}\n")
        assert scene.grade(evidence).grade == Grade.REGISTERED


@pytest.fixture
def squashed(scene: Scene) -> tuple[Scene, Path, str]:
    """Registered, then measured, and squashed into one commit; the commit that had the registration alone."""
    git = scene.repository.git
    git("switch", "--quiet", "--create", "work")
    scene.register()
    registered = scene.commit("register")
    evidence = scene.measure()
    scene.commit("evidence")
    git("switch", "--quiet", "main")
    git("merge", "--quiet", "--squash", "work")
    scene.commit("squashed")
    git("branch", "--quiet", "-D", "work")
    return scene, evidence, registered


class TestWitnessed:
    """A tag of the lock rescues what is simultaneous, and nothing else."""

    def tagged(self, scene: Scene, commit: str, name: str = "prereg/latency/1") -> None:
        scene.repository.git("tag", name, commit)

    def test_without_a_tag_it_is_simultaneous(self, squashed: tuple[Scene, Path, str]):
        scene, evidence, _ = squashed
        assert scene.grade(evidence).grade == Grade.SIMULTANEOUS

    @pytest.mark.parametrize("kind", ["lightweight", "annotated", "of a tag"])
    def test_whatever_kind_of_tag_it_is(self, squashed: tuple[Scene, Path, str], kind: str):
        scene, evidence, registered = squashed
        git = scene.repository.git
        if kind == "lightweight":
            self.tagged(scene, registered)
        else:
            git("tag", "--annotate", "--message", "x", "prereg/latency/1", registered)
        if kind == "of a tag":
            git("tag", "--annotate", "--message", "x", "prereg/latency/2", "prereg/latency/1")
            git("tag", "--delete", "prereg/latency/1")
        order = scene.grade(evidence)
        assert said(order) == (Grade.WITNESSED, False)
        assert f"tag prereg/latency/{2 if kind == 'of a tag' else 1} ({registered[:8]})" in order.detail

    @pytest.mark.parametrize("name", ["prereg/other/1", "prereg/latency-2/1", "latency/1", "prereg-latency"])
    def test_only_tags_of_this_study_count(self, squashed: tuple[Scene, Path, str], name: str):
        scene, evidence, registered = squashed
        self.tagged(scene, registered, name)
        assert scene.grade(evidence).grade == Grade.SIMULTANEOUS

    def test_a_branch_of_that_name_is_no_tag(self, squashed: tuple[Scene, Path, str]):
        scene, evidence, registered = squashed
        scene.repository.git("branch", "prereg/latency/1", registered)
        assert scene.grade(evidence).grade == Grade.SIMULTANEOUS

    @pytest.mark.parametrize("target", ["{tree}", "blob"])
    def test_a_tag_of_a_tree_or_a_file_is_no_witness(self, squashed: tuple[Scene, Path, str], target: str):
        scene, evidence, registered = squashed
        what = f"{registered}^{{tree}}" if target == "{tree}" else f"{registered}:predictions.lock"
        self.tagged(scene, what)
        assert scene.grade(evidence).grade == Grade.SIMULTANEOUS

    def test_a_tag_before_the_registration_is_no_witness(self, squashed: tuple[Scene, Path, str]):
        scene, evidence, registered = squashed
        self.tagged(scene, f"{registered}~1")
        assert scene.grade(evidence).grade == Grade.SIMULTANEOUS

    def test_a_tag_of_another_registration_is_no_witness(self, scene: Scene):
        scene.register(OTHER)
        scene.commit("register otherwise")
        self.tagged(scene, "HEAD")
        scene.register(FIRST)
        evidence = scene.measure()
        scene.commit("amended, and measured")
        assert scene.grade(evidence).grade == Grade.SIMULTANEOUS

    @pytest.mark.parametrize("where", ["experiments/evidence/a.jsonl", "notes/of-mine.txt"])
    def test_a_tag_that_has_the_evidence_anywhere_is_no_witness(self, scene: Scene, where: str):
        scene.repository.git("switch", "--quiet", "--create", "side")
        scene.register()
        scene.repository.write(where, "one\n")
        self.tagged(scene, scene.commit("both, on the side"))
        scene.repository.git("switch", "--quiet", "main")
        scene.register()
        evidence = scene.measure()
        scene.commit("both")
        scene.repository.git("branch", "--quiet", "-D", "side")
        assert scene.grade(evidence).grade == Grade.SIMULTANEOUS

    def test_a_tag_from_whose_past_the_evidence_was_deleted_is_no_witness(self, scene: Scene):
        scene.register()
        evidence = scene.measure()
        scene.commit("both")
        evidence.unlink()
        self.tagged(scene, scene.commit("without it"))
        scene.measure()
        scene.commit("again")
        order = scene.grade(evidence)
        assert order.grade == Grade.SIMULTANEOUS

    def test_nor_where_it_was_deleted_on_a_branch_of_the_tag_alone(self, scene: Scene):
        git = scene.repository.git
        git("switch", "--quiet", "--create", "side")
        evidence = scene.measure("b.jsonl")
        scene.commit("evidence on the side")
        evidence.unlink()
        scene.register()
        self.tagged(scene, scene.commit("registered without it"))
        git("switch", "--quiet", "main")
        scene.register()
        evidence = scene.measure()
        scene.commit("both")
        git("branch", "--quiet", "-D", "side")
        order = scene.grade(evidence)
        assert said(order) == (Grade.SIMULTANEOUS, True)

    def test_one_tag_serves_every_commit_with_both(self, squashed: tuple[Scene, Path, str]):
        scene, evidence, registered = squashed
        evidence.unlink()
        (scene.repository.path / "predictions.lock").unlink()
        scene.commit("neither")
        scene.register()
        scene.measure()
        scene.commit("both, again")
        assert scene.grade(evidence).grade == Grade.SIMULTANEOUS
        self.tagged(scene, registered)
        assert scene.grade(evidence).grade == Grade.WITNESSED

    def test_every_file_needs_one(self, squashed: tuple[Scene, Path, str]):
        scene, evidence, registered = squashed
        self.tagged(scene, registered)
        (scene.repository.path / "predictions.lock").unlink()
        scene.commit("not registered")
        late = scene.measure("late.jsonl", "late\n")
        scene.register()
        scene.commit("both")
        assert scene.grade(evidence, late).grade == Grade.WITNESSED
        scene.repository.git("switch", "--quiet", "--orphan", "before")
        scene.measure("late.jsonl", "late\n")
        before = scene.commit("late, from nowhere")
        scene.repository.git("switch", "--quiet", "main")
        scene.repository.git("tag", "--delete", "prereg/latency/1")
        scene.repository.git("merge", "--quiet", "--no-edit", "--allow-unrelated-histories", "before")
        scene.repository.git("checkout", "--quiet", before)
        scene.register()
        self.tagged(scene, scene.commit("a tag that has the one, and not the other"))
        scene.repository.git("switch", "--quiet", "main")
        assert scene.grade(evidence).grade == Grade.WITNESSED
        assert scene.grade(evidence, late).grade == Grade.AFTER_EVIDENCE

    def test_it_never_excuses_evidence_that_came_first(self, scene: Scene):
        evidence = scene.measure()
        scene.commit("evidence")
        scene.register()
        scene.commit("register")
        scene.repository.git("switch", "--quiet", "--orphan", "made-up")
        scene.register()
        self.tagged(scene, scene.commit("a registration from nowhere"))
        scene.repository.git("switch", "--quiet", "main")
        assert scene.grade(evidence).grade == Grade.AFTER_EVIDENCE

    def test_it_never_excuses_another_registration(self, scene: Scene):
        scene.register(FIRST)
        self.tagged(scene, scene.commit("register"))
        scene.register(OTHER)
        evidence = scene.measure()
        scene.commit("another, and evidence")
        scene.register(FIRST)
        scene.commit("moved back")
        (scene.repository.path / "readme").write_text("y")
        assert scene.grade(evidence).grade == Grade.REGISTERED  # it stood in the commit before
        (scene.repository.path / "predictions.lock").unlink()
        scene.commit("no lock")
        scene.register(OTHER)
        scene.measure(text="two\n")
        scene.commit("another, and other evidence")
        scene.register(FIRST)
        scene.commit("moved back")
        assert scene.grade(evidence).grade == Grade.MISMATCH

    @pytest.mark.parametrize("bound", [None, OTHER])
    def test_it_never_excuses_what_the_file_itself_says(
        self, squashed: tuple[Scene, Path, str], bound: str | None
    ):
        scene, evidence, registered = squashed
        self.tagged(scene, registered)
        assert scene.grade(evidence_of(evidence, bound=bound)).grade == Grade.AFTER_EVIDENCE

    def test_it_never_excuses_a_file_measured_where_it_was_not_registered(
        self, squashed: tuple[Scene, Path, str]
    ):
        scene, evidence, registered = squashed
        self.tagged(scene, registered)
        before = scene.repository.git("rev-parse", f"{registered}~1")
        assert scene.grade(evidence_of(evidence, head=before)).grade == Grade.AFTER_EVIDENCE
        assert scene.grade(evidence_of(evidence, head=registered)).grade == Grade.WITNESSED
