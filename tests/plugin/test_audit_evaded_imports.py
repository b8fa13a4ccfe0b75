"""Data that were seen before the claim about them was registered, and imported after it: PR216, PR119.

They had been committed as a file, were evidence of another experiment, or of another study of the repository.
Beside them what honest histories do: the data come with the registration, or after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from audited_study import CLAIM, LINE, ROWS, STUDY, Small, Told, new_study
from forged_session import forge_header

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SEEN: list[Told] = [("PR216", "review", LINE)]
HEAD, *MEASURED = ROWS.splitlines(keepends=True)
LOOK = """\
[experiments.look]
metrics = { wall = "s" }
repeats = 5

[predictions.anything]
claim = "It takes some time."
experiment = "look"
quantity = "wall"
predicts = "<= 100 s"
falsifier = ">= 200 s"

"""
FIRST, _, THEN = STUDY.partition("\n\n")
EXPERIMENT, _, PREDICTION = THEN.partition("\n\n")


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Small]:
    """A study that is written and not registered, with rows that are not committed."""

    def make(text: str = STUDY, folder: str = "") -> Small:
        project = new_study(tmp_path / "study", folder, text)
        monkeypatch.chdir(project.path)
        return project

    return make


def register(project: Small) -> None:
    """Without the rows."""
    project.done("lock")
    project.keep("Register", "predictions.toml", "predictions.lock")


# Committed as a file


def test_data_that_were_committed_before_the_registration(begun: Callable[..., Small]):
    project = begun()
    commit = project.keep("Results", "rows.csv")
    register(project)
    project.take_in()

    audit = project.audit()

    assert audit.told == SEEN
    assert audit.exit == 1
    assert f'they were committed as "rows.csv" in {commit[:8]}' in audit.message("PR216")
    project.done("acknowledge", "PR216", CLAIM, "--reason", "a script had written them, and nobody looked")
    assert project.audit().exit == 0


def test_one_of_several_files_that_are_taken_in_together(begun: Callable[..., Small]):
    project = begun()
    project.write("first.csv", HEAD + "".join(MEASURED[:3]))
    project.write("second.csv", HEAD + "".join(MEASURED[3:]))
    commit = project.keep("Half of the results", "second.csv")
    register(project)
    project.done("import", "first.csv", "second.csv", "--experiment", "rows")
    project.keep("Evidence", "experiments")

    audit = project.audit()

    assert audit.told == SEEN
    assert f'they were committed as "second.csv" in {commit[:8]}' in audit.message("PR216")


def test_under_another_name_that_is_gone_again(begun: Callable[..., Small]):
    project = begun()
    project.write("plots/figure-3.txt", ROWS)
    project.keep("Figure", "plots")
    project.git("rm", "--quiet", "-r", "plots")
    project.git("commit", "--quiet", "--message", "Away with it")
    register(project)
    project.take_in()
    assert project.audit().told == SEEN


def test_where_the_header_does_not_say_what_the_file_was_that_is_said(begun: Callable[..., Small]):
    """As evidence of earlier releases, or one that somebody has edited."""
    project = begun()
    project.keep("Results", "rows.csv")
    register(project)
    forge_header(project.measure(), imported={"name": "rows.csv"})
    project.keep("Evidence", "experiments")
    audit = project.audit()
    assert audit.told == []
    assert any("no commit had the data of 1 import" in one for one in audit.content["unproven"])


@pytest.mark.parametrize("seen", ["pilot", "full"])
def test_what_decides_a_claim_is_no_pilot(begun: Callable[..., Small], seen: str):
    project = begun(f'{STUDY}data-seen = "{seen}"\n')
    project.keep("Results", "rows.csv")
    register(project)
    project.take_in()
    assert project.audit().told == (SEEN if seen == "pilot" else [])


def test_amended_when_they_were_there(begun: Callable[..., Small]):
    project = begun()
    register(project)
    project.keep("Results", "rows.csv")
    project.edit("predictions.toml", "<= 2 s", "<= 1.5 s")
    project.done("amend", CLAIM, "--reason", "bolder")
    project.keep("Amend", "predictions.toml", "predictions.lock")
    project.take_in()
    assert [one for one in project.audit().told if one[0] == "PR216"] == SEEN


def test_on_a_branch_that_has_no_registration(begun: Callable[..., Small]):
    """Nothing tells what came first there: a person has to."""
    project = begun()
    project.git("switch", "--quiet", "--create", "data")
    project.keep("Results", "rows.csv")
    project.git("switch", "--quiet", "main")
    register(project)
    project.git("merge", "--quiet", "--no-edit", "data")
    project.take_in()
    assert project.audit().told == SEEN


@pytest.mark.parametrize("when", ["with the registration", "after it", "with the evidence", "never"])
def test_data_that_came_later_are_fine(begun: Callable[..., Small], when: str):
    project = begun()
    if when == "with the registration":
        project.register()
    else:
        register(project)
    if when == "after it":
        project.keep("Results", "rows.csv")
    project.measure()
    project.keep("Evidence", "experiments", *(["rows.csv"] if when == "with the evidence" else []))
    assert (project.audit().told, project.audit().exit) == ([], 0)


def test_other_data_that_were_committed_before_are_none_of_these(begun: Callable[..., Small]):
    project = begun()
    project.keep("Results of last year", "rows.csv")
    register(project)
    project.write("rows.csv", ROWS.replace("1.0", "1.1"))
    project.take_in()
    assert project.audit().told == []


# Taken in by another study


def pilot_of(project: Small) -> Small:
    """Another study of the repository, which has registered and taken in the same rows."""
    pilot = Small(project.top / "pilot", project.top)
    pilot.path.mkdir()
    pilot.write("predictions.toml", STUDY.replace('id = "small"', 'id = "pilot"'))
    pilot.write("rows.csv", ROWS)
    register(pilot)
    pilot.take_in()
    return pilot


@pytest.mark.parametrize("is_honest", [True, False])
def test_data_that_another_study_took_in(begun: Callable[..., Small], *, is_honest: bool):
    project = begun(folder="main")
    if is_honest:
        register(project)
    pilot_of(project)
    if not is_honest:
        register(project)

    result = project.prereg("import", "rows.csv", "--experiment", "rows")

    assert result.exit_code == (0 if is_honest else 1)
    assert ('PR119: study "pilot" took it in' in result.output) is not is_honest


def test_one_of_several_files_that_another_study_took_in(begun: Callable[..., Small]):
    project = begun(folder="main")
    pilot_of(project)
    register(project)
    project.write("more.csv", HEAD + "6,wall,1.5,s\n")

    result = project.prereg("import", "more.csv", "rows.csv", "--experiment", "rows")

    assert result.exit_code == 1
    assert 'rows.csv: PR119: study "pilot" took it in' in result.output
    assert not (project.path / "experiments").exists()
    project.keep("Evidence")
    assert project.audit().told == []


def test_and_gave_up_before_they_were_imported_again(begun: Callable[..., Small]):
    project = begun(folder="main")
    pilot = pilot_of(project)
    pilot.git("rm", "--quiet", "-r", "experiments", "predictions.toml", "predictions.lock")
    pilot.git("commit", "--quiet", "--message", "Away with it")
    register(project)
    project.take_in()
    audit = project.audit()
    assert [one for one in audit.told if one[0] == "PR216"] == SEEN
    assert 'they were evidence of study "pilot"' in audit.message("PR216")


@pytest.mark.parametrize("is_merged", [True, False])
def test_on_another_branch(begun: Callable[..., Small], *, is_merged: bool):
    project = begun(folder="main")
    project.git("switch", "--quiet", "--create", "look")
    pilot_of(project)
    project.git("switch", "--quiet", "main")
    register(project)
    project.take_in()
    if is_merged:
        project.git("merge", "--quiet", "--no-edit", "look")
    audit = project.audit()
    assert audit.told == SEEN
    assert 'they were evidence of study "pilot"' in audit.message("PR216")


# Taken in, given up, and taken in again


def bolder(project: Small) -> None:
    """Moves the threshold to where the data are, with an amendment."""
    project.edit("predictions.toml", "<= 2 s", "<= 1.2 s")
    project.done("amend", CLAIM, "--reason", "bolder")
    project.keep("Amend", "predictions.toml", "predictions.lock")


def test_evidence_that_was_deleted_and_is_imported_again(begun: Callable[..., Small]):
    project = begun()
    register(project)
    project.take_in()
    project.git("rm", "--quiet", "-r", "experiments")
    project.git("commit", "--quiet", "--message", "Away with it")
    (project.path / "predictions.lock").unlink()
    project.edit("predictions.toml", "<= 2 s", "<= 1.2 s")
    register(project)
    project.take_in()
    audit = project.audit()
    assert {("PR207", "error", LINE), *SEEN} <= {*audit.told}
    assert "they were evidence of this study in" in audit.message("PR216")


def test_evidence_of_a_branch_that_is_imported_again(begun: Callable[..., Small]):
    project = begun()
    register(project)
    project.git("switch", "--quiet", "--create", "look")
    project.take_in()
    project.git("switch", "--quiet", "main")
    bolder(project)
    project.take_in()
    assert [one for one in project.audit().told if one[0] == "PR216"] == SEEN


def test_evidence_of_a_branch_that_is_imported_again_for_the_same_claim(begun: Callable[..., Small]):
    project = begun()
    register(project)
    project.git("switch", "--quiet", "--create", "look")
    project.take_in()
    project.git("switch", "--quiet", "main")
    project.take_in()
    assert project.audit().told == []


# Taken in for another experiment


def looked_at(project: Small) -> str:
    """Takes the rows in for one experiment, before the claim about another is registered; returns that."""
    claim = f"\n{PREDICTION}"
    project.write("predictions.toml", f"{FIRST}\n\n{LOOK}{EXPERIMENT}\n")
    register(project)
    project.done("import", "rows.csv", "--experiment", "look")
    project.keep("A look", "experiments")
    return claim


def test_the_file_that_another_experiment_has(begun: Callable[..., Small]):
    project = begun()
    claim = looked_at(project)
    project.write("predictions.toml", f"{FIRST}\n\n{LOOK}{EXPERIMENT}\n{claim}")
    register(project)
    result = project.prereg("import", "rows.csv", "--experiment", "rows")
    assert result.exit_code == 1
    assert 'PR119: the file was imported already, for "look"' in result.output


def test_its_numbers_in_another_file(begun: Callable[..., Small]):
    project = begun()
    claim = looked_at(project)
    project.write("predictions.toml", f"{FIRST}\n\n{LOOK}{EXPERIMENT}\n{claim}")
    register(project)
    project.write("rows.csv", HEAD + "".join(reversed(MEASURED)))
    project.take_in()
    (finding,) = project.audit().findings
    assert (finding["code"], finding["level"], finding["id"]) == ("PR216", "review", CLAIM)
    assert 'they were evidence of "look"' in finding["message"]


def test_what_both_experiments_were_registered_for_is_fine(begun: Callable[..., Small]):
    """One file with two metrics, each declared by one of them."""
    project = begun(f"{FIRST}\n\n{LOOK.replace('wall', 'load')}{THEN}")
    register(project)
    rows = HEAD + "".join(line + line.replace("wall", "load").replace(",1.", ",7.") for line in MEASURED)
    project.write("rows.csv", rows)
    project.done("import", "rows.csv", "--experiment", "look")
    project.take_in()
    assert project.audit().told == []
