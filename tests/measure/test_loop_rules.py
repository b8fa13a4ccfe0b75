"""Rules and conditions that are applied when a repeat ends, to what the tool itself has read."""

from __future__ import annotations

import pytest
from loop_bench import FAILED, FAULT, OK, Script, finished
from msgspec.structs import replace

from pytest_prereg.evidence.model import Outcome

BUSY = {"load_average": 9.5, "gpu_throttled": False}
TIMEOUT = replace(FAILED, outcome=Outcome.TIMEOUT, cause="deadline", environment=BUSY)
INVALID = replace(FAILED, outcome=Outcome.INVALID, cause="because", environment=BUSY)


@pytest.fixture
def ruled(bench):
    bench.declare(exclude=["load_average > 4", "gpu_throttled"])
    return bench


def test_a_repeat_that_breaks_a_rule_is_excluded_with_the_rule_and_the_reading(ruled):
    lines = finished(ruled.run(Script(replace(OK, environment=BUSY))))

    assert (lines[0].outcome, lines[0].cause) == (Outcome.EXCLUDED, "load_average > 4 (was 9.5)")
    assert lines[0].values == {"t": 0.5}
    assert [line.outcome for line in lines[1:]] == [Outcome.OK] * 5


def test_its_slot_is_not_filled_again_and_the_rule_is_nobodys_choice(ruled):
    executor = Script(replace(OK, environment=BUSY))
    ruled.run(executor)
    series = ruled.series()

    assert len(executor.jobs) == 6
    assert series.complete
    assert [repeat.by_author for repeat in series.repeats if repeat.outcome is Outcome.EXCLUDED] == [False]


@pytest.mark.parametrize(
    "ended", [replace(FAILED, environment=BUSY), TIMEOUT, INVALID], ids=["failed", "timeout", "invalid"]
)
def test_nothing_but_what_ended_well_is_ever_dropped(ruled, ended):
    line = finished(ruled.run(Script(ended)))[0]

    assert (line.outcome, line.cause) == (ended.outcome, ended.cause)


def test_a_fault_is_run_again_whatever_the_machine_was_like(ruled):
    lines = finished(ruled.run(Script(replace(FAULT, environment=BUSY))))

    assert lines[0].outcome is Outcome.INFRASTRUCTURE
    assert (lines[1].repeat, lines[1].attempt, lines[1].outcome) == (lines[0].repeat, 2, Outcome.OK)


def test_what_could_not_be_read_excludes_nothing(ruled):
    lines = finished(ruled.run(Script(replace(OK, environment={"load_average": None}))))

    assert [line.outcome for line in lines] == [Outcome.OK] * 6


def test_a_pilot_breaks_no_rule(ruled):
    header = ruled.header(origin="pilot")
    lines = finished(ruled.run(Script(then=replace(OK, environment=BUSY)), header=header))

    assert {line.outcome for line in lines} == {Outcome.PILOT}


def test_a_repeat_outside_of_the_conditions_says_so_and_keeps_its_outcome(bench):
    bench.declare(conditions={"load_average": "<= 4", "cores": 2})
    answers = replace(OK, environment=BUSY), replace(OK, environment={"load_average": 1.0})
    lines = finished(bench.run(Script(*answers, then=answers[1])))

    assert lines[0].outcome is Outcome.OK
    assert lines[0].outside is not None
    assert "load_average is 9.5" in lines[0].outside
    assert "<= 4" in lines[0].outside
    assert [line.outside for line in lines[1:]] == [None] * 5
    assert [repeat.outside is not None for repeat in bench.series().repeats] == [True] + [False] * 5


def test_a_condition_that_could_not_be_read_did_not_hold(bench):
    bench.declare(conditions={"gpu_throttled": False})
    lines = finished(bench.run(Script()))

    assert all(line.outside for line in lines)
