"""``pytest-prereg acknowledge``: a person's reason is kept, for one finding and for none that comes later."""

from __future__ import annotations

import json

import pytest

from pytest_prereg.registry.lock import read_lock, render_lock

REASON = ("--reason", "both were asked of us")
NARROWER = """
[predictions.below-one-and-a-half]
claim = "It takes even less."
experiment = "rows"
quantity = "wall"
predicts = "<= 1.5 s"
falsifier = ">= 3 s"
"""


def findings(project, code):
    document = json.loads(project.prereg("audit", "--format", "json").stdout)
    return [one for one in document["findings"] if one["code"] == code]


def entries(project):
    return [
        (one.code, one.id, one.about, one.reason)
        for one in read_lock(project.path / "predictions.lock").acknowledged
    ]


def test_every_open_review_of_that_code_and_id_is_entered_with_what_it_is_about(at_stage):
    project = at_stage("recorded")
    open_before = findings(project, "PR214")
    said = project.done("acknowledge", "PR214", "above-two", *REASON)
    assert entries(project) == [("PR214", "above-two", one["about"], REASON[1]) for one in open_before]
    assert all(one["about"] for one in open_before)
    lines = said.splitlines()
    assert lines[0] == "acknowledged  PR214  above-two"
    assert lines[-1] == "next:  git add predictions.lock && git commit -m 'Acknowledge PR214 of above-two'"
    assert project.prereg("audit").exit_code == 0
    assert {one["acknowledged"] for one in findings(project, "PR214")} == {REASON[1]}


def test_the_lock_is_written_in_its_one_form_and_nothing_else_is_changed(at_stage):
    project = at_stage("recorded")
    before = read_lock(project.path / "predictions.lock")
    project.done("acknowledge", "pr214", "above-two", *REASON)
    after = read_lock(project.path / "predictions.lock")
    assert (project.path / "predictions.lock").read_text() == render_lock(after)
    assert (after.predictions, after.exclusions, after.voided) == (
        before.predictions,
        before.exclusions,
        before.voided,
    )
    assert project.git("status", "--porcelain") == "M predictions.lock"


def test_a_second_time_there_is_nothing_left_to_enter(at_stage):
    project = at_stage("recorded")
    project.done("acknowledge", "PR214", "above-two", *REASON)
    lock = (project.path / "predictions.lock").read_bytes()
    result = project.prereg("acknowledge", "PR214", "above-two", "--reason", "other words")
    assert result.exit_code == 1
    assert (
        'PR152: PR214 of "above-two" is acknowledged already: both were asked of us; nothing is open'
        in result.output
    )
    assert (project.path / "predictions.lock").read_bytes() == lock


def test_a_later_finding_under_the_same_code_and_id_is_open_again(at_stage):
    project = at_stage("registered")
    project.done("acknowledge", "PR214", "above-two", *REASON)
    project.commit("Acknowledge")
    assert project.prereg("audit").exit_code == 0
    project.write("predictions.toml", (project.path / "predictions.toml").read_text() + NARROWER)
    project.done("lock")
    project.commit("Register another")
    still_open = [one for one in findings(project, "PR214") if one["acknowledged"] is None]
    assert still_open
    assert {one["about"] for one in still_open}.isdisjoint(about for _, _, about, _ in entries(project))
    assert project.prereg("audit").exit_code == 1


@pytest.mark.parametrize(("code", "name"), [("PR208", "above-two"), ("pr208", "below-two")])
def test_where_nothing_of_the_kind_is_open_it_says_what_is(at_stage, code, name):
    project = at_stage("recorded")
    result = project.prereg("acknowledge", code, name, *REASON)
    assert result.exit_code == 1
    assert (
        f'PR152: there is no {code.upper()} of "{name}" to acknowledge; open: PR214 above-two (2)'
        in result.output
    )
    assert entries(project) == []


def test_an_id_that_nothing_has_is_told_with_the_nearest_one_and_with_what_is_open(at_stage):
    result = at_stage("recorded").prereg("acknowledge", "PR214", "below-twoo", *REASON)
    assert result.exit_code == 2
    assert (
        'PR007: there is no prediction or experiment "below-twoo"; did you mean "below-two"?' in result.output
    )
    assert "; open: PR214 above-two (2)" in result.output


def test_an_error_can_not_be_acknowledged(at_stage):
    project = at_stage("recorded")
    project.edit("predictions.lock", 'verdict = "supported"', 'verdict = "refuted"')
    (error,) = findings(project, "PR211")
    result = project.prereg("acknowledge", "PR211", error["id"], *REASON)
    assert result.exit_code == 1
    assert f'PR152: PR211 of "{error["id"]}" is an error, which nobody can acknowledge' in result.output
    assert entries(project) == []


def test_an_entry_written_by_hand_moves_no_error_and_is_shown(at_stage):
    project = at_stage("recorded")
    project.edit("predictions.lock", 'verdict = "supported"', 'verdict = "refuted"')
    (error,) = findings(project, "PR211")
    forged = '\n[[acknowledged]]\ncode = "{}"\nid = "below-two"\nabout = "{}"\nreason = "it is fine"\n'
    lock = (project.path / "predictions.lock").read_text()
    in_advance = forged.format("PR208", "rows/1/2")
    project.write("predictions.lock", lock + forged.format("PR211", error["about"]) + in_advance)
    assert [one["level"] for one in findings(project, "PR211")] == ["error"]
    assert project.prereg("audit").exit_code == 1
    (unmatched,) = findings(project, "PR152")
    assert (
        unmatched["message"] == 'PR208 of "below-two", "rows/1/2", is acknowledged, and not found: it is fine'
    )


@pytest.mark.parametrize("reason", ["", "  ", "...", "…"])
def test_a_reason_has_words(at_stage, reason):
    result = at_stage("recorded").prereg("acknowledge", "PR214", "above-two", "--reason", reason)
    assert result.exit_code == 2
    assert "needs a reason" in result.output


def test_a_reason_that_would_act_on_a_terminal_is_kept_and_shown_harmless(at_stage):
    project = at_stage("recorded")
    reason = "fine\x1b[2J\n::error::forged \udcff"
    project.done("acknowledge", "PR214", "above-two", "--reason", reason)
    assert entries(project)[0][3] == "fine\\x1b[2J\n::error::forged \\udcff"
    said = project.prereg("audit").output
    assert "acknowledged: fine\\x1b[2J\\n::error::forged \\udcff" in said
