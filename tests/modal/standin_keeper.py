"""Stands above one container's process: once that has ended, or the service has, nothing below it lives on.

Run as ``python -I -S standin_keeper.py SERVICE_PID PIPE COMMAND...``. It writes the pid of the process to the pipe
(and below it why there is none), hands SIGINT on to it, kills everything on SIGTERM, and ends as it ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
import time
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36  # what is orphaned below becomes a child of the keeper, whatever session it is in


def main(service: int, pipe: int, command: list[str]) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    if os.getppid() != service:
        return
    os.set_inheritable(pipe, False)  # noqa: FBT003
    child = os.fork()
    if not child:
        _become(command, pipe)
    os.write(pipe, b"%d\n" % child)
    os.close(pipe)
    signal.signal(signal.SIGINT, lambda *_: _signal(child, signal.SIGINT))
    signal.signal(signal.SIGTERM, lambda *_: _signal(child, signal.SIGKILL))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))
    status = _wait_for(child)
    _kill_what_is_left()
    _end_with(status)


def _become(command: list[str], pipe: int) -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        os.execvp(command[0], command)
    except OSError as problem:
        os.write(pipe, f"{command[0]}: {problem.strerror}".encode())
        os._exit(127)


def _signal(process: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, number)


def _wait_for(child: int) -> int:
    while True:
        ended, status = os.waitpid(-1, 0)  # orphans are reaped on the way
        if ended == child:
            return status


def _kill_what_is_left() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        try:
            ended, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not ended:
            for process in _below(os.getpid()):
                _signal(process, signal.SIGKILL)
            time.sleep(0.005)


def _below(process: int) -> list[int]:
    """All processes that descend from it."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    found = [process]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found[1:]


def _end_with(status: int) -> None:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    sys.stdout = sys.stderr = None  # nobody may read them any more
    os._exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
