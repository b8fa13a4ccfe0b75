"""``exclude`` and ``void`` as they are typed: what they print, what they write, and what follows."""

from __future__ import annotations

import pytest

from pytest_prereg.registry.lock import read_lock


def test_an_exclusion_shows_both_numbers_and_the_command_that_records_them(at_stage, judge):
    project = at_stage("recorded")
    said = project.done("exclude", "rows/1/2", "--cause", "tool", "--reason", "a backup ran")
    assert "excluded  rows/1/2 (tool: a backup ran)" in said
    assert "below-two: supported, 1.010 [0.916, 1.104] s, n 5 → supported, 0.983 [0.901, 1.064] s, n 4" in (
        " ".join(said.split())
    )
    assert (
        "pytest --prereg --prereg-verify --prereg-record; git add predictions.lock experiments/evidence &&"
        in said
    )
    assert judge(project, "--prereg-verify").ret == pytest.ExitCode.TESTS_FAILED
    assert judge(project, "--prereg-verify", "--prereg-record").ret == pytest.ExitCode.OK
    result = judge(project, "--prereg-verify")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["*1 repeat lost*", "or excluded (1 tool)*"])
    entry = read_lock(project.path / "predictions.lock").predictions["below-two"]
    assert (entry.n, entry.verdict) == (4, "supported")


def test_nothing_is_written_where_there_is_no_such_repeat(at_stage):
    project = at_stage("recorded")
    before = (project.path / "predictions.lock").read_bytes()
    result = project.prereg("exclude", "rows/1/22", "--cause", "tool", "--reason", "a backup ran")
    assert result.exit_code == 2
    assert 'no repeat of the evidence is called "rows/1/22"; did you mean "rows/1/2"?' in result.output
    assert (project.path / "predictions.lock").read_bytes() == before


def test_a_voided_series_supports_nothing_and_its_refutations_stay(at_stage, records):
    project = at_stage("recorded")
    said = " ".join(project.done("void", "rows/1", "--reason", "wrong cable").split())
    assert "voided rows/1 (wrong cable)" in said
    assert "below-two: supported, 1.010 [0.916, 1.104] s, n 5 → inconclusive (integrity)" in said
    assert "above-two" not in said
    found = records(project, "--prereg-verify", "--prereg-record")
    assert found["below-two"]["verdict"] == "inconclusive"
    assert found["above-two"]["verdict"] == "refuted"
    assert "voided" in found["above-two"]["flags"]


@pytest.mark.parametrize("command", [("exclude", "rows/1/2", "--cause", "tool"), ("void", "rows/1")])
def test_a_reason_has_words(at_stage, command):
    project = at_stage("recorded")
    result = project.prereg(*command, "--reason", "  ")
    assert result.exit_code == 2
    assert "needs a reason" in result.output
