"""The line that shows how far a measurement is: time and money, and never a value."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_prereg.measure import progress
from pytest_prereg.measure.progress import Progress
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
