"""Running a program to its end, with its output in a file and nothing of it left when it is given up."""

from __future__ import annotations

import os
import signal
import subprocess
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING

from pytest_prereg.measure.executors import processes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


def run(command: Sequence[str], folder: Path, environ: Mapping[str, str], log: Path) -> int:
    """Run a program in a folder and return its status, below 0 for a signal; ``log`` gets its output.

    It leads a session of its own, so that Ctrl-C reaches this process alone, which then ends all of it.

    Raises:
        OSError: It can't be started.
    """
    parent = os.getpid()
    with log.open("ab") as output, warnings.catch_warnings():
        # Like every fork here: what threads there are stop around it by themselves.
        warnings.simplefilter("ignore", DeprecationWarning)
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=lambda: processes.die_with_parent(parent),  # noqa: PLW1509
        )
    try:
        return process.wait()
    except BaseException:
        _end(process)
        raise


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a program and what it started, as far as that stayed in its group or below it."""
    below = processes.descendants(process.pid)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for pid in below:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    process.wait()
