"""Nothing that a repeat started outlives it, whoever dies first."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from textwrap import dedent

import pytest

from pytest_prereg.evidence.model import Outcome

ESCAPES = {
    "child": "time.sleep(60)",
    "new session": "os.setsid(); time.sleep(60)",
    "new group": "os.setpgid(0, 0); time.sleep(60)",
    "orphan": "os.setsid()\nif os.fork(): os._exit(0)\ntime.sleep(60)",
    "deaf": "os.setsid()\nfor n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\ntime.sleep(60)",
}

SPAWN = """
if os.fork() == 0:
{escape}
time.sleep(0.2)
"""


def spawning(escape: str, then: str) -> str:
    """A body that leaves behind a process which holds its output and its pipe."""
    return SPAWN.format(escape="\n".join(f"    {line}" for line in escape.splitlines())) + then


@pytest.mark.parametrize("escape", ESCAPES.values(), ids=ESCAPES)
def test_what_a_repeat_leaves_is_killed_and_noted(laboratory, make_job, escape, herd):
    executor = laboratory.executor(spawning(escape, "repeat.record('t', 1)"), environ=herd.environ)
    executor.start()
    began = time.monotonic()
    result = executor.run(make_job(executor))
    assert result.outcome is Outcome.OK
    assert result.diagnostics["leftover_processes"] >= 1
    assert time.monotonic() - began < 3
    assert len(herd.pids()) == 1  # the server


@pytest.mark.parametrize("escape", ESCAPES.values(), ids=ESCAPES)
def test_a_timeout_reaps_the_whole_tree(laboratory, make_job, escape, herd):
    executor = laboratory.executor(spawning(escape, "time.sleep(60)"), timeout=0.5, environ=herd.environ)
    executor.start()
    began = time.monotonic()
    assert executor.run(make_job(executor)).outcome is Outcome.TIMEOUT
    assert time.monotonic() - began < 2.5
    assert len(herd.pids()) == 1


def test_a_repeat_that_exits_while_a_grandchild_holds_its_pipe_ends_at_once(laboratory):
    result = laboratory.run(spawning(ESCAPES["orphan"], "os._exit(5)"))
    assert (result.outcome, result.cause) == (Outcome.TASK_FAILED, "exit")
    assert result.seconds["total"] < 3


def test_a_forked_child_that_returns_from_the_body_does_not_report_for_it(laboratory):
    body = "pid = os.fork()\nif pid: os.waitpid(pid, 0)\nrepeat.record('t', 1 if pid else 2)"
    result = laboratory.run(body)
    assert result.outcome is Outcome.OK
    assert result.values == {"t": 1.0}


def test_a_forked_child_that_raises_in_the_body_does_not_report_for_it(laboratory):
    body = "pid = os.fork()\nif pid == 0: raise RuntimeError\nos.waitpid(pid, 0)\nrepeat.record('t', 1)"
    assert laboratory.run(body).outcome is Outcome.OK


def test_a_body_that_kills_its_supervisor_is_infrastructure_and_leaves_nothing(laboratory, make_job, herd):
    body = spawning(ESCAPES["orphan"], "os.kill(os.getppid(), signal.SIGKILL); time.sleep(60)")
    executor = laboratory.executor(body, environ=herd.environ)
    executor.start()
    result = executor.run(make_job(executor))
    assert (result.outcome, result.cause) == (Outcome.INFRASTRUCTURE, "supervisor")
    assert len(herd.pids()) == 1


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_death_of_the_server_takes_everything_with_it(laboratory, make_job, number, herd):
    executor = laboratory.executor(spawning(ESCAPES["orphan"], "time.sleep(60)"), environ=herd.environ)
    executor.start()
    server = next(iter(executor._servers.values())).process
    threading.Timer(0.6, server.send_signal, [number]).start()
    result = executor.run(make_job(executor))
    assert (result.outcome, result.cause) == (Outcome.INFRASTRUCTURE, "server")
    assert herd.pids() == []


def test_closing_while_a_repeat_runs_stops_everything_within_two_seconds(laboratory, make_job, herd):
    executor = laboratory.executor(spawning(ESCAPES["deaf"], "time.sleep(60)"), environ=herd.environ)
    executor.start()
    with pytest.raises(KeyboardInterrupt), alarm_after(0.6):
        executor.run(make_job(executor))
    assert len(herd.pids()) == 4  # server, supervisor, body, and what it started
    began = time.monotonic()
    executor.close()
    assert time.monotonic() - began < 2
    assert herd.pids() == []


def test_closing_while_modules_are_imported_stops_everything(laboratory, herd):
    executor = laboratory.executor("pass", top="time.sleep(60)", environ=herd.environ)
    with pytest.raises(KeyboardInterrupt), alarm_after(0.6):
        executor.start()
    assert herd.pids() == []


class alarm_after:  # noqa: N801
    """Raises KeyboardInterrupt in its block after some seconds, as Ctrl-C would."""

    def __init__(self, seconds):
        self.seconds = seconds

    def __enter__(self):
        def interrupt(*_):
            raise KeyboardInterrupt

        self.before = signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, self.seconds)

    def __exit__(self, *_):
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.before)


CLIENT = """
import os, sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from laboratories import Laboratory, job

executor = Laboratory(Path({folder!r})).executor({body!r})
executor.start()
{before}
executor.run(job(executor))
"""


def start_client(
    folder: Path, body: str, environ: dict[str, str], before: str = ""
) -> subprocess.Popen[bytes]:
    """A process of its own that runs a repeat, as pytest does."""
    program = CLIENT.format(
        tests=str(Path(__file__).parent), folder=str(folder), body=body, before=dedent(before)
    )
    return subprocess.Popen([sys.executable, "-c", program], env=environ)


@pytest.mark.parametrize("escape", ["new session", "orphan", "deaf"])
def test_kill_9_of_the_client_takes_everything_with_it(laboratory, escape, herd, wait_until):
    client = start_client(laboratory.folder, spawning(ESCAPES[escape], "time.sleep(60)"), herd.environ)
    wait_until(lambda: len(herd.pids()) >= 5)
    client.kill()
    client.wait()
    wait_until(lambda: not herd.pids(), seconds=2)


def test_a_fork_of_the_client_does_not_keep_its_repeats_alive(laboratory, herd, wait_until):
    # The fork holds the client's end of the socket, as a helper process of another plugin would.
    before = """
    if os.fork() == 0:
        import time
        time.sleep(6)
        os._exit(0)
    """
    client = start_client(laboratory.folder, "time.sleep(60)", herd.environ, before)
    wait_until(lambda: len(herd.pids()) >= 5)
    client.kill()
    client.wait()
    wait_until(lambda: len(herd.pids()) == 1, seconds=2)
    os.kill(herd.pids()[0], signal.SIGKILL)


def test_a_client_that_dies_leaves_no_files(laboratory, herd, wait_until, tmp_path):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    environ = {**herd.environ, "TMPDIR": str(temporary)}
    client = start_client(
        laboratory.folder, "(repeat.workdir / 'x').write_text('x'); time.sleep(60)", environ
    )
    wait_until(lambda: list(temporary.glob("prereg-*/work-1/x")))
    client.kill()
    client.wait()
    wait_until(lambda: not herd.pids(), seconds=2)
    assert [path.name for path in temporary.iterdir()] == ["pytest-prereg-devices"]


@pytest.mark.torch
def test_torch_in_the_server_has_started_no_threads_of_its_own(laboratory, make_job):
    pytest.importorskip("torch")
    body = """
import numpy
supervisor = os.getppid()
server = int(Path(f"/proc/{supervisor}/stat").read_text().rpartition(")")[2].split()[1])
repeat.record("threads", len(os.listdir(f"/proc/{server}/task")))
repeat.record("cuda", sys.modules["torch"].cuda.is_initialized())
repeat.record("t", 1)
"""
    blas = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # numpy's, which know about forks
    executor = laboratory.executor(body, preload=("torch",), environ=blas)
    executor.start()
    result = executor.run(make_job(executor))
    assert result.diagnostics["threads"] == 1
    assert result.diagnostics["cuda"] is False
