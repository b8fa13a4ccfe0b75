"""Work that another process does meanwhile: the answer is the same, whatever becomes of that process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

PRELUDE = """
import os, resource, signal, sys, tempfile, threading, time
from pytest_prereg.audit.gating.beside import beside
def where(): return os.getpid()
"""


def alone(program: str, *arguments: str | Path) -> list[str]:
    """What a program prints that nothing else runs in: pytest and its plugins may have threads."""
    command = [sys.executable, "-W", "error", "-c", PRELUDE + program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout.split()


def test_another_process_does_it():
    done, here = alone("with beside(where) as answer: print(answer(), os.getpid())")
    assert done != here


def test_what_is_large_comes_whole():
    (size,) = alone("with beside(lambda: bytes(5_000_000)) as answer: print(len(answer()))")
    assert size == "5000000"


def test_it_is_done_here_where_another_process_dies():
    program = """
here = os.getpid()
def work():
    if os.getpid() != here: os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid()
with beside(work) as answer: print(answer(), here)
"""
    done, here = alone(program)
    assert done == here


def test_an_error_is_raised_here_as_it_is():
    program = """
def work(): raise LookupError(f"in {os.getpid()}")
try:
    with beside(work) as answer: answer()
except LookupError as error: print(error, os.getpid())
"""
    _, done, here = alone(program)
    assert done == here


def test_what_cannot_be_sent_is_made_here():
    done, here = alone("with beside(lambda: [where, lambda: 0]) as answer: print(answer()[0](), os.getpid())")
    assert done == here


def test_with_threads_it_is_done_here():
    """They may hold what nobody would ever let go of in a new process; Python 3.12 and later warn of it."""
    program = """
until = threading.Event()
thread = threading.Thread(target=until.wait)
thread.start()
with beside(where) as answer: print(answer(), os.getpid())
until.set()
"""
    done, here = alone(program)
    assert done == here


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a user who has no process left")
def test_it_is_done_here_where_no_process_can_be_had():
    program = """
resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
os.setresuid(12345, 12345, 12345)
with beside(where) as answer: print(answer(), os.getpid())
"""
    done, here = alone(program)
    assert done == here


def test_what_nobody_asks_for_is_ended(tmp_path: Path):
    program = """
tempfile.tempdir = sys.argv[1]
def work():
    with tempfile.TemporaryDirectory(): time.sleep(60)
with beside(work): time.sleep(0.2)
"""
    began = time.monotonic()
    alone(program, tmp_path)
    assert time.monotonic() - began < 10
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_once_interrupted_nothing_runs_on(tmp_path: Path, number: int):
    program = """
tempfile.tempdir = sys.argv[1]
def work():
    with tempfile.TemporaryDirectory() as folder:
        open(f"{folder}/begun", "w").close()
        time.sleep(60)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
with beside(work) as answer: answer()
"""
    command = [sys.executable, "-c", PRELUDE + program, str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True) as process:
        while not list(tmp_path.glob("*/*/begun")):
            time.sleep(0.01)
        process.send_signal(number)
        process.communicate(timeout=10)
    assert not list(tmp_path.iterdir())
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def test_it_ends_by_itself_where_nobody_is_left_to_read(tmp_path: Path):
    program = """
tempfile.tempdir = sys.argv[1]
def work():
    time.sleep(0.3)
    return bytes(5_000_000)
with beside(work): os.kill(os.getpid(), signal.SIGKILL)
"""
    command = [sys.executable, "-c", PRELUDE + program, str(tmp_path)]
    # Both processes have the other end of standard output: it ends with the later of them.
    done = subprocess.run(command, stdout=subprocess.PIPE, timeout=10, check=False)
    assert done.returncode == -signal.SIGKILL
