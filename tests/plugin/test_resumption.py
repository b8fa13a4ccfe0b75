"""A long repeat that was lost goes on where it stopped: the same slot of the same series in the same study alone."""

from __future__ import annotations

import os
import shutil
import signal
from typing import TYPE_CHECKING

import pytest
from real_study import RealStudy, complaints, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STUDY = """\
[study]
id = "long"

[experiments.work]
fixture = "work"
repeats = 3

[predictions.short]
claim = "It takes less than two."
experiment = "work"
quantity = "t"
predicts = "<= 2 s"
falsifier = "> 3 s"
"""
WORK = """\
import os
import time

from pytest_prereg import Repeat, experiment

WITNESS = os.open(os.environ["WITNESS"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)


@experiment(metrics={"t": "s"})
def work(repeat: Repeat) -> None:
    step = repeat.checkpoint() / "step"
    found = step.read_text() if step.exists() else "nothing"
    step.write_text(f"step-of-{repeat.index}")
    os.write(WITNESS, f"began {found} {repeat.index}\\n".encode())
    time.sleep(float(os.environ.get("WORK_SECONDS", "60")))
    repeat.record("t", 1 + repeat.index / 100)
"""


@pytest.fixture
def study(tmp_path: Path) -> Iterator[RealStudy]:
    made = RealStudy(tmp_path / "study")
    made.write("predictions.toml", STUDY)
    made.write("experiments/work.py", WORK)
    made.register()
    yield made
    for pid in made.processes():
        os.kill(pid, signal.SIGKILL)


def killed_in_its_first_repeat(study: RealStudy, cache: Path) -> None:
    process = study.start(XDG_CACHE_HOME=str(cache))
    wait_until(lambda: study.seen("began"), what="a repeat")
    process.kill()
    process.communicate()
    wait_until(lambda: not study.processes(), what="all to die")


def folders(cache: Path) -> list[Path]:
    return [path for path in (cache / "pytest-prereg" / "checkpoints").rglob("*") if path.is_file()]


def test_after_kill_9_of_pytest_the_next_attempt_alone_finds_the_checkpoint(study, tmp_path):
    cache = tmp_path / "cache"
    killed_in_its_first_repeat(study, cache)
    assert len(folders(cache)) == 1

    status, output = study.run(XDG_CACHE_HOME=str(cache), WORK_SECONDS="0.01")

    assert status == 0, output
    assert not list(complaints(output))
    began = study.seen("began")
    first = began[0][1]
    assert began[1] == (f"step-of-{first}", first)
    assert all(found == "nothing" for found, _ in began[2:])
    ended = [line for line in study.lines("work") if line["type"] == "finished"]
    assert [line.get("resumed", False) for line in ended] == [True, False, False]
    assert folders(cache) == []


def test_a_copy_of_the_study_finds_nothing(study, tmp_path):
    cache = tmp_path / "cache"
    killed_in_its_first_repeat(study, cache)
    copy = study.copy(tmp_path / "copy")
    shutil.rmtree(copy.path / "experiments" / "evidence", ignore_errors=True)

    status, output = copy.run(XDG_CACHE_HOME=str(cache), WORK_SECONDS="0.01")

    assert status == 0, output
    assert [found for found, _ in copy.seen("began")] == ["nothing"] * 3
    assert len(folders(cache)) == 1  # of the study itself, whose attempt is still to be made good


def test_a_session_clears_up_after_one_that_was_killed_between_the_last_line_and_the_checkpoint(
    study, tmp_path
):
    cache = tmp_path / "cache"
    killed_in_its_first_repeat(study, cache)
    (left,) = folders(cache)
    (left.parent.parent / "0123456789abcdef").mkdir()  # of a slot that has settled

    study.run(XDG_CACHE_HOME=str(cache), WORK_SECONDS="0.01")

    assert list((cache / "pytest-prereg" / "checkpoints").iterdir()) == []
