"""The last words of a run: what had to be run again, and which series was left for another."""

from __future__ import annotations

import subprocess
import sys

import pytest
from real_study import RealStudy, plain_environment

STUDY = """\
[study]
id = "closing"
prices = { local = 36 }

[experiments.work]
fixture = "work"
repeats = 4

[predictions.quick]
claim = "It takes less than two seconds."
experiment = "work"
quantity = "t"
predicts = "< 2 s"
falsifier = ">= 2 s"
"""

WORK = """\
import os
import signal
import time
from pathlib import Path

from pytest_prereg import Repeat, experiment


@experiment(metrics={"t": "s"})
def work(repeat: Repeat) -> None:
    time.sleep(float(os.environ.get("WORK_SECONDS", "0.01")))
    marks = Path(os.environ["WITNESS"])
    known = marks.read_text().split() if marks.exists() else []
    if os.environ.get("KILLED", "") > str(len(known)):
        marks.write_text(" ".join([*known, "killed"]))
        os.kill(os.getpid(), signal.SIGKILL)
    repeat.record("t", 1 + repeat.index / 100)
"""


@pytest.fixture
def study(tmp_path):
    made = RealStudy(tmp_path / "study")
    made.write("predictions.toml", STUDY)
    made.write("experiments/work.py", WORK)
    made.register()
    return made


def flat(output: str) -> str:
    return " ".join(output.split())


def test_it_tells_once_what_was_run_again_and_why_and_what_that_had_taken(study):
    status, output = study.run(KILLED="2")

    faults = [line for line in study.lines("work") if line.get("outcome") == "infrastructure"]
    lost = sum(line["seconds"]["total"] for line in faults)
    said = f"work: 2 repeats run again (infrastructure: killed from outside (SIGKILL); {lost:.1f} s lost)"
    assert status == 0, output
    assert len(faults) == 2
    assert output.count(said) == 1


def test_where_nothing_was_run_again_it_says_nothing_of_it(study):
    assert "run again" not in study.run()[1]


def stopped(study: RealStudy) -> int:
    """Lets a run stop half way; returns how many repeats it has kept."""
    study.run("--prereg-budget", "0.01", WORK_SECONDS="0.5")
    return study.slots("work", "finished").total()


@pytest.mark.parametrize("key", ["code", "registration"])
def test_a_series_that_was_abandoned_is_told_of_by_the_run_that_opens_the_next(study, key):
    kept = stopped(study)
    if key == "code":
        study.write("experiments/work.py", WORK.replace("1 + repeat", "1.1 + repeat"))
    else:
        study.write("predictions.toml", STUDY.replace("< 2 s", "< 1.9 s"))
    amend(study)

    _, output = study.run()
    _, again = study.run()

    why = {"code": "its code changed", "registration": 'the registration of "quick" changed'}[key]
    assert 1 <= kept < 4
    assert f"series 1 of work was abandoned after {kept} of 4 repeats: {why}" in flat(output)
    assert "abandoned after" not in again


def test_a_series_that_was_voided_is_never_gone_on_with(study):
    kept = stopped(study)
    command(study, "void", "work/1", "--reason", "the wrong cable")

    _, output = study.run()

    assert f"series 1 of work was voided after {kept} of 4 repeats: the wrong cable" in flat(output)
    assert study.slots("work", "finished").total() == kept + 4
    assert {line["series"] for line in study.lines("work") if line["type"] == "header"} == {1, 2}


def test_a_run_that_stops_counts_what_its_series_has_lost(study):
    _, output = study.run("--prereg-budget", "0.02", KILLED="1", WORK_SECONDS="0.5")

    assert "work: 1 attempt lost; more than 2 of the same arms are inconclusive" in output


def test_what_resumes_is_what_was_typed(study):
    _, output = study.run("-k", "quick", "--prereg-record", "--prereg-budget", "0.01", WORK_SECONDS="0.5")

    resume = "resume: pytest --prereg --prereg-record --prereg-budget 0.01 -k quick (what is kept is not run again)"
    assert resume in flat(output)


def amend(study: RealStudy) -> None:
    command(study, "amend", "quick", "--reason", "it was wrong")


def command(study: RealStudy, *arguments: str) -> None:
    """Runs ``pytest-prereg`` there, and commits what it changes."""
    for line in (
        (sys.executable, "-m", "pytest_prereg", *arguments),
        ("git", "add", "--all"),
        ("git", "commit", "--quiet", "--message", "Change"),
    ):
        done = subprocess.run(
            line, cwd=study.path, env=plain_environment(), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_records_that_cannot_be_written_fail_the_run_and_name_the_file(at_stage, judge):
    result = judge(at_stage("recorded"), "--prereg-verify", "--prereg-json=experiments")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["experiments: can't be written: Is a directory"])


def test_pilots_alone_are_nothing_to_commit(at_stage, judge):
    project = at_stage("measurable")
    project.done("try", "work")
    assert "next:" not in judge(project, "--prereg-verify").stdout.str()
    judge(project).stdout.fnmatch_lines(["next:  git add experiments/evidence && git commit *"])


@pytest.mark.parametrize("mode", ["--prereg-verify", "--prereg-measure"])
def test_a_verdict_that_was_recorded_before_is_committed_with_its_evidence(at_stage, judge, mode):
    project = at_stage("measurable")
    judge(project, "--prereg-record")

    judge(project, mode).stdout.fnmatch_lines(
        ["next:  git add predictions.lock experiments/evidence && git commit *"]
    )
    project.commit("Evidence")
    assert "next:" not in judge(project, mode).stdout.str()


FAILING = """\
[study]
id = "failing"

[experiments.work]
command = ["sh", "-c", "echo looking; echo 'gzip: data.txt: No such file' >&2; exit 3"]
repeats = 3

[predictions.quick]
claim = "It takes less than two seconds."
experiment = "work"
quantity = "wall"
predicts = "< 2 s"
falsifier = ">= 2 s"
"""
SHARE = """
[predictions.sound]
claim = "It hardly ever fails."
experiment = "work"
statistic = "proportion"
quantity = "completed"
predicts = ">= 0.5"
falsifier = "< 0.3"
"""
WHY = "exited with status 3: gzip: data.txt: No such file"


def test_where_all_fails_the_reason_is_told_at_once_and_at_the_end(tmp_path):
    study = RealStudy(tmp_path / "study")
    study.write("predictions.toml", FAILING)
    study.register()

    said = flat(study.run()[1])

    assert f"work: every arm failed at its first repeat ({WHY}) The rest is run all the same" in said
    assert f"task-failed: all 3 repeats failed, first work/1/1; none is dropped ({WHY})" in said
    explain = [sys.executable, "-m", "pytest_prereg", "explain", "quick"]
    done = subprocess.run(
        explain, cwd=study.path, env=plain_environment(), capture_output=True, text=True, check=True
    )
    assert f"first work/1/1: {WHY}" in flat(done.stdout)


def test_a_failure_that_is_an_answer_stays_sealed_until_the_last_repeat(tmp_path):
    study = RealStudy(tmp_path / "study")
    study.write("predictions.toml", FAILING.replace("repeats = 3", "repeats = 12") + SHARE)
    study.register()

    assert "every arm failed" not in study.run()[1]
