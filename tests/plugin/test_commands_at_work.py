"""Commands as experiments, from a registration to a verdict, also after a kill -9."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from reading_study import READ
from small_study import Project, Verdicts, new_repository

NAP = """\
[study]
id = "naps"
[experiments.nap]
command = ["{command}"]
warmup = 1
repeats = 4
[experiments.nap.arms]
short = { command = ["sleep", "0.02"] }
long = { command = ["sleep", "0.21"] }
[predictions.short-is-shorter]
claim = "A short nap is at most half as long."
experiment = "nap"
contrast = "short / long"
quantity = "wall"
predicts = "<= 0.5"
falsifier = ">= 0.8"
"""
LONG = ["sleep", "0.21"]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = new_repository(tmp_path / "project")
    made.write("predictions.toml", NAP)
    made.done("lock")
    made.commit("Register")
    return made


def finished(project: Project) -> list[dict]:
    lines = (line for path in project.evidence("nap") for line in path.read_text().splitlines())
    return [each for each in map(json.loads, lines) if each["type"] == "finished"]


def test_two_command_lines_are_measured_and_judged(project, tmp_path):
    done = project.process("--prereg", f"--prereg-json={tmp_path / 'records.json'}")
    assert done.returncode == 0, done.stdout
    assert Verdicts(tmp_path / "records.json")["short-is-shorter"]["verdict"] == "supported"
    outcomes = [each["outcome"] for each in finished(project)]
    assert outcomes == ["warmup"] * 2 + ["ok"] * 8
    assert finished(project)[0]["instruments"]["wall"] == "wall-clock"


def test_a_trial_tells_time_memory_and_status_in_a_line_for_each_arm(project):
    told = sorted(project.done("try", "nap").splitlines()[:2])
    assert [line.split()[0] for line in told] == ["long", "short"]
    assert all(
        "   wall 0." in line and "   max_rss ≤ " in line and line.endswith("   exit 0") for line in told
    )


def test_after_kill_9_nothing_of_the_command_is_left_and_the_series_goes_on(project, tmp_path):
    session = subprocess.Popen(
        [sys.executable, "-m", "pytest", "--prereg"], cwd=project.path, stdout=subprocess.DEVNULL
    )
    napping = wait_for(lambda: [pid for pid in pids() if command_of(pid) == LONG])
    session.send_signal(signal.SIGKILL)
    session.wait()
    wait_for(lambda: not any(command_of(pid) == LONG for pid in napping))
    done = project.process("--prereg", f"--prereg-json={tmp_path / 'records.json'}")
    assert done.returncode == 0, done.stdout
    record = Verdicts(tmp_path / "records.json")["short-is-shorter"]
    assert (record["verdict"], record["n"], len(record["sessions"])) == ("supported", 4, 2)


def wait_for(found):
    until = time.monotonic() + 20
    while not (what := found()):
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.01)
    return what


def pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208


def command_of(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1]
    except OSError:
        return []


@pytest.mark.parametrize(("quantity", "told"), [("t", True), ("2 * t", True), ("mean(t)", False)])
def test_a_trial_says_of_which_quantity_a_repeat_has_many_values(tmp_path, quantity, told):
    project = new_repository(tmp_path / "project")
    project.write("predictions.toml", READ.replace('quantity = "t"', f'quantity = "{quantity}"'))

    done = project.prereg("try", "read")

    line = f'"{quantity}" is 2 samples in a repeat; write mean({quantity}), or another number of them'
    printed = " ".join(done.output.split())
    assert (f'prediction "quick" could never be judged: {line}' in printed) == told
    assert done.exit_code == told


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ('["sh", "-c", "echo why >&2; exit 3"]', "FAILED: exited with status 3\n    why\n"),
        ('["no-such-program"]', 'FAILED: "no-such-program" could not be started: no such program on PATH\n'),
        ('["sleep", "9"]\ntimeout = "0.5 s"', "FAILED: deadline, after 0.5 s, its timeout\n"),
    ],
)
def test_a_trial_that_fails_says_once_why(tmp_path, command, told):
    project = new_repository(tmp_path / "project")
    text = f'[study]\nid = "s"\n[experiments.run]\nrepeats = 3\ncommand = {command}\n'
    project.write("predictions.toml", text)

    done = project.prereg("try", "run")

    lines = done.output.splitlines(keepends=True)
    assert told in "".join(line[line.find("FAILED") :] if "FAILED" in line else line for line in lines)
    assert done.output.count("exit") == told.count("exit")


def test_a_trial_that_fails_names_what_it_leaves(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    project = new_repository(tmp_path / "project")
    command = '["sh", "-c", "echo why; exit 3"]'
    project.write(
        "predictions.toml", f'[study]\nid = "s"\n[experiments.run]\nrepeats = 3\ncommand = {command}\n'
    )

    printed = project.prereg("try", "run").output

    (left,) = tmp_path.glob("prereg-*")
    assert f"output of repeats that failed: {left}\n" in printed
    assert [file.read_text() for file in left.iterdir()] == ["why\n"]
