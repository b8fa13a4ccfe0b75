"""Which reviews of a pull request pass: those that its lock answers, where somebody has to approve the lock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from audited_study import CLAIM, LINE
from gated_study import EASIER, LOCK, MORE_ROWS, OPPOSITE, OWNERS, SLOW_ROWS, STRICTER, TOML

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gated_study import PullRequest

    Against = Callable[[str], PullRequest]

OPEN = [("PR214", "above-three", "review", LINE + 7)]
REASON = "both of us looked at it"


def opposed(project: PullRequest) -> None:
    """A review that nothing in the lock answers by itself."""
    project.add(OPPOSITE)
    project.register()


def test_a_reason_in_the_lock_passes_where_the_base_has_an_owner_of_it(against: Against):
    project = against("registered")
    project.owned()
    opposed(project)
    gated = project.gate()
    assert (gated.open, gated.exit) == (OPEN, 1)
    project.acknowledge("PR214", "above-three")
    gated = project.gate()
    assert (gated.open, gated.exit) == ([], 0)
    assert gated.only("PR214")["acknowledged"] == REASON


@pytest.mark.parametrize("owners", [None, "*.md @reviewers\n", "*.lock @reviewers\n/predictions.lock\n"])
def test_without_an_owner_it_stays_red_and_says_why(against: Against, owners: str | None):
    project = against("registered")
    if owners:
        project.owned(owners)
    opposed(project)
    project.acknowledge("PR214", "above-three")
    gated = project.gate()
    assert (gated.open, gated.exit) == (OPEN, 1)
    only = gated.only("PR214")
    assert only["message"].endswith(f"support both; the lock says: {REASON}")
    said = " ".join(project.prereg("gate", "--base", "main").output.split())
    assert "No CODEOWNERS at the base covers predictions.lock" in said
    assert project.gate("--acknowledge", "lock").exit == 0


def test_an_owner_that_the_pull_request_brings_is_none(against: Against):
    project = against("registered")
    opposed(project)
    project.write(OWNERS, "* @author\n")
    project.keep("Owners", OWNERS)
    project.acknowledge("PR214", "above-three")
    gated = project.gate()
    assert (gated.open, gated.exit) == (OPEN, 1)


def test_owners_are_those_of_the_branch_as_it_is_now(against: Against):
    project = against("registered")
    project.owned()
    opposed(project)
    project.acknowledge("PR214", "above-three")
    project.git("switch", "--quiet", "main")
    project.git("rm", "--quiet", OWNERS)
    project.keep("Nobody owns anything any more", ".")
    project.git("switch", "--quiet", "change")
    gated = project.gate()
    assert (gated.open, gated.exit) == (OPEN, 1)


def test_a_lock_in_a_folder_is_asked_for_by_its_path_from_the_root(against: Against):
    project = against("registered")
    project.owned("/studies/ @reviewers\n")
    project.write("studies/.keep", "")
    for name in (TOML, LOCK):
        project.git("mv", name, f"studies/{name}")
    project.keep("Move", ".")
    project.merged()
    project.write(f"studies/{TOML}", (project.path / "studies" / TOML).read_text(encoding="utf-8") + OPPOSITE)
    study = ("--study", f"studies/{TOML}")
    project.done("lock", *study)
    project.done("acknowledge", "PR214", "above-three", "--reason", REASON, *study)
    project.keep("Register and say why", "studies")
    assert project.gate(*study).exit == 0


@pytest.mark.parametrize("reason", ["", " ", "…"])
def test_an_answer_that_says_nothing_is_none(against: Against, reason: str):
    project = against("registered")
    opposed(project)
    project.acknowledge("PR214", "above-three")
    project.edit(LOCK, REASON, reason)
    project.keep("No comment", LOCK)
    gated = project.gate("--acknowledge", "lock")
    assert OPEN[0] in gated.open
    assert gated.exit == 1


@pytest.mark.parametrize("reason", ["", "..."])
def test_an_amendment_for_no_reason_is_not_answered_by_it(against: Against, reason: str):
    project = against("recorded")
    project.amend(*STRICTER, reason="because")
    project.edit(LOCK, 'reason = "because"', f'reason = "{reason}"')
    project.git("commit", "--quiet", "--amend", "--no-edit", LOCK)
    gated = project.gate("--acknowledge", "lock")
    assert (gated.open, gated.exit) == ([("PR202", CLAIM, "review", LINE)], 1)


def test_an_answer_that_would_act_on_what_shows_it_is_shown_harmless(against: Against):
    project = against("registered")
    opposed(project)
    reason = "fine\x1b[2J\n::error::forged <script>@everyone #1 | x"
    project.acknowledge("PR214", "above-three", reason)
    for form in ("terminal", "markdown", "github"):
        said = project.prereg("gate", "--base", "main", "--format", form).output
        assert "\x1b" not in said
        assert "\n::error::forged" not in said
        assert "<script>" not in said or form != "markdown"


def test_what_was_acknowledged_before_it_came_is_open(against: Against):
    project = against("registered")
    project.owned()
    opposed(project)
    project.acknowledge("PR214", "above-three")
    entry = (project.path / LOCK).read_text(encoding="utf-8").partition("[[acknowledged]]")
    project.git("reset", "--quiet", "--hard", "main")
    lock = (project.path / LOCK).read_text(encoding="utf-8")
    project.on_main(LOCK, lock + "\n" + "".join(entry[1:]))
    opposed(project)
    gated = project.gate()
    assert (gated.open, gated.exit) == (OPEN, 1)
    assert gated.only("PR214")["message"].endswith(f"; the lock acknowledged that before it came: {REASON}")
    project.acknowledge("PR214", "above-three", "and now it is there")
    gated = project.gate()
    assert gated.only("PR214")["acknowledged"] == "and now it is there"
    assert (gated.open, gated.exit) == ([], 0)


def test_an_amendment_of_the_base_does_not_answer_for_data_that_come_later(against: Against, tmp_path: Path):
    """It was made before any evidence was known, and needed nobody. The data had been kept back."""
    project = against("registered")
    project.owned()
    file = project.measure()
    kept_back = file.rename(tmp_path / file.name)
    project.amend(*STRICTER)
    assert project.gate().grave == []
    project.merged()
    kept_back.rename(file)
    project.keep("Evidence for what it was before", "experiments")
    gated = project.gate()
    assert ("PR202", CLAIM, "review", LINE) in gated.open
    assert (
        "the lock acknowledged that before it came: amended: we know better now"
        in (gated.only("PR202")["message"])
    )
    assert gated.exit == 1


def test_what_the_lock_does_for_a_reason_is_answered_by_that_reason(against: Against):
    project = against("recorded")
    project.owned()
    project.amend(*STRICTER)
    gated = project.gate()
    assert (gated.open, gated.exit) == ([], 0)
    assert gated.only("PR202")["acknowledged"] == "amended: we know better now"


def test_an_exclusion_and_a_void_are_too(against: Against):
    project = against("measured")
    project.owned()
    project.take_more(MORE_ROWS)
    project.merged()
    project.done("exclude", "rows/1/2", "--cause", "tool", "--reason", "the disk was full")
    project.done("void", "rows/2", "--reason", "another machine")
    project.keep("Set aside", LOCK)
    gated = project.gate()
    assert (gated.open, gated.exit) == ([], 0)
    assert gated.only("PR208")["acknowledged"] == "excluded: the disk was full"
    assert gated.only("PR213")["acknowledged"] == "voided: another machine"


def test_an_error_is_not_answered(against: Against):
    project = against("recorded")
    project.owned()
    project.amend(*EASIER)
    (error,) = [one for one in project.gate().findings if one["level"] == "error"]
    entry = f'code = "PR209"\nid = "{CLAIM}"\nabout = "{error["about"]}"\nreason = "fine"\n'
    lock = (project.path / LOCK).read_text(encoding="utf-8")
    project.write(LOCK, f"{lock}\n[[acknowledged]]\n{entry}")
    project.keep("It is fine", LOCK)
    gated = project.gate("--acknowledge", "lock")
    assert (gated.open, gated.exit) == ([("PR209", CLAIM, "error", LINE)], 1)


def test_what_only_the_gate_finds_is_acknowledged_against_the_base(against: Against):
    project = against("begun")
    project.owned()
    project.register()
    project.take_in()
    project.acknowledge("PR204", CLAIM)
    gated = project.gate()
    assert (gated.open, gated.exit) == ([], 0)
    assert gated.only("PR204")["acknowledged"] == REASON


def test_an_answer_that_was_written_by_hand_and_fits_needs_its_owner_all_the_same(against: Against):
    project = against("recorded")
    project.take_more(SLOW_ROWS)
    about = project.gate().only("PR205")["about"]
    entry = f'code = "PR205"\nid = "{CLAIM}"\nabout = "{about}"\nreason = "the second one was a mistake"\n'
    lock = (project.path / LOCK).read_text(encoding="utf-8")
    project.write(LOCK, f"{lock}\n[[acknowledged]]\n{entry}")
    project.keep("By hand", LOCK)
    assert project.gate().open == [("PR205", CLAIM, "review", LINE)]


def test_an_acknowledgement_that_is_taken_back_is_open_again(against: Against):
    project = against("registered")
    project.owned()
    opposed(project)
    project.acknowledge("PR214", "above-three")
    project.merged()
    assert project.gate().findings == []
    lock = (project.path / LOCK).read_text(encoding="utf-8")
    project.write(LOCK, lock[: lock.index("[[acknowledged]]")])
    project.keep("Shorter", LOCK)
    gated = project.gate()
    assert OPEN[0] in gated.open
    assert gated.exit == 1


def test_what_failed_at_the_base_is_not_blamed_on_a_pull_request(against: Against):
    project = against("recorded")
    project.edit(LOCK, '"supported"', '"refuted"')
    project.on_main(LOCK, (project.path / LOCK).read_text(encoding="utf-8"))
    assert project.prereg("audit").exit_code == 1
    project.go_on()
    gated = project.gate()
    assert (gated.findings, gated.exit) == ([], 0)
    said = " ".join(project.prereg("gate", "--base", "main").output.split())
    assert "At the base already, and not of this pull request" in said
    assert "PR211 verdict doesn't follow from the evidence: below-two" in said
