"""What several studies share, seen from outside: the machine, which they take in turns, and no server."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from real_study import RealStudy, complaints, plain_environment, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STUDY = """\
[study]
id = "{name}"

[experiments.work]
fixture = "work"
repeats = 5
{keys}

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
import urllib.request

from pytest_prereg import Repeat, experiment

WITNESS = os.open(os.environ["WITNESS"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)


@experiment(metrics={"t": "s"})
def work(repeat: Repeat) -> None:
    os.write(WITNESS, f"began {os.getpid()} {time.monotonic_ns()}\\n".encode())
    if repeat.service_port:
        urllib.request.urlopen(f"http://127.0.0.1:{repeat.service_port}/").read()
    time.sleep(float(os.environ.get("WORK_SECONDS", "0.1")))
    repeat.record("t", 1 + repeat.index / 100)
    os.write(WITNESS, f"ended {os.getpid()} {time.monotonic_ns()}\\n".encode())
"""

HOLD = """\
import fcntl, sys
machine = open(sys.argv[1], "w")
fcntl.flock(machine, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., RealStudy]]:
    made = []

    def study(name: str, keys: str = "") -> RealStudy:
        one = RealStudy(tmp_path / name)
        one.write("predictions.toml", STUDY.format(name=name, keys=keys))
        one.write("experiments/work.py", WORK)
        one.register()
        made.append(one)
        return one

    yield study
    for one in made:
        for pid in one.processes():
            with suppress(ProcessLookupError):  # it has ended by itself since it was looked for
                os.kill(pid, signal.SIGKILL)


def tried(study: RealStudy, **variables: str) -> subprocess.Popen[str]:
    """Starts ``pytest-prereg try work``."""
    return subprocess.Popen(
        [sys.executable, "-m", "pytest_prereg", "try", "work"],
        cwd=study.path,
        env={**plain_environment(), "WITNESS": str(study.witness), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def up_to(process: subprocess.Popen[str], words: str) -> str:
    """Reads what a process prints up to a line with these words, which it returns, or to the end."""
    assert process.stdout is not None
    return next((line.rstrip() for line in process.stdout if words in line), "")


def times(study: RealStudy) -> list[tuple[int, int]]:
    """Beginning and end of every repeat that ended."""
    began = {int(pid): at for pid, at in study.seen("began")}
    return [(began[int(pid)], at) for pid, at in study.seen("ended")]


def test_two_studies_measure_in_turns_and_both_finish(make, tmp_path):
    both = [make("one"), make("two")]
    runs = [study.start(TMPDIR=str(tmp_path)) for study in both]
    outputs = [run.communicate(timeout=60)[0] for run in runs]

    assert [run.returncode for run in runs] == [0, 0], outputs
    assert not [word for output in outputs for word in complaints(output)]
    all_of_them = sorted(span for study in both for span in times(study))
    assert len(all_of_them) == 10
    assert all(ended < began for (_, ended), (began, _) in pairwise(all_of_them))


def test_whoever_waits_for_another_session_says_so_once_and_for_which(make, tmp_path):
    studies = [make("one"), make("two")]
    folder = tmp_path / "pytest-prereg-devices"
    folder.mkdir()
    command = [sys.executable, "-c", HOLD, str(folder / "machine")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert up_to(holder, "held")
        run = studies[0].start(TMPDIR=str(tmp_path))
        trial = tried(studies[1], TMPDIR=str(tmp_path))
        told = [up_to(process, "another session") for process in (run, trial)]
    rest = [process.communicate(timeout=60)[0] for process in (run, trial)]

    assert [process.returncode for process in (run, trial)] == [0, 0], (told, rest)
    what = rf"waiting since \d\d:\d\d:\d\d for the machine: another session \(process {holder.pid}\) measures on it"
    assert all(re.fullmatch(what, line) for line in told), told
    assert not [output for output in rest if "another session" in output]


def test_an_interrupt_while_it_waits_loses_no_attempt(make, tmp_path):
    first, second = make("one"), make("two")
    running = first.start(TMPDIR=str(tmp_path), WORK_SECONDS="30")
    wait_until(lambda: first.seen("began"), what="the first study")
    waiting = second.start(TMPDIR=str(tmp_path))
    wait_until(lambda: len(second.processes()) >= 2, what="the second study")
    wait_until(lambda: second.files("work"), what="its evidence file")
    wait_until(lambda: holds_open(waiting.pid, "pytest-prereg-devices/turn"), what="it to wait")
    waiting.send_signal(signal.SIGINT)
    output, _ = waiting.communicate(timeout=20)
    running.kill()
    running.communicate()

    assert waiting.returncode == pytest.ExitCode.INTERRUPTED
    assert not list(complaints(output))
    assert [line["type"] for line in second.lines("work")] == ["header", "footer"]
    assert second.processes() == []


def holds_open(pid: int, name: str) -> bool:
    try:
        return any(str(one.readlink()).endswith(name) for one in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False


def test_every_repeat_has_a_server_of_its_own_which_leaves_nothing(make):
    command = f'["{sys.executable}", "-m", "http.server", "{{port}}", "--bind", "127.0.0.1"]'
    study = make("served", f'service = {{ command = {command}, ready = "http://127.0.0.1:{{port}}/" }}')
    status, output = study.run(WORK_SECONDS="0.01")

    assert status == 0, output
    ended = [line for line in study.lines("work") if line["type"] == "finished"]
    assert [line["outcome"] for line in ended] == ["ok"] * 5
    assert all(0 < line["seconds"]["service"] < line["seconds"]["total"] for line in ended)
    assert study.processes() == []
    assert study.left_over() == []


def test_a_server_that_never_starts_ends_the_run_with_what_it_said(make):
    study = make("broken", 'service = { command = ["sh", "-c", "echo no licence; exit 4", "{port}"] }')
    status, output = study.run()

    assert status == pytest.ExitCode.TESTS_FAILED
    assert "PR132" in output
    assert "service" in output
    assert "no licence" in output
    assert not list(complaints(output))
    assert study.seen("began") == []
