"""What the programs of known outcomes are, and what is counted of what a grader says."""

from __future__ import annotations

import pytest

from experiments import labelling
from experiments.labelling import KNOWN, by_status, in_sandboxes
from pytest_prereg.measure.repeat import Repeat
from pytest_prereg.measure.workloads.sandbox.outcomes import Outcome

RIGHT, WRONG = "def solve(n): return 2 * n", "def solve(n): return n"


def test_programs_are_told_apart_and_have_outcomes_of_the_sandbox() -> None:
    programs = [program for _, program in KNOWN]
    assert len({*programs}) == len(programs) >= 12
    assert {outcome for outcome, _ in KNOWN} == {each.value for each in Outcome} - {"infrastructure"}


@pytest.mark.parametrize("grade", [by_status, in_sandboxes])
def test_both_graders_tell_right_from_wrong(grade) -> None:
    assert grade([RIGHT, WRONG], 20.0, 2).outcomes == ["pass", "fail"]


def test_what_was_started_by_a_program_is_ended_with_the_batch() -> None:
    forks = f"import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(60)\n{WRONG}"
    assert by_status([forks], 1.0, 1).outcomes == ["timeout"]  # its child holds the pipe


def test_counts_are_of_labels_that_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    known = [("pass", RIGHT), ("fail", WRONG), ("crash", "def solve(n): return n / 0"), ("timeout", RIGHT)]
    monkeypatch.setattr(labelling, "KNOWN", known)
    repeat = Repeat(metrics=labelling.labelling.metrics)
    labelling.labelling(repeat, grader="status", deadline=20.0)
    found = repeat.readings()
    assert found.values == {
        "programs": 4,
        "named": 2,
        "undeserving": 3,
        "passed_wrongly": 1,
        "late": 1,
        "late_misnamed": 1,
    }
    assert found.diagnostics["said"] == ["pass: pass", "fail: fail", "crash: fail", "timeout: pass"]
