"""Evidence that an author would have forgotten: what an audit still knows of it, each beside an honest history.

The evidence refutes, and is committed, in most of them.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from audited_study import STUDY, Small, new_study
from small_study import Project, copied

from pytest_prereg.audit.history import committed_sessions

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HEAD = "repeat,metric,value,unit\n"
SLOW = HEAD + "".join(f"{i},wall,{value},s\n" for i, value in enumerate((3.91, 4.12, 3.93, 4.04, 3.95), 1))
QUICK = HEAD + "".join(f"{i},wall,{value},s\n" for i, value in enumerate((1.01, 1.12, 0.93, 1.04, 0.95), 1))
GONE = ("PR207", "error")


@pytest.fixture(scope="module")
def refuted_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = new_study(tmp_path_factory.mktemp("refuted") / "study")
    project.write("rows.csv", SLOW)
    project.register()
    project.measure()
    return project.path


@pytest.fixture
def measured(refuted_once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Small:
    """Registered, and measured: what refutes it is not committed yet."""
    folder = copied(Project(refuted_once), tmp_path / "study").path
    monkeypatch.chdir(folder)
    return Small(folder, folder)


@pytest.fixture
def refuted(measured: Small) -> Small:
    """The same, and committed."""
    measured.keep("Evidence", "experiments")
    return measured


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Small]:
    """``begun()``: nothing is registered yet."""

    def make(text: str = STUDY) -> Small:
        project = new_study(tmp_path / "study", text=text)
        project.write("rows.csv", SLOW)
        monkeypatch.chdir(project.path)
        return project

    return make


def again(project: Small) -> None:
    """Imports and commits what supports it."""
    project.write("more.csv", QUICK)
    project.measure("more.csv")
    project.keep("More evidence", "experiments", "more.csv")


def told(project: Small) -> list[tuple[str, str]]:
    """Code and level of every finding but notices."""
    findings = project.audit().findings
    return [(one["code"], one["level"]) for one in findings if one["level"] != "notice"]


def session(project: Small) -> Path:
    (path,) = project.evidence()
    return path


def with_header(path: Path, **changes: Any) -> str:
    """A session's text with another header, and a last line that fits it no more."""
    first, _, rest = path.read_text().partition("\n")
    return json.dumps(json.loads(first) | changes) + "\n" + rest


# By another name


def test_evidence_that_was_called_otherwise_is_missed(measured: Small):
    session(measured).rename(session(measured).with_name("first.jsonl"))
    measured.keep("Evidence", "experiments")
    assert told(measured) == []
    measured.git("rm", "--quiet", "experiments/evidence/rows/first.jsonl")
    again(measured)
    assert told(measured) == [GONE]
    assert measured.audit().message("PR207") == 'evidence "rows/first.jsonl" was committed, and is gone'


def test_it_is_missed_where_the_study_reads_no_more(measured: Small):
    """Neither its name nor the folder says today that it was evidence."""
    measured.edit("predictions.toml", 'id = "small"', 'id = "small"\nevidence = "old"')
    moved = measured.path / "old/rows/first.jsonl"
    moved.parent.mkdir(parents=True)
    session(measured).rename(moved)
    measured.keep("Evidence")
    measured.edit("predictions.toml", '\nevidence = "old"', "")
    measured.git("rm", "--quiet", "old/rows/first.jsonl")
    again(measured)
    assert told(measured) == [GONE]


def test_evidence_that_got_another_name_is_not_missed(refuted: Small):
    refuted.git("mv", str(session(refuted)), "experiments/evidence/rows/first.jsonl")
    refuted.keep("Rename")
    assert told(refuted) == []


@pytest.mark.parametrize("name", ["data/train.jsonl", "experiments/evidence/rows/log.jsonl"])
def test_other_files_called_like_evidence_may_go(refuted: Small, name: str):
    refuted.write(name, '{"type": "header", "x": 1}\n{"loss": 2}\n')
    refuted.keep("Data")
    refuted.git("rm", "--quiet", name)
    refuted.keep("Without data")
    assert told(refuted) == []


def test_too_large_files_are_not_looked_into_and_that_is_said(
    refuted: Small, monkeypatch: pytest.MonkeyPatch
):
    refuted.write("data/a/train.jsonl", '{"x": 1}\n' * 5)
    refuted.keep("Data")
    assert not [one for one in refuted.audit().content["unproven"] if "*.jsonl" in one]
    monkeypatch.setattr(committed_sessions, "LARGEST", 10)
    (said,) = [one for one in refuted.audit().content["unproven"] if "*.jsonl" in one]
    assert said.startswith("That no evidence was among 1 other file called *.jsonl")


# With a header that can't be read


def damaged(project: Small) -> Path:
    path = session(project)
    path.write_text(with_header(path, executor=7))
    return path


def test_evidence_whose_header_can_not_be_read_is_missed(measured: Small):
    path = damaged(measured)
    measured.keep("Evidence", "experiments")
    assert told(measured) == [GONE]
    measured.git("rm", "--quiet", str(path))
    again(measured)
    assert told(measured) == [GONE]
    assert "was committed, and is gone" in measured.audit().message("PR207")


def test_a_header_may_be_repaired(measured: Small):
    whole = session(measured).read_text()
    path = damaged(measured)
    measured.keep("Evidence", "experiments")
    path.write_text(whole)
    measured.keep("Repair", "experiments")
    assert told(measured) == []


# Elsewhere


def test_evidence_in_an_attic_is_found_whatever_the_work_tree_makes_of_it(refuted: Small):
    path = session(refuted)
    (refuted.path / "attic").mkdir()
    refuted.git("mv", str(path), "attic")
    refuted.write(".gitattributes", "attic/** working-tree-encoding=UTF-16LE-BOM\n")
    refuted.keep("Move")
    shutil.rmtree(refuted.path / "attic")
    refuted.git("checkout", "--quiet", "--", "attic")
    assert (refuted.path / "attic" / path.name).read_bytes().startswith(b"\xff\xfe")
    again(refuted)
    assert told(refuted) == [GONE]
    shutil.rmtree(refuted.path / "attic")
    assert told(refuted) == [GONE]
    assert f"attic/{path.name}" in refuted.audit().message("PR207")


@pytest.mark.parametrize("lines", [1, 5])
def test_evidence_that_is_cut_short_is_missed_though_a_copy_lies_elsewhere(refuted: Small, lines: int):
    path = session(refuted)
    text = path.read_text()
    refuted.write(f"zold/{path.name}", text)
    path.write_text("".join(text.splitlines(keepends=True)[:lines]))
    refuted.keep("Archive")
    again(refuted)
    assert told(refuted)[0] == GONE


def test_a_copy_of_what_a_session_was_before_it_grew_is_fine(measured: Small):
    path = session(measured)
    whole = path.read_text()
    path.write_text("".join(whole.splitlines(keepends=True)[:5]))
    measured.keep("Evidence, begun", "experiments")
    shutil.copytree(measured.path / "experiments", measured.path / "vendor/copy/experiments")
    measured.keep("Copy")
    path.write_text(whole)
    measured.keep("Evidence, whole", "experiments")
    assert told(measured) == []


# Of another study


def test_a_study_that_gets_another_id_is_told_of_what_it_had_found(refuted: Small):
    refuted.record()
    refuted.edit("predictions.toml", 'id = "small"', 'id = "tiny"')
    (refuted.path / "predictions.lock").unlink()
    refuted.register()
    again(refuted)
    assert told(refuted) == [("PR203", "error")]
    assert (
        refuted.audit()
        .message("PR203")
        .startswith('study "small" stood here, with 1 recorded verdict and 1 session, and is gone')
    )


def test_another_id_before_anything_is_measured_is_a_review(begun: Callable[..., Small]):
    project = begun()
    project.register()
    project.edit("predictions.toml", 'id = "small"', 'id = "tiny"')
    (project.path / "predictions.lock").unlink()
    project.register()
    assert told(project) == [("PR203", "review")]
    project.done("acknowledge", "PR203", "small", "--reason", "a better name")
    assert project.audit().exit == 0


def test_evidence_whose_header_got_another_study_is_altered(begun: Callable[..., Small]):
    project = begun(STUDY.replace('"small"', '"tiny"'))
    project.register()
    project.take_in()
    project.edit("predictions.toml", 'id = "tiny"', 'id = "small"')
    (project.path / "predictions.lock").unlink()
    project.register()
    path = session(project)
    path.write_text(with_header(path, study="small").rpartition('{"type":"footer"')[0])
    project.keep("Ours", "experiments")
    assert {("PR203", "error"), GONE} <= {*told(project)}


SECOND = STUDY.replace('"small"', '"second"')


def beside(project: Small, text: str = SECOND, experiment: str = "rows") -> None:
    """Another study, with evidence of its own."""
    project.write("second.toml", text)
    project.write("second.csv", SLOW.replace("3.91", "3.81"))
    for command in (["lock"], ["import", "second.csv", "--experiment", experiment]):
        project.done(*command, "--study", "second.toml")
        project.keep(command[0])


def test_two_studies_side_by_side_are_silent(refuted: Small):
    """They share the folder of their evidence, and what their predictions are called."""
    beside(refuted)
    assert told(refuted) == []


def test_a_study_that_was_made_from_this_one_may_have_its_sessions(refuted: Small):
    """By their headers they are the same sessions, and this one's are as they were."""
    beside(refuted)
    first, _ = refuted.evidence()
    other = "20010101T000000Z-00000000.jsonl"
    refuted.write(f"fork/evidence/rows/{other}", with_header(first, study="second"))
    refuted.keep("Fork")
    assert told(refuted) == []


def test_one_that_is_only_a_lock_any_more_is_told(refuted: Small):
    """Nobody would audit it: what it refuted is there, and counts nowhere."""
    beside(refuted)
    refuted.git("rm", "--quiet", "second.toml")
    refuted.keep("Without its predictions")
    assert told(refuted) == [("PR203", "error")]
    assert "no prediction file at HEAD names it" in refuted.audit().message("PR203")


def test_a_study_that_goes_with_its_evidence_is_told_where_another_asks_the_same(refuted: Small):
    apart = SECOND.replace('id = "second"', 'id = "second"\nevidence = "apart"')
    beside(refuted, apart)
    refuted.git("rm", "-r", "--quiet", "second.toml", "second.lock", "apart")
    refuted.keep("Away with it")
    assert told(refuted) == [("PR203", "review")]
    assert '"below-two" and "rows"' in refuted.audit().message("PR203")


def test_one_that_asked_something_else_is_only_named(refuted: Small):
    other = SECOND.replace("below-two", "below-ten").replace("rows", "lines")
    beside(refuted, other.replace('id = "second"', 'id = "second"\nevidence = "a"'), "lines")
    refuted.git("rm", "-r", "--quiet", "second.toml", "second.lock", "a")
    refuted.keep("Away with it")
    assert told(refuted) == []
    assert any('What "second" found' in one for one in refuted.audit().content["unproven"])


# On another branch


def on_another_branch(project: Small, text: str) -> None:
    """Another branch gets a file of the name of the evidence."""
    path = session(project)
    project.git("switch", "--quiet", "--create", "old", "HEAD~1")
    project.write(str(path.relative_to(project.path)), text)
    project.keep("Evidence there", "experiments")
    project.git("switch", "--quiet", "main")


def test_a_session_that_another_branch_has_otherwise_is_contested(refuted: Small):
    on_another_branch(refuted, with_header(session(refuted), predictions={"below-two": "sha256:" + "1" * 64}))
    assert told(refuted) == [("PR212", "review")]
    assert "on branch old as another file of the same session" in refuted.audit().message("PR212")


@pytest.mark.parametrize("more", [True, False])
def test_one_that_has_grown_there_or_here_is_not(refuted: Small, *, more: bool):
    lines = session(refuted).read_text().splitlines(keepends=True)
    on_another_branch(refuted, "".join([*lines, lines[-1]] if more else lines[:-2]))
    assert told(refuted) == []


def test_evidence_in_another_repository_is_unverifiable(begun: Callable[..., Small], tmp_path: Path):
    project = begun()
    project.register()
    other = new_study(tmp_path / "other").path
    command = ["git", "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other)]
    subprocess.run([*command, "experiments/evidence"], cwd=project.path, check=True)
    project.keep("Submodule")
    project.measure()
    audit = project.audit()
    assert (audit.order(), audit.exit) == (("unverifiable", "exploratory"), 4)
    assert "experiments/evidence" in audit.message("PR212")


# Taken out and brought back


def test_a_merge_that_is_reverted_and_brought_back_is_as_it_was(begun: Callable[..., Small]):
    project = begun()
    project.git("switch", "--quiet", "--create", "work")
    project.register()
    project.take_in()
    project.git("switch", "--quiet", "main")
    project.git("merge", "--quiet", "--no-ff", "--message", "Merge", "work")
    project.git("revert", "--no-edit", "--mainline", "1", "HEAD")
    project.git("revert", "--no-edit", "HEAD")
    audit = project.audit()
    assert audit.order() == ("registered", "confirmatory")
    assert told(project) == []


def test_evidence_that_was_there_before_the_registration_is_not_new_when_it_comes_back(
    begun: Callable[..., Small],
):
    project = begun()
    project.lock()
    project.take_in()
    path = session(project)
    text = path.read_text()
    project.git("rm", "--quiet", str(path))
    project.git("commit", "--quiet", "--message", "Away")
    project.keep("Register", "predictions.toml", "predictions.lock", "rows.csv")
    project.write(str(path.relative_to(project.path)), text)
    project.keep("Evidence", "experiments")
    assert project.audit().order() == ("after-evidence", "exploratory")
