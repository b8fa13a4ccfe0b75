"""What came first is told as git's ancestry has it, whatever was amended, edited, merged or squashed since."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from audited_study import CLAIM
from gated_study import EASIER, LOCK, MORE_ROWS, STRICTER, TOML, PullRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    Against = Callable[[str], PullRequest]

BACK = EASIER[::-1]


def when(project: PullRequest) -> str:
    """What the terminal says of it, without the days, commits by what made them."""
    lines = project.prereg("gate", "--base", "main").stdout.splitlines()
    start = next((place for place, line in enumerate(lines) if line.startswith("        when ")), None)
    if start is None:
        return ""
    told = [lines[start].partition("when")[2]]
    for line in lines[start + 1 :]:
        if not line.startswith(" " * 15):
            break
        told.append(line)
    day = project.git("log", "-1", "--format=%cs").strip()
    return " ".join(" ".join(told).split()).replace(f" ({day})", "")


def commit(project: PullRequest, message: str) -> str:
    """The only commit with a message."""
    (found,) = project.git("log", "--all", "--format=%h", "--abbrev=8", f"--grep=^{message}$").split()
    return found


def other_text(project: PullRequest) -> str:
    """Edits the threshold, and says nothing of it in the lock."""
    project.edit(TOML, *EASIER)
    return project.keep("Edit", TOML)[:8]


def test_a_text_edited_after_its_measurement_was_registered_before_that(against: Against) -> None:
    project = against("recorded")
    edited = other_text(project)
    project.go_on()
    registered, measured = commit(project, "Register"), commit(project, "Evidence")
    assert when(project) == (
        f"not as it is registered: registered at the base in {registered}, then imported in {measured}, then "
        f"edited here in {edited}"
    )
    assert project.gate().prediction()["registered"].startswith(registered)
    assert project.gate().prediction()["measured"].startswith(measured)


def test_an_amendment_after_the_data_comes_last(against: Against) -> None:
    project = against("recorded")
    amended = project.amend(*EASIER)[:8]
    registered, measured = commit(project, "Register"), commit(project, "Evidence")
    told = (
        f"registered at the base in {registered}, then imported in {measured}, then amended here in {amended}"
    )
    assert when(project) == f"the evidence is of another registration: {told}"
    assert project.gate().prediction()["registered"].startswith(registered)


def test_what_is_amended_back_was_registered_before_its_data(against: Against) -> None:
    project = against("recorded")
    project.amend(*EASIER)
    back = project.amend(*BACK)[:8]
    registered, measured = commit(project, "Register"), commit(project, "Evidence")
    assert when(project) == (
        f"registered at the base in {registered}, then imported in {measured}, then amended back here in {back}"
    )
    assert project.gate().prediction()["registered"].startswith(registered)


def test_an_amendment_before_the_data_is_what_they_were_taken_for(against: Against) -> None:
    project = against("registered")
    amended = project.amend(*STRICTER)[:8]
    measured = project.take_in()[:8]
    assert when(project) == f"amended here in {amended}, then imported in {measured}"
    assert project.gate().prediction()["registered"].startswith(amended)


def test_what_was_amended_back_before_the_data_is_registered_since_then(against: Against) -> None:
    project = against("registered")
    project.amend(*STRICTER)
    back = project.amend(*STRICTER[::-1])[:8]
    measured = project.take_in()[:8]
    assert when(project) == f"amended back here in {back}, then imported in {measured}"


def test_what_was_taken_out_and_registered_again_was_registered_first(against: Against) -> None:
    project = against("recorded")
    text = (project.path / LOCK).read_text(encoding="utf-8")
    (project.path / LOCK).unlink()
    project.keep("Remove", LOCK)
    project.write(LOCK, text)
    again = project.keep("Put back", LOCK)[:8]
    registered, measured = commit(project, "Register"), commit(project, "Evidence")
    assert when(project) == (
        f"registered at the base in {registered}, then imported in {measured}, then registered again here in "
        f"{again}"
    )
    assert project.gate().prediction()["registered"].startswith(registered)


def test_of_two_sides_of_a_merge_neither_came_first(against: Against) -> None:
    project = against("recorded")
    project.git("switch", "--quiet", "--create", "side", "main~2")  # registered, and not measured yet
    amended = project.amend(*EASIER)[:8]
    project.git("switch", "--quiet", "change")
    project.git("merge", "--quiet", "--no-ff", "--no-commit", "--strategy=ours", "side")
    project.git("checkout", "side", "--", TOML, LOCK)
    project.git("commit", "--quiet", "--message", "Merge")
    registered, measured = commit(project, "Register"), commit(project, "Evidence")
    assert when(project) == (
        f"the evidence is of another registration: registered at the base in {registered}, then amended here in "
        f"{amended}, and on another line of commits imported in {measured}"
    )


def test_a_squash_with_a_tag_is_told_as_one_commit(against: Against) -> None:
    project = against("begun")
    alone = project.register()[:8]
    project.done("lock", "--tag")
    project.take_in()
    project.git("reset", "--quiet", "--soft", "main")
    squashed = project.keep("Squashed")[:8]
    assert when(project) == (
        f"registered and imported in the same commit, {squashed}; a tag has the registration without the "
        f"evidence, in {alone}"
    )


def test_a_series_that_decides_nothing_is_not_told(against: Against) -> None:
    project = against("registered")
    first = project.take_in()[:8]
    project.record()
    project.take_more(MORE_ROWS)
    registered = commit(project, "Register")
    assert when(project) == f"registered at the base in {registered}, then imported in {first}"


def test_of_a_series_in_parts_the_first_and_the_last_are_told(against: Against) -> None:
    project = against("registered")
    lines = MORE_ROWS.splitlines(keepends=True)
    first = project.take_more("".join(lines[:3]))[:8]
    project.take_more("".join(lines[:1] + lines[3:5]))
    last = project.take_more("".join(lines[:1] + lines[5:]))[:8]
    project.record()
    registered = commit(project, "Register")
    told = f"registered at the base in {registered}, then imported in {first}, then last imported in {last}"
    assert when(project) == told
    assert project.gate().prediction()["measured"].startswith(last)


def test_a_registration_beside_what_it_is_of_is_one_commit(against: Against) -> None:
    project = against("begun")
    project.lock()
    project.measure()
    both = project.keep("Everything", TOML, LOCK, "experiments")[:8]
    assert when(project) == f"registered and imported in the same commit, {both}"


def test_what_is_registered_after_its_data_is_told_in_that_order(against: Against) -> None:
    project = against("begun")
    project.lock()
    text = (project.path / LOCK).read_text(encoding="utf-8")
    measured = project.take_in()[:8]
    project.write(LOCK, text)
    registered = project.keep("Register", TOML, LOCK)[:8]
    assert when(project) == (
        f"registered after its evidence: imported in {measured}, then registered here in {registered}"
    )


def test_evidence_that_is_not_there_yet_is_not_ordered(against: Against) -> None:
    project = against("registered")
    amended = project.amend(*STRICTER)[:8]
    assert when(project) == f"amended here in {amended}, not measured yet"
    assert project.gate().prediction(CLAIM)["measured"] is None


def test_no_date_says_what_came_first(against: Against, monkeypatch: pytest.MonkeyPatch) -> None:
    project = against("recorded")
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2001-01-01T00:00:00Z")
    monkeypatch.setenv("GIT_AUTHOR_DATE", "2001-01-01T00:00:00Z")
    amended = project.amend(*EASIER)[:8]
    assert when(project).endswith(f", then amended here in {amended}")


@pytest.mark.parametrize("is_amended", [True, False])
def test_what_was_withdrawn_was_measured_all_the_same(against: Against, *, is_amended: bool) -> None:
    project = against("recorded")
    amended = project.amend(*EASIER)[:8] if is_amended else ""
    project.withdraw()
    registered, measured = commit(project, "Register"), commit(project, "Evidence")
    told = when(project)
    assert f"registered at the base in {registered}, then imported in {measured}" in told
    assert told.endswith(f", then amended here in {amended}") is is_amended
    assert "not measured" not in told


def test_half_a_series_is_evidence_too(against: Against) -> None:
    project = against("registered")
    half = project.take_more("".join(MORE_ROWS.splitlines(keepends=True)[:3]))[:8]
    assert project.gate().prediction()["measured"].startswith(half)
    assert project.gate().prediction()["registered"].startswith(commit(project, "Register"))
