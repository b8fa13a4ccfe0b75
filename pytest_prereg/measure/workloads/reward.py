"""Code rewards for real: every completion runs as a program in a process of its own, with a deadline.

This holds deadlines and leaves nothing running. It is no sandbox: a program may read files, use the
network, take all memory or report success by leaving early, and one that replaces the environment of its
descendants hides them. Run only programs of your own making with it.
"""

from __future__ import annotations

import math
import os
import resource
import secrets
import select
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

WORKLOAD_VERSION = "2"

_MARK = "PYTEST_PREREG_REWARD"
_PATIENCE = 5.0
_LONGEST_WAIT = 3600.0
"""Seconds; poll(2) takes no more than 2**31 milliseconds at a time."""
_LONGEST_LIMIT = 1e9
_BEGIN = """\
__import__("posix").write({descriptor}, b"1"); __import__("posix").close({descriptor})
exec(__import__("sys").argv.pop())
"""
"""Says that the interpreter runs, then is the program; leaves it no name, and no descriptor."""
_OWN_SIGNALS = {
    signal.SIGSEGV,
    signal.SIGABRT,
    signal.SIGBUS,
    signal.SIGFPE,
    signal.SIGILL,
    signal.SIGSYS,
    signal.SIGTRAP,
    signal.SIGPIPE,
    signal.SIGALRM,
    signal.SIGVTALRM,
    signal.SIGPROF,
    signal.SIGXFSZ,
}
"""What a program brings upon itself, by a crash, an alarm that it set or a pipe that it closed."""


class Outcome(StrEnum):
    """How a program ended."""

    PASSED = "passed"
    FAILED = "failed"
    TIMED_OUT = "timed-out"


class ProgramLostError(OSError):
    """A program did not run to an end of its own, nor up to its deadline: this tells nothing about it."""


def new_mark() -> str:
    """Return a mark that tells one batch's processes from all others."""
    return secrets.token_hex(16)


def run_programs(
    programs: Sequence[str], *, deadline: float, parallel: int, mark: str | None = None
) -> list[Outcome]:
    """Run Python sources, ``parallel`` at a time, each for at most ``deadline`` seconds.

    When this returns, every process that carries the batch's mark has been killed, whatever group or
    session it had moved to.

    Returns:
        The outcomes, in order; a program passes by exiting with status 0.

    Raises:
        OSError: A program could not be run, or was ended by something else, as in :func:`run_program`.
        TimeoutError: A killed process did not go away.
    """
    mark = mark or new_mark()
    try:
        with ThreadPoolExecutor(parallel) as pool:
            return list(pool.map(partial(run_program, deadline=deadline, mark=mark), programs))
    finally:
        kill_marked(mark)


def marked_processes(mark: str) -> list[int]:
    """Return the ids of the living processes of a batch."""
    wanted = f"{_MARK}={mark}".encode()
    folders = (folder for folder in Path("/proc").iterdir() if folder.name.isdecimal())
    return [int(folder.name) for folder in folders if wanted in _environment(folder)]


def _environment(folder: Path) -> list[bytes]:
    try:
        return (folder / "environ").read_bytes().split(b"\0")
    except OSError:  # gone by now, or another user's
        return []


def run_program(program: str, *, deadline: float, mark: str) -> Outcome:
    """Run one Python source for at most ``deadline`` seconds; a program passes by exiting with status 0.

    So has one whose threads together took a second more of processor time. What it started and moved to
    another group lives on, until :func:`kill_marked` ends it. A program that sends itself SIGKILL or SIGTERM
    can't be told from one that someone else ended.

    Raises:
        ProgramLostError: The interpreter ended before the program began, or a signal that programs don't
            bring upon themselves ended it, such as SIGKILL for want of memory.
        OSError: No process could be started or watched.
    """
    reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        process = _start(program, mark, writing)
        _limit_processor_time(process.pid, deadline)
        try:
            ended = _ends_within(process.pid, deadline)
        finally:
            # Also after a regular end: children left in its group would compete with the rest of the batch.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            status = process.wait()
        return _outcome(status, began=_was_written_to(reading)) if ended else Outcome.TIMED_OUT
    finally:
        os.close(reading)
        os.close(writing)


def _start(program: str, mark: str, writing: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _BEGIN.format(descriptor=writing), program],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={"PATH": os.defpath, _MARK: mark},
        pass_fds=(writing,),
        start_new_session=True,
    )


def _limit_processor_time(process: int, deadline: float) -> None:
    """Have the kernel end a program that spins on after whoever was to end it was killed itself."""
    if deadline < _LONGEST_LIMIT:
        most = math.ceil(deadline) + 1
        with suppress(ProcessLookupError):  # it has ended
            resource.prlimit(process, resource.RLIMIT_CPU, (most, most + 1))


def _was_written_to(pipe: int) -> bool:
    try:
        return bool(os.read(pipe, 1))
    except BlockingIOError:
        return False


def _outcome(status: int, *, began: bool) -> Outcome:
    """Return what an exit status says of a program; negative for a signal, as in :mod:`subprocess`."""
    if not began:
        raise ProgramLostError(f"{sys.executable} ended before the program began, with status {status}")
    if status == -signal.SIGXCPU:
        return Outcome.TIMED_OUT
    if status < 0 and -status not in _OWN_SIGNALS:
        raise ProgramLostError(f"a program was ended by signal {-status}, which nobody here sent")
    return Outcome.PASSED if status == 0 else Outcome.FAILED


def _ends_within(process: int, seconds: float) -> bool:
    """Whether a child ends in time; waits on its pidfd, since ``Popen.wait`` polls every 50 ms."""
    give_up = time.monotonic() + seconds
    descriptor = os.pidfd_open(process)
    try:
        watch = select.poll()
        watch.register(descriptor, select.POLLIN)
        while (left := give_up - time.monotonic()) > _LONGEST_WAIT:
            if watch.poll(_LONGEST_WAIT * 1000):
                return True
        return bool(watch.poll(max(left, 0) * 1000))
    finally:
        os.close(descriptor)


def kill_marked(mark: str) -> None:
    """Kill until nothing carries the mark: one round can miss what is forked while it looks.

    Raises:
        TimeoutError: A killed process did not go away.
    """
    give_up = time.monotonic() + _PATIENCE
    while processes := marked_processes(mark):
        if time.monotonic() > give_up:
            raise TimeoutError(
                f"processes {processes} of a reward batch outlived SIGKILL for {_PATIENCE:g} s"
            )
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.001)
