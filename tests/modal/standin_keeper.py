"""Stands above one container's process: once that has ended, or the service has, nothing below it lives on.

Run as ``python -I -S standin_keeper.py SERVICE_PID PIPE COMMAND...``. It writes the pid of the process to the pipe
(and below it why there is none), hands SIGINT on to it, kills everything on SIGTERM, and ends as it ended. There is
one for each container: what takes long to import is not imported.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
import time

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
    try:  # noqa: SIM105
        os.kill(process, number)
    except ProcessLookupError:
        pass


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
    processes = [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
    parents = {each: _parent(each) for each in processes}
    found = [process]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found[1:]


def _parent(process: int) -> int:
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as stat:  # noqa: PTH123
            return int(stat.read().rpartition(")")[2].split()[1])
    except OSError:
        return 0


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
