"""Warm-ups in a real run: the experiment sees them, the verdict does not."""

from __future__ import annotations

import os
import signal

import pytest
from real_study import RealStudy, wait_until

STUDY = """\
[study]
id = "warm"

[experiments.work]
fixture = "work"
repeats = 4
warmup = 2

[predictions.quick]
claim = "It takes less than two seconds."
experiment = "work"
quantity = "t"
predicts = "< 2 s"
falsifier = ">= 2 s"
"""

WORK = """\
import os
import time

from pytest_prereg import Repeat, experiment


@experiment(metrics={"t": "s"})
def work(repeat: Repeat) -> None:
    with open(os.environ["WITNESS"], "a") as witness:
        print("began", repeat.arm or "-", repeat.index, file=witness)
    cold = sum(1 for _ in open(os.environ["WITNESS"])) <= 2
    time.sleep(float(os.environ.get("WORK_SECONDS", "0.01")))
    repeat.record("t", 100.0 if cold else 1 + repeat.index / 100)
"""


@pytest.fixture
def study(tmp_path):
    made = RealStudy(tmp_path / "study")
    made.write("predictions.toml", STUDY)
    made.write("experiments/work.py", WORK)
    made.register()
    return made


def outcomes(study: RealStudy) -> list[str]:
    return [line["outcome"] for line in study.lines("work") if line["type"] == "finished"]


def test_a_cold_start_decides_nothing(study):
    status, output = study.run()

    assert status == 0, output
    assert outcomes(study) == ["warmup"] * 2 + ["ok"] * 4
    assert "n 4" in output
    assert "1 supported" in output
    assert "evidence: 1 file, 4 repeats kept" in output


def test_a_session_that_goes_on_warms_up_first_and_one_with_nothing_to_do_does_not(study):
    process = study.start(WORK_SECONDS="0.3")
    wait_until(lambda: outcomes(study).count("ok") >= 1, what="a repeat")
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
    bought = len(study.seen("began"))
    left = 4 - outcomes(study).count("ok")

    study.run()
    then = len(study.seen("began"))
    study.run()

    assert then == bought + 2 + left
    assert len(study.seen("began")) == then
    assert outcomes(study).count("ok") == 4


def test_what_would_be_measured_says_so(study):
    _, output = study.run("--co")

    assert "would measure work: series 1, 4 of 4 repeats after 2 warm-ups of each arm, time unknown" in output
