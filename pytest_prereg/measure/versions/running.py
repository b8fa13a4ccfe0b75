"""Running a program to its end, with its output in a file and nothing of it left when it is given up."""

from __future__ import annotations

import os
import signal
import subprocess
import time
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING

from pytest_prereg.measure.executors import processes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

PATIENCE = 1.0
"""Seconds; only what is stuck in the kernel takes longer to die."""


LONGEST = 2 * 3600.0
"""Seconds that a build may take: what takes longer hangs. A body's ``timeout`` says nothing of it."""


def run(
    command: Sequence[str],
    folder: Path,
    environ: Mapping[str, str],
    log: Path,
    *,
    seconds: float | None = None,
) -> int:
    """Run a program in a folder and return its status, below 0 for a signal; ``log`` gets its output.

    It leads a session of its own, so that Ctrl-C reaches this process alone, which then ends all of it. What
    it leaves running is ended as well: a server of a compiler's would run beside what is measured.

    Args:
        command: The program, and its arguments.
        folder: Where.
        environ: All variables that it sees.
        log: The file that its output is added to.
        seconds: How long it may take, unless ``LONGEST``.

    Raises:
        OSError: It can't be started.
        subprocess.TimeoutExpired: It took longer; nothing of it is left.
    """
    with processes.adopting():
        before = set(processes.descendants(os.getpid()))
        process = _started(command, folder, environ, log)
        try:
            return process.wait(LONGEST if seconds is None else seconds)
        except BaseException:
            _end(process)
            raise
        finally:
            _end_left(before)


def _started(
    command: Sequence[str], folder: Path, environ: Mapping[str, str], log: Path
) -> subprocess.Popen[bytes]:
    parent = os.getpid()
    with log.open("ab") as output, warnings.catch_warnings():
        # Like every fork here: what threads there are stop around it by themselves.
        warnings.simplefilter("ignore", DeprecationWarning)
        return subprocess.Popen(
            command,
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=lambda: processes.die_with_parent(parent),  # noqa: PLW1509
        )


def _end_left(before: set[int]) -> None:
    """Kill what this process has inherited of a program, again until nothing is left, but not for ever.

    All of that is in other sessions than this process is, unlike what another thread of it may start.
    """
    deadline = time.monotonic() + PATIENCE
    dying: set[int] = set()
    while (dying := dying | _strange(before)) and time.monotonic() < deadline:
        for pid in dying:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(processes.POLL_SECONDS)
        dying = {pid for pid in dying if not _is_reaped(pid)}


def _is_reaped(pid: int) -> bool:
    """Whether nothing is left of a process; what is below another is inherited first, when that dies."""
    with suppress(ChildProcessError):
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    return processes.stat_of(pid) is None


def _strange(before: set[int]) -> set[int]:
    here, own = os.getsid(0), set()
    for pid in set(processes.descendants(os.getpid())) - before:
        with suppress(ProcessLookupError):
            if os.getsid(pid) != here:
                own.add(pid)
    return own


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a program and what it started, as far as that stayed in its group or below it."""
    below = processes.descendants(process.pid)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for pid in below:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    process.wait()
