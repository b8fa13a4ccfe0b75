"""The line that shows how far a measurement is: time and money, and never a value."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_prereg.evidence.model import Finished, Outcome, Started
from pytest_prereg.measure import progress
from pytest_prereg.measure.progress import FailureNotice, Progress
from pytest_prereg.progress import progress_text

NOW = Progress(
    experiment="zstd",
    arm="old",
    index=4,
    block=4,
    attempt=1,
    done=7,
    planned=20,
    blocks=10,
    may_end_early=False,
    seconds_left=11.4,
    usd=0.12,
)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "zstd  block 4 of 10  old  8 of 20   11 s left   $0.12"),
        ({"seconds_left": None, "usd": 0.0}, "zstd  block 4 of 10  old  8 of 20   $0.00"),
        ({"arm": ""}, "zstd  block 4 of 10  8 of 20   11 s left   $0.12"),
        ({"warmup": True}, "zstd  block 4 of 10  old  warm-up   11 s left   $0.12"),
        ({"attempt": 3}, "zstd  block 4 of 10  old  8 of 20  attempt 3   11 s left   $0.12"),
        ({"waiting": True}, "zstd  block 4 of 10  old  8 of 20  waiting for the machine   11 s left   $0.12"),
        (
            {"may_end_early": True, "seconds_left": 5400.0},
            "zstd  block 4 of at most 10  old  8 of at most 20   at most 90 min left   $0.12",
        ),
    ],
)
def test_it_names_experiment_block_arm_repeat_time_and_cost(changes, text):
    assert progress_text(replace(NOW, **changes)) == text


@pytest.mark.parametrize(("again", "said"), [(60.0, 1), (0.0, 4)])
def test_a_wait_is_told_of_again_when_it_has_lasted(monkeypatch, again, said):
    monkeypatch.setattr(progress, "NOTICED_SECONDS", 0.0)
    monkeypatch.setattr(progress, "AGAIN_SECONDS", again)
    told = []
    notice = progress.WaitNotice(told.append)
    for _ in range(5):
        notice.repeat(replace(NOW, waiting=True))
    assert len(told) == said


def test_two_that_are_waited_for_are_both_named():
    text = progress.waiting_text([3, 4], since=0.0)
    assert text.endswith(" for the machine: other sessions (processes 3, 4) measure on it")


def ended(arm, outcome, *, warmup=False, error=None):
    """What is told of one repeat."""
    started = Started(
        repeat=f"e/1/{arm}/1", arm=arm, index=1, attempt=1, block=1, seed=1, at="", warmup=warmup
    )
    finished = Finished(
        repeat=started.repeat, attempt=1, outcome=outcome, values={}, cause="exit", error=error, seconds={}
    )
    return started, finished


FAILED, LOST, FINE = Outcome.TASK_FAILED, Outcome.INFRASTRUCTURE, Outcome.OK
WHY = "exited with status 2\nlooking\ncat: x: No such file"


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ([("new", FAILED), ("old", FAILED), ("new", FAILED)], 1),
        ([("new", LOST), ("new", FAILED), ("old", FAILED)], 1),
        ([("new", FAILED), ("old", FINE), ("old", FAILED)], 0),
        ([("new", FINE), ("new", FAILED), ("old", FAILED)], 0),
        ([("new", FAILED), ("new", FAILED)], 0),
    ],
)
def test_it_is_said_once_that_every_arm_fails_from_the_start(ends, said):
    told = []
    notice = FailureNotice("e", ["new", "old"], told.append)
    for arm, outcome in ends:
        notice.ended(*ended(arm, outcome, error=WHY))
    assert len(told) == said
    first = "e: every arm failed at its first repeat (exited with status 2: cat: x: No such file)"
    assert all(text.startswith(first) for text in told)


def test_a_warm_up_says_nothing_of_what_is_measured():
    told = []
    FailureNotice("e", ["new"], told.append).ended(*ended("new", FAILED, warmup=True))
    assert told == []
