"""Excluding a repeat, from the command to the verdict: it is never silent, and never picks the result."""

from __future__ import annotations

import json
import re

import pytest

EXCLUDE = ("exclude", "--cause", "service", "--reason", "the provider reported an outage")
SLOWEST = "rows/1/2"


def recorded(project):
    return project.process("--prereg-verify", "--prereg", "--prereg-record", "-p", "no:cacheprovider")


@pytest.fixture
def excluded(at_stage):
    """A study whose verdicts are recorded, and one repeat of which is excluded since."""
    project = at_stage("recorded")
    project.done(*EXCLUDE, SLOWEST)
    return project


def test_a_recorded_verdict_that_used_the_repeat_is_stale_and_names_it(excluded, judge):
    result = judge(excluded)
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [f'*PR211: the verdict of "below-two", "supported", was recorded when "{SLOWEST}" still counted*']
    )
    result.stdout.fnmatch_lines(["*Record it as it is now: pytest --prereg-verify --prereg-record"])
    result.stdout.no_fnmatch_line("*PR207*")


def test_recorded_again_it_passes_with_the_new_numbers(excluded, records, judge):
    before = records(excluded)
    recorded(excluded)
    after = records(excluded)
    assert before["below-two"]["n"] == after["below-two"]["n"] == 4
    assert after["below-two"]["verdict"] == after["below-two"]["recorded"] == "supported"
    assert "excluded" in after["below-two"]["flags"]
    assert after["below-two"]["estimate"] == pytest.approx((1.01 + 0.93 + 1.04 + 0.95) / 4)
    assert SLOWEST not in after["below-two"]["repeats"]
    judge(excluded).stdout.no_fnmatch_line("*PR2*")


def test_an_exclusion_that_would_turn_the_verdict_decides_nothing(at_stage, records):
    project = at_stage("judged")
    project.edit("predictions.toml", 'predicts = "[0.999, 1.001] s"', 'predicts = "<= 1.07 s"')
    project.edit("predictions.toml", 'falsifier = "outside [0.5, 1.5] s"', 'falsifier = "> 1.2 s"')
    project.done("amend", "near-one", "--reason", "an edge between the slowest and the others")
    assert records(project)["near-one"]["reason"] == "straddles"
    project.done(*EXCLUDE, SLOWEST)
    found = records(project)["near-one"]
    assert (found["verdict"], found["reason"], found["n"]) == ("inconclusive", "excluded", 4)


def test_an_exclusion_taken_back_out_of_the_lock_is_noticed(excluded, judge):
    recorded(excluded)
    excluded.commit("Exclude the second, and record")
    lock = excluded.path / "predictions.lock"
    text = lock.read_text()
    without = re.sub(r"(?s)\n\[\[exclusion\]\].*?(?=\n\[|$)", "", text)
    assert without != text
    lock.write_text(without)
    judge(excluded).stdout.fnmatch_lines(
        [f'*PR211: the verdict of "below-two"*was recorded without "{SLOWEST}", which the lock no longer*']
    )
    excluded.commit("Take the exclusion back")
    result = judge(excluded)
    assert result.ret == 1
    result.stdout.fnmatch_lines(['*PR207: the evidence of the recorded verdict of "below-two"*'])


def test_an_entry_of_the_lock_that_names_no_evidence_is_an_error(excluded, judge):
    lock = excluded.path / "predictions.lock"
    lock.write_text(lock.read_text().replace(SLOWEST, "rows/1/22"))
    result = judge(excluded)
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ['*PR151: an entry of the lock*no repeat of the evidence is called "rows/1/22"; did you mean*']
    )


@pytest.mark.parametrize(
    ("repeat", "said"),
    [
        ("rows/1/22", 'PR007: no repeat of the evidence is called "rows/1/22"; did you mean "rows/1/2"?'),
        ("rows/3/2", 'PR007: no series of the evidence is called "rows/3"; did you mean "rows/1"?'),
        ("lines/1/2", 'PR007: no series of the evidence is called "lines/1"'),
        (SLOWEST, f'PR150: "{SLOWEST}" is excluded already: the provider reported an outage'),
    ],
)
def test_what_cannot_be_excluded_is_refused_with_what_was_meant(excluded, repeat, said):
    before = (excluded.path / "predictions.lock").read_bytes()
    result = excluded.prereg(*EXCLUDE, repeat)
    assert result.exit_code != 0
    assert said in result.output
    assert (excluded.path / "predictions.lock").read_bytes() == before


FAILING = """\
import time
from pytest_prereg import Repeat, experiment


@experiment(metrics={"t": "s"})
def work(repeat: Repeat, *, spin: int) -> None:
    if repeat.arm == "slow" and repeat.index == 2:
        raise RuntimeError("no")
    if repeat.arm == "slow" and repeat.index == 3:
        repeat.invalidate("no route to the server")
        return
    repeat.record("t", spin * 0.25 + repeat.index * 0.001)
"""


def test_a_failure_is_never_dropped_and_an_invalid_repeat_decides_nothing(at_stage, records):
    project = at_stage("measurable")
    project.write("experiments/work.py", FAILING)
    project.done("amend", "quick-is-quicker", "--reason", "it fails now")
    project.commit("Fail")
    project.process("--prereg", "-p", "no:cacheprovider")
    result = project.prereg(*EXCLUDE, "work/1/slow/2")
    assert result.exit_code != 0
    assert 'PR150: "work/1/slow/2" failed, and a failure is never dropped' in result.output
    project.done(*EXCLUDE, "work/1/slow/3")
    assert records(project)["quick-is-quicker"]["reason"] == "task-failed"
    lines = [json.loads(line) for file in project.evidence("work") for line in file.read_text().splitlines()]
    assert {line["outcome"] for line in lines if line["type"] == "finished"} == {
        "ok",
        "task-failed",
        "invalid",
    }
