"""Warm-ups: run before the first repeat of a session, written down, and counted nowhere."""

from __future__ import annotations

import pytest
from loop_bench import FAILED, FAULT, OK, Script, finished
from msgspec.structs import replace

from pytest_prereg.errors import MeasureError
from pytest_prereg.evidence.model import Outcome, Started
from pytest_prereg.measure.schedule import repeat_seed
from pytest_prereg.registry.tables import RepeatsTable


@pytest.fixture
def warm(bench):
    """Three repeats of two arms, after two warm-ups of each."""
    bench.declare(warmup=2)
    return bench


WARMUPS = ["lab/1/a/warmup-1", "lab/1/b/warmup-1", "lab/1/a/warmup-2", "lab/1/b/warmup-2"]


def test_every_arm_is_warmed_up_before_the_first_repeat(warm):
    executor = Script()
    lines = warm.run(executor)

    assert [job.repeat for job in executor.jobs[:4]] == WARMUPS
    assert not any("warmup" in job.repeat for job in executor.jobs[4:])
    assert [line.outcome for line in finished(lines)] == [Outcome.WARMUP] * 4 + [Outcome.OK] * 6
    assert [line.warmup for line in lines if isinstance(line, Started)] == [True] * 4 + [False] * 6


def test_none_of_them_counts(warm):
    warm.run(Script())

    assert warm.series().complete
    assert len(warm.series().repeats) == 6
    assert warm.series().surplus == 0


def test_every_session_that_has_something_to_measure_warms_up_again(warm):
    def killed(_job):
        raise KeyboardInterrupt

    warm.run(Script(OK, OK, OK, OK, OK, killed))
    executor = Script()
    lines = warm.run(executor)

    assert [job.repeat for job in executor.jobs[:4]] == WARMUPS
    assert len(executor.jobs) == 4 + 5
    assert [line.outcome for line in finished(lines)[:4]] == [Outcome.WARMUP] * 4
    assert warm.series().complete


def test_a_session_in_which_nothing_is_left_to_measure_runs_none(warm):
    warm.run(Script())
    executor = Script()
    warm.run(executor)

    assert executor.jobs == []


def test_so_does_one_that_a_look_finds_decided(warm):
    warm.declare(repeats=RepeatsTable(looks=[3]), warmup=1)
    warm.run(Script(), enough=lambda _block: False)
    executor = Script()
    warm.run(executor, enough=lambda _block: True)

    assert executor.jobs == []


def test_their_seeds_are_none_of_any_repeat_that_counts(warm):
    executor = Script()
    warm.run(executor)
    seeds = [job.seed for job in executor.jobs]

    registered = warm.header().seed
    assert set(seeds[:4]).isdisjoint(repeat_seed(registered, block) for block in range(1, 10_000))
    assert seeds[0] == seeds[1] != seeds[2] == seeds[3]


def test_one_that_fails_is_told_and_stops_nothing(warm):
    executor = Script(FAILED, FAULT)
    lines = finished(warm.run(executor))

    assert [(line.outcome, line.cause) for line in lines[:3]] == [
        (Outcome.WARMUP, "task-failed: exception"),
        (Outcome.WARMUP, "infrastructure: killed"),
        (Outcome.WARMUP, None),
    ]
    assert len(executor.jobs) == 4 + 6  # none is run again
    assert warm.series().complete
    assert warm.series().faults == ()


def test_one_that_is_lost_is_no_fault(warm):
    def killed(_job):
        raise KeyboardInterrupt

    warm.run(Script(OK, killed))
    warm.run(Script())

    assert warm.series().complete
    assert warm.series().faults == ()


def test_faults_in_a_row_are_no_accident_even_of_warm_ups(warm):
    executor = Script(then=FAULT)
    warm.run(executor)

    assert isinstance(warm.error, MeasureError)
    assert "PR132" in str(warm.error)
    assert (executor.starts, len(executor.jobs)) == (1, 5)


def test_rules_and_checkpoints_are_for_what_counts(warm):
    warm.declare(exclude=["load_average > 4"])
    executor = Script(then=replace(OK, environment={"load_average": 9.0}))
    lines = finished(warm.run(executor))

    assert [line.outcome for line in lines] == [Outcome.WARMUP] * 4 + [Outcome.EXCLUDED] * 6
    assert [job.checkpoint is None for job in executor.jobs] == [True] * 4 + [False] * 6


def test_progress_says_that_it_is_one_and_counts_none(warm):
    seen = []
    warm.run(Script(), progress=seen.append)

    assert [one.warmup for one in seen] == [True] * 4 + [False] * 6
    assert [one.done for one in seen] == [0] * 4 + list(range(6))


def test_a_pilot_has_none(warm):
    executor = Script()
    warm.run(executor, header=warm.header(origin="pilot", planned={"a": 1}))

    assert [job.repeat for job in executor.jobs] == ["lab/1/a/1"]
