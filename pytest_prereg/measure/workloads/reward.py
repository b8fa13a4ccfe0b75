"""Code rewards for real: every completion runs as a program in a process of its own, with a deadline.

This holds deadlines and leaves nothing running. It is no sandbox: a program may read files, use the
network, take all memory or report success by leaving early, and one that replaces the environment of its
descendants hides them. Run only programs of your own making with it.
"""

from __future__ import annotations

import os
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

WORKLOAD_VERSION = "1"

_MARK = "PYTEST_PREREG_REWARD"
_PATIENCE = 5.0


class Outcome(StrEnum):
    """How a program ended."""

    PASSED = "passed"
    FAILED = "failed"
    TIMED_OUT = "timed-out"


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

    What it started and moved to another group lives on, until :func:`kill_marked` ends it.
    """
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", program],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={"PATH": os.defpath, _MARK: mark},
        start_new_session=True,
    )
    try:
        ended = _ends_within(process.pid, deadline)
    finally:
        # Also after a regular end: children left in its group would compete with the rest of the batch.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        status = process.wait()
    if not ended:
        return Outcome.TIMED_OUT
    return Outcome.PASSED if status == 0 else Outcome.FAILED


def _ends_within(process: int, seconds: float) -> bool:
    """Whether a child ends in time; waits on its pidfd, since ``Popen.wait`` polls every 50 ms."""
    descriptor = os.pidfd_open(process)
    try:
        watch = select.poll()
        watch.register(descriptor, select.POLLIN)
        return bool(watch.poll(seconds * 1000))
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
