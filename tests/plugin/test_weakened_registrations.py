"""What an audit says of a registration that was made easier to meet, before its evidence and after it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from small_study import Project, new_repository

from pytest_prereg.audit.assess import StudyState
from pytest_prereg.audit.auditing import acknowledged
from pytest_prereg.audit.findings.weakening import of_weakening
from pytest_prereg.registry.load import load_study
from pytest_prereg.registry.lock import Withdrawal, read_lock, write_lock

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_prereg.audit.finding import Finding

STUDY = """\
[study]
id = "small"

[experiments.rows]
metrics = { wall = "s" }
repeats = 5

[predictions.below-two]
claim = "It takes less than two seconds."
experiment = "rows"
quantity = "wall"
predicts = "<= 2 s"
falsifier = ">= 3 s"
"""
LINE = 8
ABOVE = """\

[predictions.above-three]
claim = "It takes more than three seconds."
experiment = "rows"
quantity = "wall"
predicts = ">= 3 s"
falsifier = "< 1.5 s"
"""
ROWS = "repeat,metric,value,unit\n1,wall,2.1,s\n2,wall,2.2,s\n3,wall,2.3,s\n4,wall,2.2,s\n5,wall,2.1,s\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Registered and committed."""
    made = new_repository(tmp_path / "project")
    made.write("predictions.toml", STUDY)
    made.write("rows.csv", ROWS)
    made.done("lock")
    made.commit("Register")
    monkeypatch.chdir(made.path)
    return made


def take_in(project: Project) -> None:
    project.done("import", "rows.csv", "--experiment", "rows")
    project.commit("Evidence")


def amend(project: Project, old: str, new: str, prediction: str = "below-two") -> None:
    project.edit("predictions.toml", old, new)
    project.done("amend", prediction, "--reason", "a typo")
    project.commit("Amend")


def found(project: Project) -> list[Finding]:
    state = StudyState(load_study(project.path / "predictions.toml"))
    return acknowledged(of_weakening(state), state.lock)


def digest_now(project: Project) -> str:
    state = StudyState(load_study(project.path / "predictions.toml"))
    return state.digests["below-two"].removeprefix("sha256:")[:8]


def test_a_region_moved_before_the_evidence_is_a_review_that_its_reason_acknowledges(project: Project):
    amend(project, '"<= 2 s"', '"<= 2500 ms"')
    (one,) = found(project)
    assert (one.code, one.id, one.level, one.line) == ("PR209", "below-two", "review", LINE)
    assert one.message == (
        f'"below-two" was changed in {project.git("rev-parse", "HEAD")[:8]}: '
        'predicts from "≤ 2 s" to "≤ 2.5 s": easier to support'
    )
    assert one.about == f"{digest_now(project)} predicts"
    assert (one.acknowledged, one.fails, one.commit) == (
        "amended: a typo",
        False,
        project.git("rev-parse", "HEAD"),
    )


def test_after_the_evidence_it_is_an_error_that_nothing_acknowledges(project: Project):
    take_in(project)
    amend(project, '"<= 2 s"', '"<= 2.5 s"')
    (one,) = found(project)
    assert (one.code, one.level, one.acknowledged, one.fails) == ("PR209", "error", None, True)
    assert "after the data" in one.message


def test_moved_after_the_evidence_and_moved_back_it_is_a_review(project: Project):
    take_in(project)
    amend(project, '"<= 2 s"', '"<= 2.5 s"')
    amend(project, '"<= 2.5 s"', '"<= 2 s"')
    (one,) = found(project)
    assert (one.level, one.acknowledged) == ("review", "amended: a typo")


def test_weakened_by_way_of_something_stricter_it_is_an_error(project: Project):
    take_in(project)
    amend(project, '"<= 2 s"', '"<= 1 s"')
    amend(project, '"<= 1 s"', '"<= 2.5 s"')
    (one,) = found(project)
    assert (one.level, one.about) == ("error", f"{digest_now(project)} predicts")


@pytest.mark.parametrize(
    ("old", "new"),
    [('"<= 2 s"', '"<= 1 s"'), ("repeats = 5", "repeats = 6"), ('"<= 2 s"', '"<= 2000 ms"\ncv = 0.1')],
    ids=["stricter", "more repeats", "what power was computed with"],
)
def test_what_makes_nothing_easier_is_not_told_even_after_the_evidence(project: Project, old: str, new: str):
    take_in(project)
    amend(project, old, new)
    assert found(project) == []


def test_replaced_by_hand_it_is_told_and_nothing_acknowledges_it(project: Project):
    project.edit("predictions.toml", '"<= 2 s"', '"<= 2.5 s"')
    (project.path / "predictions.lock").unlink()
    project.done("lock")
    project.commit("Register again")
    (one,) = found(project)
    assert (one.level, one.acknowledged, one.fails) == ("review", None, True)
    project.done("lock")
    assert [each.about for each in found(project)] == [one.about]


def test_a_text_that_differs_from_its_lock_is_told_before_anybody_amends_it(project: Project):
    project.edit("predictions.toml", '"<= 2 s"', '"<= 2.5 s"')
    (one,) = found(project)
    assert (one.level, one.commit) == ("review", None)
    assert "and no amendment says so" in one.message
    project.commit("The text alone")
    assert [each.about for each in found(project)] == [one.about]
    project.done("amend", "below-two", "--reason", "a typo")
    assert [(each.about, each.acknowledged) for each in found(project)] == [(one.about, "amended: a typo")]


def test_a_draft_that_was_never_committed_may_change(project: Project):
    project.write("predictions.toml", STUDY + ABOVE)
    project.done("lock")
    amend(project, '">= 3 s"\nfalsifier = "< 1.5 s"', '">= 2.5 s"\nfalsifier = "< 1.5 s"', "above-three")
    assert [one.code for one in found(project)] == ["PR214"]


def test_a_text_that_was_never_committed_can_not_be_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    project = new_repository(tmp_path / "project")
    monkeypatch.chdir(project.path)
    project.write("predictions.toml", STUDY)
    project.write("rows.csv", ROWS)
    project.done("lock")
    project.git("add", "predictions.lock")
    project.git("commit", "--quiet", "--message", "The lock alone")
    amend(project, '"<= 2 s"', '"<= 2.5 s"')
    (one,) = found(project)
    assert (one.level, one.untold, one.acknowledged) == ("review", True, None)
    assert one.message.startswith('could not tell what changed of "below-two" in ')
    assert one.about == f"{digest_now(project)} unknown"


def test_a_text_that_was_committed_after_its_lock_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    project = new_repository(tmp_path / "project")
    monkeypatch.chdir(project.path)
    project.write("predictions.toml", STUDY)
    project.done("lock")
    project.git("add", "predictions.lock")
    project.git("commit", "--quiet", "--message", "The lock alone")
    project.commit("The text")
    amend(project, '"<= 2 s"', '"<= 2.5 s"')
    (one,) = found(project)
    assert one.about == f"{digest_now(project)} predicts"


def test_what_was_amended_before_a_squash_can_not_be_told(project: Project):
    take_in(project)
    amend(project, '"<= 2 s"', '"<= 2.5 s"')
    project.git("checkout", "--quiet", "--orphan", "squashed")
    project.commit("All at once")
    (one,) = found(project)
    assert (one.level, one.untold) == ("error", True)


def test_a_study_that_moved_is_compared_with_where_it_was(project: Project):
    project.git("mv", "predictions.toml", "claims.toml")
    project.git("mv", "predictions.lock", "claims.lock")
    project.commit("Move")
    project.edit("claims.toml", '"<= 2 s"', '"<= 2.5 s"')
    state = StudyState(load_study(project.path / "claims.toml"))
    assert [one.about.partition(" ")[2] for one in of_weakening(state)] == ["predicts"]


@pytest.fixture
def both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """With a prediction and one that nothing supports beside it."""
    project = new_repository(tmp_path / "both")
    monkeypatch.chdir(project.path)
    project.write("predictions.toml", STUDY + ABOVE)
    project.done("lock")
    project.commit("Register")
    return project


PAIR = re.compile("above-three [0-9a-f]{8}, below-two [0-9a-f]{8}")
"""As they are registered: what is acknowledged of them is not what they become."""


def test_two_claims_that_exclude_each_other_are_a_review(both: Project):
    (one,) = found(both)
    assert (one.code, one.id, one.level, one.line) == ("PR214", "above-three", "review", 15)
    assert PAIR.fullmatch(one.about)
    assert one.acknowledged is None
    assert one.message == (
        '"above-three" and "below-two" ask the same, and nothing that is found can support both'
    )


def test_two_claims_of_which_one_holds_for_certain_are_a_review(project: Project):
    project.write("predictions.toml", STUDY + ABOVE.replace(">= 3 s", ">= 1.5 s"))
    project.done("lock")
    (one,) = found(project)
    assert "whatever is found, one of them holds" in one.message


def test_two_claims_that_may_both_be_right_are_not_told(project: Project):
    project.write(
        "predictions.toml", STUDY + ABOVE.replace(">= 3 s", "[1, 9] s").replace("< 1.5 s", "< 0.5 s")
    )
    project.done("lock")
    assert found(project) == []


def withdraw(project: Project) -> None:
    lock = read_lock(project.path / "predictions.lock")
    assert lock is not None
    tombstone = Withdrawal(reason="it was wrong", at="2026-01-01T00:00:00Z")
    entry = replace(lock.predictions["below-two"], withdrawal=tombstone)
    lock = replace(lock, predictions={**lock.predictions, "below-two": entry})
    write_lock(project.path / "predictions.lock", lock)


@pytest.mark.parametrize("stays", [True, False], ids=["still in the file", "deleted from it"])
def test_the_opposite_of_what_was_withdrawn_is_told(both: Project, stays: bool):  # noqa: FBT001
    withdraw(both)
    if not stays:
        both.write("predictions.toml", STUDY.partition("[predictions")[0] + ABOVE)
    both.commit("Withdraw")
    (one,) = found(both)
    assert one.id == "above-three"
    assert PAIR.fullmatch(one.about)
    assert '"below-two", which was withdrawn, ask the same' in one.message


@pytest.mark.parametrize("name", ["above-three", "below-two"])
def test_a_pair_that_was_acknowledged_stays_so_whichever_is_withdrawn(both: Project, name: str):
    both.done("acknowledge", "PR214", "above-three", "--reason", "Both were expected of somebody.")
    both.commit("Acknowledge")
    (before,) = found(both)
    both.done("withdraw", name, "--reason", "It is not needed.")
    both.commit("Withdraw")
    (one,) = found(both)
    assert (one.id, one.about, one.acknowledged) == (before.id, before.about, before.acknowledged)
    assert one.acknowledged == "Both were expected of somebody."
    assert f'"{name}", which was withdrawn,' in one.message
    assert "PR152" not in both.done("audit", "--format", "json")


def test_the_opposite_of_what_was_taken_out_is_told(project: Project):
    project.write("predictions.toml", STUDY.partition("[predictions")[0] + ABOVE)
    (project.path / "predictions.lock").unlink()
    project.done("lock")
    project.commit("Another study")
    (one,) = found(project)
    assert '"below-two", which was taken out, ask the same' in one.message


def test_a_quantity_that_no_measurement_changes_can_not_be_registered(project: Project):
    certain = ABOVE.replace('quantity = "wall"', 'quantity = "wall - wall"').replace("< 1.5 s", "< 1 s")
    project.write("predictions.toml", STUDY + certain)
    said = project.prereg("lock")
    assert said.exit_code == 1
    assert "predictions.toml:15: PR038: " in said.output
    project.write("predictions.toml", STUDY + certain.replace("wall - wall", "2 * wall - wall"))
    project.done("lock")


COMPARED = """\
[study]
id = "compared"

[experiments.rows]
metrics = { wall = "s" }
repeats = 5
[experiments.rows.arms]
a = {}
b = {}

[predictions.not-slower]
claim = "a takes at most twice as long as b."
experiment = "rows"
contrast = "a / b"
quantity = "wall"
predicts = "<= 2"
falsifier = ">= 4"

[predictions.quicker]
claim = "b takes at most a quarter as long as a."
experiment = "rows"
contrast = "b / a"
quantity = "wall"
predicts = "<= 0.25"
falsifier = ">= 0.5"
"""


def test_the_opposite_can_not_be_registered_with_the_arms_the_other_way_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    project = new_repository(tmp_path / "project")
    monkeypatch.chdir(project.path)
    project.write("predictions.toml", COMPARED)
    said = project.prereg("lock")
    assert 'PR036: "quicker" predicts the opposite of "not-slower"' in said.output
    project.edit("predictions.toml", '"<= 0.25"', '"<= 0.3"')
    project.done("lock")
