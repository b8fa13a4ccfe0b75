"""Locks merged by real git: with the driver and without, in every way in which git brings branches together."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from audited_study import ROWS, STUDY, Small, new_study
from small_study import Project, copied, new_repository

from pytest_prereg.registry.lock import LockEntry, parse_lock, read_lock, render_lock

if TYPE_CHECKING:
    from collections.abc import Callable

KNOWN = ("a", "v", "w", "x", "y")
BRANCHES = ("b", "c", "d", "e")
"""Neighbours in the lock, which goes by their names."""

LOCK, TOML = "predictions.lock", "predictions.toml"


def claim(name: str, predicts: str = "<= 2 s") -> str:
    lines = (
        f'claim = "Claim {name}."',
        'experiment = "rows"',
        'quantity = "wall"',
        f'predicts = "{predicts}"',
    )
    return "\n".join([f"[predictions.{name}]", *lines, 'falsifier = ">= 9 s"', ""])


def study_of(*names: str, study: str = "s") -> str:
    head = f'[study]\nid = "{study}"\n\n[experiments.rows]\nmetrics = {{ wall = "s" }}\nrepeats = 5\n\n'
    return head + "\n".join(claim(name, f"<= {ord(name)} ms") for name in names)


def tried(project: Project, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs git, which may fail."""
    return subprocess.run(
        ["git", *arguments], cwd=project.path, capture_output=True, text=True, check=False, env=environment()
    )


def environment() -> dict[str, str]:
    """With ``pytest-prereg`` on the path, as where it is installed, and no editor to wait for."""
    beside = str(Path(sys.executable).parent)
    return {**os.environ, "PATH": f"{beside}{os.pathsep}{os.environ['PATH']}", "GIT_EDITOR": "true"}


def shell(project: Project, command: str) -> str:
    done = subprocess.run(
        command, shell=True, cwd=project.path, capture_output=True, text=True, check=False, env=environment()
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def branch_off(project: Project, name: str, text: str) -> None:
    """A branch of ``main`` with this prediction file, registered and committed."""
    project.git("switch", "--quiet", "--create", name, "main")
    project.write(TOML, text)
    project.done("lock")
    project.commit(f"Register {name}")
    project.git("switch", "--quiet", "main")


def registered_here(project: Project, lock: str = LOCK) -> list[str]:
    """The predictions of a lock, which is in the one form that locks have."""
    text = (project.path / lock).read_text(encoding="utf-8")
    assert render_lock(parse_lock(text, lock)) == text
    return list(parse_lock(text, lock).predictions)


def spread(*added: str) -> str:
    """A study where each prediction of a branch stands behind another one that was there before."""
    places = zip(KNOWN, (*BRANCHES, ""), strict=True)
    return study_of(*(name for place in places for name in place if name in (*KNOWN, *added)))


def appended(*added: str) -> str:
    """A study where all of them stand at the end."""
    return study_of(*KNOWN, *added)


@pytest.fixture
def one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Project]:
    """``one_file(spread, driver=True)``: four branches, each with a prediction of its own in one file."""

    def make(text: Callable[..., str], *, driver: bool) -> Project:
        project = new_repository(tmp_path / "study")
        monkeypatch.chdir(project.path)
        project.write(TOML, text())
        if driver:
            project.done("init", "--merge-driver")
        project.done("lock")
        project.commit("Register")
        for name in BRANCHES:
            branch_off(project, name, text(name))
        return project

    return make


ALL = sorted((*KNOWN, *BRANCHES))


def test_a_study_that_is_split_over_files_merges_without_a_driver(tmp_path: Path):
    project = new_repository(tmp_path / "study")
    for name in BRANCHES:
        project.write(f"predictions/{name}.toml", study_of("a", study=name))
        project.done("lock", "--study", f"predictions/{name}.toml")
    project.commit("Register")
    for name in BRANCHES:
        project.git("switch", "--quiet", "--create", name, "main")
        project.write(f"predictions/{name}.toml", study_of("a", name, study=name))
        project.done("lock", "--study", f"predictions/{name}.toml")
        project.commit(f"Register {name}")
    project.git("switch", "--quiet", "main")

    project.git("merge", "--quiet", "--no-edit", *BRANCHES)  # all at once

    for name in BRANCHES:
        assert registered_here(project, f"predictions/{name}.lock") == ["a", name]
        project.done("lock", "--check", "--study", f"predictions/{name}.toml")


def test_four_branches_merge_one_after_the_other(one_file):
    project = one_file(spread, driver=True)
    for name in BRANCHES:
        project.git("merge", "--quiet", "--no-edit", name)
    assert registered_here(project) == ALL
    project.done("lock", "--check")


def test_four_branches_are_rebased_one_onto_the_other(one_file):
    project = one_file(spread, driver=True)
    for onto, name in zip(("main", *BRANCHES), BRANCHES, strict=False):
        project.git("rebase", "--quiet", onto, name)
    assert registered_here(project) == ALL
    assert project.git("rev-list", "--merges", "HEAD") == ""
    project.done("lock", "--check")


def test_four_branches_are_cherry_picked_and_one_is_reverted(one_file):
    project = one_file(spread, driver=True)
    for name in BRANCHES:
        project.git("cherry-pick", name)
    assert registered_here(project) == ALL

    result = tried(project, "revert", "--no-edit", "HEAD~2")  # that of "c"

    assert result.returncode == 1
    assert f"{LOCK}:" in result.stderr
    assert 'PR010: "c" was removed on one side' in result.stderr
    assert (project.path / LOCK).read_text().count("<<<<<<<") == 1


def test_without_the_driver_neighbours_conflict_and_every_command_says_what_helps(one_file, judge):
    project = one_file(spread, driver=False)
    project.git("merge", "--quiet", "--no-edit", "b")
    assert tried(project, "merge", "--no-edit", "c").returncode == 1
    assert project.git("diff", "--name-only", "--diff-filter=U") == LOCK
    advice = f"pytest-prereg init --merge-driver && git checkout -m -- {LOCK} && git add {LOCK}"

    for command in (
        ["lock"],
        ["lock", "--check"],
        ["amend", "a", "--reason", "r"],
        ["explain", "a"],
        ["exclude", "rows/1/1", "--cause", "tool", "--reason", "r"],
        ["cite"],
        ["audit"],
        ["acknowledge", "PR202", "a", "--reason", "r"],
    ):
        result = project.prereg(*command)
        assert result.exit_code == 1, command
        assert f"{LOCK}:" in result.output, command
        assert "PR010" in result.output, command
        assert 'merge-conflict marker "<<<<<<<"' in result.output, command
        assert advice in result.output, command
    judge(project).stdout.fnmatch_lines([f"*{LOCK}:*: PR010: *"])

    shell(project, advice)
    project.done("lock", "--check")
    project.git("commit", "--quiet", "--no-edit")
    assert registered_here(project) == sorted((*KNOWN, "b", "c"))


def test_the_advice_helps_when_a_rebase_stopped_and_when_markers_were_added(one_file):
    project = one_file(appended, driver=False)
    assert tried(project, "rebase", "b", "c").returncode == 1
    project.write(TOML, appended("b", "c"))
    project.git("add", LOCK)

    advice = project.prereg("lock").output.splitlines()[2].strip()
    assert advice.startswith("pytest-prereg init --merge-driver && git checkout -m")
    shell(project, f"{advice} && git add {TOML} && git rebase --continue")

    assert registered_here(project) == sorted((*KNOWN, "b", "c"))
    project.done("lock", "--check")


def test_markers_that_were_committed_are_merged_anew_from_their_versions(one_file):
    project = one_file(spread, driver=False)
    project.git("merge", "--quiet", "--no-edit", "b")
    tried(project, "merge", "--no-edit", "c")
    project.commit("Merge, blindly")

    shell(
        project,
        f"git show $(git merge-base HEAD^1 HEAD^2):{LOCK} > base && git show HEAD^1:{LOCK} > ours && "
        f"git show HEAD^2:{LOCK} > theirs && pytest-prereg merge-lock base ours theirs && mv ours {LOCK}",
    )

    assert registered_here(project) == sorted((*KNOWN, "b", "c"))
    project.done("lock", "--check")


def test_a_prediction_file_that_conflicts_is_decided_by_hand_and_the_lock_is_not(one_file):
    project = one_file(appended, driver=True)
    for number, name in enumerate(BRANCHES):
        result = tried(project, "merge", "--no-edit", name)
        assert result.returncode == (1 if number else 0)
        assert f"{LOCK}" not in project.git("diff", "--name-only", "--diff-filter=U")
        project.write(TOML, appended(*BRANCHES[: number + 1]))
        project.commit(f"Merge {name}")
        assert registered_here(project) == sorted((*KNOWN, *BRANCHES[: number + 1]))
        project.done("lock", "--check")


def test_all_at_once_git_merges_without_drivers_or_not_at_all(one_file):
    """An octopus never asks a driver; of what it can't merge by lines it leaves nothing behind."""
    project = one_file(spread, driver=True)
    before = project.git("rev-parse", "HEAD")
    result = tried(project, "merge", "--no-edit", *BRANCHES)
    assert result.returncode != 0
    assert "Should not be doing an octopus" in result.stdout + result.stderr
    project.git("reset", "--quiet", "--merge")
    assert project.git("rev-parse", "HEAD") == before
    assert registered_here(project) == list(KNOWN)


def test_branches_that_merged_each_other_merge(one_file):
    """Criss-cross: git merges the common versions first, by the driver as well."""
    project = one_file(spread, driver=True)
    for one, other in (("b", "c"), ("c", "b")):
        project.git("switch", "--quiet", "--detach", one)
        project.git("merge", "--quiet", "--no-edit", other)
        project.git("branch", f"{one}-and-{other}")
    project.git("switch", "--quiet", "b-and-c")
    project.git("merge", "--quiet", "--no-edit", "d")
    project.git("switch", "--quiet", "c-and-b")
    project.git("merge", "--quiet", "--no-edit", "e")
    assert len(project.git("merge-base", "--all", "b-and-c", "c-and-b").split()) == 2

    project.git("merge", "--quiet", "--no-edit", "b-and-c")

    assert registered_here(project) == ALL


# What the merged lock is worth


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A claim, registered and amended on ``main``; on the branch ``measured`` its evidence, then its verdict."""
    project = new_study(tmp_path_factory.mktemp("merging") / "study", text=f"{STUDY}\n{ELSEWHERE}")
    project.done("init", "--merge-driver")
    project.done("lock")
    project.commit("Register")
    raised(project, "2", "1.9")
    project.git("switch", "--quiet", "--create", "measured")
    project.take_in()
    project.record()
    project.git("switch", "--quiet", "main")
    return project.path


ELSEWHERE = '[experiments.elsewhere]\nmetrics = { wall = "s" }\nrepeats = 3\n'


def raised(project: Project, old: str, new: str) -> None:
    project.edit(TOML, f'"<= {old} s"', f'"<= {new} s"')
    project.done("amend", "below-two", "--reason", f"{new} is enough")
    project.commit("Amend")


@pytest.fixture
def study(measured: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Small:
    """A copy of that, and the current folder is in it."""
    path = copied(Project(measured), tmp_path / "study").path
    monkeypatch.chdir(path)
    return Small(path, path)


def register_another(project: Small, experiment: str) -> None:
    text = (project.path / TOML).read_text(encoding="utf-8")
    project.write(TOML, f"{text}\n{claim('new').replace('rows', experiment)}")
    project.done("lock")
    project.commit("Register another")


def test_recorded_on_one_branch_and_registered_on_the_other_both_come_before_their_evidence(study: Small):
    register_another(study, "elsewhere")

    study.git("merge", "--quiet", "--no-edit", "measured")

    assert registered_here(study) == ["below-two", "new"]
    study.done("lock", "--check")
    audit = study.audit()
    assert [audit.order(name)[0] for name in ("below-two", "new")] == ["registered", "registered"]
    assert audit.order() == ("registered", "confirmatory")
    assert [one for one in audit.told if one[1] == "error"] == []


def test_a_claim_registered_beside_the_data_of_its_experiment_does_not_come_before_them(study: Small):
    """A branch from before the data, on which it was registered after them, changes nothing."""
    register_another(study, "rows")
    study.git("merge", "--quiet", "--no-edit", "measured")

    audit = study.audit()
    assert audit.order("new") == ("after-evidence", "exploratory")
    assert ("PR212", "error") in [one[:2] for one in audit.told]


def test_amended_on_one_branch_and_recorded_on_the_other_is_for_a_person(study: Small):
    raised(study, "1.9", "1.8")

    result = tried(study, "merge", "--no-edit", "measured")

    assert result.returncode == 1
    assert 'PR010: "below-two" was amended on one side and given a verdict on the other' in result.stderr
    assert (study.path / LOCK).read_text().count("[predictions.below-two]") == 2
    assert study.prereg("lock", "--check").exit_code == 1


@pytest.mark.parametrize("reason", ["1.8 is enough", "It was decided so in the merge."])
def test_taking_the_verdict_and_amending_anew_leaves_nothing_to_be_mended(study: Small, reason: str):
    raised(study, "1.9", "1.8")
    conflicting(study)
    study.git("checkout", "measured", "--", LOCK)
    study.git("commit", "--quiet", "--all", "--message", "Merge")
    assert ("PR202", "error") in [one[:2] for one in study.audit().told]

    study.done("amend", "below-two", "--reason", reason)
    study.commit("Amend anew")

    audit = study.audit()
    assert {one["level"] for one in audit.findings} == {"review", "notice"}
    assert audit.exit == 0
    assert [one.verdict for one in entry_of(study).amendments] == [None, "supported"]


def test_taking_the_amendment_leaves_out_a_verdict_that_it_explains(study: Small):
    raised(study, "1.9", "1.8")
    conflicting(study)
    study.git("checkout", "HEAD", "--", LOCK)
    study.git("commit", "--quiet", "--all", "--message", "Merge")

    audit = study.audit()

    (dropped,) = (one for one in audit.findings if one["code"] == "PR205")
    assert (dropped["about"], dropped["acknowledged"]) == ("supported -> none", "amended: 1.8 is enough")
    assert audit.exit == 0


def test_no_amendment_explains_that_a_merge_leaves_out_a_refutation(study: Small):
    study.git("switch", "--quiet", "measured")
    study.git("reset", "--quiet", "--hard", "main")
    study.write("rows.csv", ROWS.replace("1.", "5.").replace("0.", "5."))
    study.take_in()
    study.record()
    study.git("switch", "--quiet", "main")
    raised(study, "1.9", "1.8")
    conflicting(study)
    study.git("checkout", "HEAD", "--", LOCK)
    study.git("commit", "--quiet", "--all", "--message", "Merge")

    audit = study.audit()

    (dropped,) = (one for one in audit.findings if one["code"] == "PR205")
    assert (dropped["about"], dropped["acknowledged"]) == ("refuted -> none", None)
    assert audit.exit == 1


def entry_of(study: Small) -> LockEntry:
    lock = read_lock(study.path / LOCK)
    assert lock is not None
    return lock.predictions["below-two"]


def conflicting(study: Small) -> None:
    """Begins a merge of the verdict, which stops."""
    assert tried(study, "merge", "--no-edit", "measured").returncode == 1


def test_what_git_merges_by_lines_alone_is_never_more_than_exploratory(study: Small, judge):
    """A second amendment and a verdict lie apart in the text: without the driver git sees no conflict."""
    study.git("config", "--unset", "merge.pytest-prereg.driver")
    raised(study, "1.9", "1.8")

    study.git("merge", "--quiet", "--no-edit", "measured")

    lock = read_lock(study.path / LOCK)
    assert lock is not None
    assert lock.predictions["below-two"].verdict == "supported"
    audit = study.audit()
    assert audit.order() == ("mismatch", "exploratory")
    assert {("PR202", "review"), ("PR211", "error")} <= {one[:2] for one in audit.told}
    assert "its evidence was taken for another registration" in audit.message("PR211")
    assert audit.exit == 1
    judge(study, "--prereg-verify", "--prereg-locked").stdout.fnmatch_lines(["*PR211*another registration*"])


def test_a_verdict_is_told_to_be_recorded_anew_after_an_exclusion_of_the_other_branch(study: Small, judge):
    study.git("merge", "--quiet", "--ff-only", "measured^")
    study.done("exclude", "rows/1/3", "--cause", "instrument", "--reason", "The clock stood still.")
    study.commit("Exclude")

    result = tried(study, "merge", "--no-edit", "measured")

    assert result.returncode == 0
    assert '"rows/1/3" set aside on one side' in result.stderr
    assert 'the verdict of "below-two" recorded on the other' in result.stderr
    judge(study, "--prereg-verify").stdout.fnmatch_lines(["*PR211*when *rows/1/3* still counted*"])


# Setting it up


def test_init_tells_git_and_its_next_command_commits_that(tmp_path: Path, monkeypatch):
    project = new_repository(tmp_path / "study")
    monkeypatch.chdir(project.path)
    said = project.done("init")
    assert ".gitattributes" in said.splitlines()[0]
    assert "merging:   pytest-prereg init --merge-driver, once in each clone" in said
    command = project.done("lock").splitlines()[-1].removeprefix("next:  ")
    shell(project, command)
    assert ".gitattributes" in project.git("ls-files")
    assert ".gitattributes" not in project.done("lock").splitlines()[-1]
    assert attributes(project, "predictions.lock") == {"text": "set", "eol": "lf", "merge": "pytest-prereg"}
    assert attributes(project, "predictions/x.lock") == {"text": "set", "eol": "lf", "merge": "pytest-prereg"}
    assert attributes(project, "poetry.lock") == {}
    assert attributes(project, "experiments/evidence/sorting/1.jsonl") == {"text": "unset"}
    assert attributes(project, "predictions/experiments/evidence/e/vectors/0.f64.gz") == {"text": "unset"}


def attributes(project: Project, name: str) -> dict[str, str]:
    listed = project.git("check-attr", "-a", name).splitlines()
    return dict(line.removeprefix(f"{name}: ").split(": ") for line in listed)


@pytest.mark.parametrize("there", ["*.png binary", "*.png binary\n", "* text=auto\r\n"])
def test_attributes_that_are_there_are_kept_and_added_to_once(tmp_path: Path, monkeypatch, there: str):
    project = new_repository(tmp_path / "study")
    monkeypatch.chdir(project.path)
    (project.path / ".gitattributes").write_bytes(there.encode())
    project.done("init")
    after = (project.path / ".gitattributes").read_bytes()
    assert after.startswith(there.encode())
    assert attributes(project, "predictions.lock")["merge"] == "pytest-prereg"
    assert ".gitattributes says already" in project.done("init", "--merge-driver")
    assert (project.path / ".gitattributes").read_bytes() == after


def test_evidence_that_a_study_keeps_elsewhere_is_kept_to_the_byte_as_well(tmp_path: Path, monkeypatch):
    project = new_repository(tmp_path / "study")
    monkeypatch.chdir(project.path)
    project.write(TOML, study_of("a").replace('id = "s"', 'id = "s"\nevidence = "kept [all] here"'))
    project.done("init", "--merge-driver")
    assert attributes(project, "kept [all] here/rows/1.jsonl") == {"text": "unset"}
    assert attributes(project, "kept a here/rows/1.jsonl") == {}


def test_it_is_set_up_once_in_a_clone_whatever_worktree_it_is_typed_in(tmp_path: Path, monkeypatch):
    project = new_repository(tmp_path / "study")
    project.write(TOML, study_of("a"))
    project.commit("Write")
    project.git("worktree", "add", "--quiet", str(tmp_path / "other"))
    other = Project(tmp_path / "other")
    said = other.done("init", "--merge-driver")
    assert "this clone has the merge driver now: git config merge.pytest-prereg.driver '" in said
    assert "next:  git add .gitattributes && git commit" in said
    again = project.done("init", "--merge-driver")
    assert "this clone has the merge driver already" in again
    assert (other.path / ".gitattributes").read_text() == (project.path / ".gitattributes").read_text()


def test_a_submodule_is_a_clone_of_its_own(tmp_path: Path):
    inner = new_repository(tmp_path / "inner")
    inner.write(TOML, study_of("a"))
    inner.commit("Write")
    outer = new_repository(tmp_path / "outer")
    outer.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.path), "sub")
    sub = Project(outer.path / "sub")
    sub.done("init", "--merge-driver")
    assert "merge-lock" in sub.git("config", "merge.pytest-prereg.driver")
    assert tried(outer, "config", "merge.pytest-prereg.driver").returncode == 1
    assert not (outer.path / ".gitattributes").exists()


def test_outside_of_git_there_is_nothing_to_set_up(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = Project(tmp_path).prereg("init", "--merge-driver")
    assert result.exit_code == 2
    assert result.output.startswith("PR101: there is no git repository here")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("gone", ["/nowhere/bin/python", "false"])
def test_a_tool_that_is_gone_leaves_the_merge_that_git_makes_and_never_one_side(one_file, monkeypatch, gone):
    project = one_file(spread, driver=False)
    monkeypatch.setattr(sys, "executable", gone)
    project.done("init", "--merge-driver")
    project.git("merge", "--quiet", "--no-edit", "b")
    result = tried(project, "merge", "--no-edit", "c")
    assert result.returncode == 1
    assert f"Merge conflict in {LOCK}" in result.stdout
    text = (project.path / LOCK).read_text()
    assert ["[predictions.b]" in text, "[predictions.c]" in text] == [True, True]


def test_modules_of_the_work_tree_are_not_run(one_file):
    """Whoever can have a branch merged must not be able to have code run by that."""
    project = one_file(spread, driver=True)
    project.write("click.py", 'import pathlib\npathlib.Path("run.txt").write_text("run")\n')
    project.commit("Shadow")
    for name in ("b", "c"):
        project.git("merge", "--quiet", "--no-edit", name)
    assert registered_here(project) == sorted((*KNOWN, "b", "c"))
    assert not (project.path / "run.txt").exists()


def test_the_driver_loads_only_what_it_needs(tmp_path: Path):
    """Git runs it once for each lock and commit of a rebase."""
    text = render_lock(parse_lock('study = "s"', ""))
    for name in ("base", "ours", "theirs"):
        (tmp_path / name).write_text(text + ("\n" if name == "ours" else ""))
    code = (
        "import sys; from pytest_prereg.cli import main\n"
        "try: main(sys.argv[1:])\nfinally: print(*sys.modules)"
    )
    command = [sys.executable, "-c", code, "merge-lock", "base", "ours", "theirs"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "pytest_prereg.registry.merging" in loaded
    assert not loaded & {"numpy", "scipy", "pint", "pytest", "subprocess", "markdown_it", "torch"}
    folders = {name.split(".")[1] for name in loaded if name.startswith("pytest_prereg.")}
    assert not folders & {"audit", "evidence", "judge", "measure"}


# Line endings


@pytest.mark.parametrize("told", [True, False])
def test_a_clone_that_wants_other_line_endings_keeps_evidence_to_the_byte(tmp_path: Path, told: bool):  # noqa: FBT001
    project = new_study(tmp_path / "study")
    if told:
        project.done("init", "--merge-driver")
    project.done("lock")
    project.commit("Register")
    project.take_in()
    (evidence,) = project.evidence()
    (project.path / "rows.csv").write_text(ROWS)

    clone = project.cloned(tmp_path / "clone", "--config", "core.autocrlf=true")

    (there,) = clone.evidence()
    assert (there.read_bytes() == evidence.read_bytes()) is told
    lock = (clone.path / LOCK).read_bytes()
    assert (lock == (project.path / LOCK).read_bytes()) is told
    assert (clone.audit().exit == 0) is told
