"""SIGTERM at any moment of a session: an orderly end that says what is kept and how to go on."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest
from real_study import RealStudy, complaints, wait_until

if TYPE_CHECKING:
    from pathlib import Path

STUDY = """\
[study]
id = "ended"

[experiments.work]
fixture = "work"
repeats = 3

[predictions.quick]
claim = "It takes less than two seconds."
experiment = "work"
quantity = "t"
predicts = "< 2 s"
falsifier = ">= 2 s"
"""

WORK = """\
from pytest_prereg import Repeat, experiment


@experiment(metrics={"t": "s"})
def work(repeat: Repeat) -> None:
    repeat.record("t", 1 + repeat.index / 100)
"""

WAITING = """\
import os
import time


def {hook}():
    with open(os.environ["WITNESS"], "a") as witness:
        print("began {hook} 1", file=witness)
    time.sleep({seconds})
"""


@pytest.fixture
def study(tmp_path: Path) -> RealStudy:
    made = RealStudy(tmp_path / "study")
    made.write("predictions.toml", STUDY)
    made.write("experiments/work.py", WORK)
    made.register()
    return made


def terminated(study: RealStudy, hook: str, *arguments: str, seconds: float = 60) -> tuple[int, str]:
    """Sends SIGTERM while a hook of the project's conftest.py waits; returns status and output."""
    study.write("conftest.py", WAITING.format(hook=hook, seconds=seconds))
    process = study.start(*arguments)
    wait_until(lambda: study.seen("began"), what=hook)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=50)
    assert not list(complaints(output)), output
    return process.returncode, output


def test_while_it_is_collected(study):
    status, output = terminated(study, "pytest_collection_modifyitems")

    assert status == pytest.ExitCode.INTERRUPTED
    assert "resume:  pytest --prereg   (" in output
    assert study.files("work") == {}


def test_before_anything_is_collected(study):
    status, output = terminated(study, "pytest_collection")

    assert status == pytest.ExitCode.INTERRUPTED
    assert "resume:  pytest --prereg   (nothing was measured yet)" in output


def test_after_all_was_measured_while_it_is_judged(study):
    status, output = terminated(study, "pytest_prereg_verdict")

    assert status == pytest.ExitCode.INTERRUPTED
    assert "evidence: 1 file, 3 repeats kept" in output
    assert "resume:  pytest --prereg   (what is kept is not run again)" in output


def test_where_nothing_is_measured_the_command_is_the_one_that_measures_nothing(study):
    study.run()
    status, output = terminated(study, "pytest_prereg_verdict", "--prereg-verify")

    assert status == pytest.ExitCode.INTERRUPTED
    assert "resume:  pytest --prereg-verify   (" in output


def test_when_all_is_over_it_ends_by_itself_and_what_it_records_is_written(study):
    status, output = terminated(study, "pytest_sessionfinish", "--prereg-record", seconds=0.5)

    assert status == 0
    assert "recorded 1 verdict in predictions.lock" in output
    assert "1 passed" in output


def test_what_could_not_be_collected_is_no_interruption(study):
    study.write("predictions.toml", STUDY.replace("falsifier", "falsifer"))
    status, output = study.run()

    assert status == pytest.ExitCode.INTERRUPTED  # so pytest calls it
    assert "resume:" not in output


def test_whoever_handles_it_already_goes_on_doing_so(study):
    study.write(
        "conftest.py",
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: os._exit(77))\n"
        + WAITING.partition("time\n")[2].format(hook="pytest_collection", seconds=60),
    )
    process = study.start()
    wait_until(lambda: study.seen("began"), what="collection")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=50)

    assert process.returncode == 77


def test_afterwards_it_is_as_it_was(at_stage, judge):
    before = signal.getsignal(signal.SIGTERM)
    judge(at_stage("judged"), "--prereg-verify")

    assert signal.getsignal(signal.SIGTERM) == before


def test_tests_without_prereg_are_none_of_its_business(at_stage, judge, pytester):
    pytester.makepyfile(
        "import signal\ndef test_one(): assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL"
    )

    pytester.runpytest_inprocess().assert_outcomes(passed=1)
