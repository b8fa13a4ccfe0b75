"""Completions run as programs: what they are worth, and what is no doing of theirs."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import sandboxes

pytest.importorskip("torch")

from trajectories import several, trajectory

from pytest_prereg.measure.workloads.learning.programs import Programs
from pytest_prereg.measure.workloads.learning.reward_ledger import (
    Ending,
    Grade,
    Ledger,
    RewardUnavailableError,
)
from pytest_prereg.measure.workloads.learning.reward_stage import RewardStage, graded_at_once
from pytest_prereg.measure.workloads.sandbox import watching
from pytest_prereg.measure.workloads.sandbox.client import MOST

pytestmark = pytest.mark.torch

PASSED, FAILED = Grade(reward=1), Grade(reward=0)
TIMED_OUT = Grade(reward=0, ending=Ending.TIMED_OUT)
NEVER, ALWAYS = 10**9, 1
"""One in how many hangs."""


@pytest.fixture
def programs():
    """Makes graders; none outlives its test."""
    made = []

    def make(*, deadline=10.0, hang_one_in=NEVER, isolation="processes"):
        made.append(Programs(deadline=deadline, workers=2, isolation=isolation, hang_one_in=hang_one_in))
        return made[-1]

    yield make
    for each in made:
        each.close()


def grades(grader, *responses):
    """The grades of some responses, all at once."""
    with ThreadPoolExecutor(len(responses)) as threads:
        return list(threads.map(grader.grade, [trajectory(response=each) for each in responses]))


def running(grader):
    """The process that runs the only program of a grader, and the driver beside it."""
    supervisor = sandboxes.supervisor_of(grader._sandbox)

    def found():
        return [
            (driver, each) for driver in watching.children(supervisor) for each in watching.children(driver)
        ]

    sandboxes.wait_for(found)
    return found()[0]


@pytest.mark.parametrize(
    "isolation", ["processes", pytest.param("namespaces", marks=sandboxes.needs_namespaces)]
)
def test_a_completion_passes_if_its_median_token_is_even(programs, isolation):
    assert grades(programs(isolation=isolation), [9, 4, 1], [9, 5, 2]) == [PASSED, FAILED]


def test_a_completion_hangs_if_its_tokens_add_up_to_a_multiple(programs):
    grader = programs(deadline=0.5, hang_one_in=7)
    assert grades(grader, [2, 2, 3], [2, 2, 4]) == [TIMED_OUT, PASSED]
    assert grader._sandbox.alive() == 0


def test_the_deadline_of_each_program_counts_from_its_own_start(programs):
    grader = programs(deadline=0.5, hang_one_in=7)
    assert grades(grader, [7], [14], [21], [2])[-1] == PASSED


def test_a_deadline_may_be_a_day_away(programs):
    assert grades(programs(deadline=86_400), [2]) == [PASSED]


@pytest.mark.parametrize("which", ["driver", "program"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_program_that_something_else_ended_has_no_grade(programs, which, number):
    grader = programs(hang_one_in=ALWAYS)
    with ThreadPoolExecutor(1) as threads:
        grade = threads.submit(grader.grade, trajectory())
        os.kill(running(grader)[which == "program"], number)
        with pytest.raises(RewardUnavailableError, match=r"SIGKILL|SIGTERM|status -15"):
            grade.result()


def test_a_grade_that_was_lost_is_given_at_the_next_attempt(programs):
    grader, ledger = programs(deadline=1.0, hang_one_in=ALWAYS), Ledger()
    ledger.open(several(1))
    with RewardStage(grader, ledger, workers=1, attempts=2) as stage:
        stage.start(several(1))
        sandboxes.kill(running(grader)[1])
        stage.wait()
        stage.settle()
    (receipt,) = ledger.receipts(several(1))
    assert (receipt.attempt, receipt.grade) == (2, TIMED_OUT)
    assert [fault.reason for fault in ledger.faults] == ["crash: SIGKILL"]


def test_what_is_graded_is_cut_short_by_an_error_elsewhere_and_nothing_is_left(programs):
    grader, ledger = programs(deadline=60.0, hang_one_in=ALWAYS), Ledger()
    ledger.open(several(2))
    began = time.monotonic()

    def fails_meanwhile():
        with RewardStage(grader, ledger, workers=1, attempts=9) as stage:
            stage.start(several(2))
            left.extend(running(grader))
            raise RuntimeError("elsewhere")

    left: list[int] = []
    with pytest.raises(RuntimeError, match="elsewhere"):
        fails_meanwhile()
    assert time.monotonic() - began < 30
    assert sandboxes.living(left) == []


def test_no_program_is_forked_from_the_process_that_has_the_model(programs):
    """Each would have a copy of its page tables, which takes longer the more memory it has."""
    before, seen, over = set(watching.children(os.getpid())), set(), threading.Event()

    def look():
        while not over.is_set():
            seen.update(watching.children(os.getpid()))

    looking = threading.Thread(target=look)
    looking.start()
    grader = programs()
    assert grades(grader, *[[2]] * 8) == [PASSED] * 8
    over.set()
    looking.join()
    assert seen - before == {sandboxes.supervisor_of(grader._sandbox)}


def test_as_many_are_graded_at_once_as_there_are_processors_and_sandboxes(monkeypatch):
    assert graded_at_once() == min(len(os.sched_getaffinity(0)), MOST)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(1000))
    assert graded_at_once() == MOST
