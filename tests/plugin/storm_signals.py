"""Faults that are signals, and limits of processes."""

from __future__ import annotations

import os
import resource
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from storm_sessions import herd

if TYPE_CHECKING:
    from storm_sessions import Storm


def kill_pytest(storm: Storm) -> None:
    process = storm.start()
    storm.at_any_moment(process)
    storm.may_lose = 1
    storm.kill(process)


def kill_server(storm: Storm) -> None:
    _kill_one(storm, "server")


def kill_repeat(storm: Storm) -> None:
    _kill_one(storm, storm.chance.choice(["body", "supervisor"]))


def _kill_one(storm: Storm, which: str) -> None:
    """Kills a process of ours: the session goes on, and the repeat is run again in place."""
    storm.what.append(which)
    process = storm.start()
    storm.after_a_few(process)
    storm.may_lose = 1
    pids = herd(storm, process)
    if which in pids:
        with suppress(ProcessLookupError):
            os.kill(pids[which], signal.SIGKILL)
    status, output = storm.end(process)
    assert status == 0, output
    assert "1 supported" in output, output


def interrupt(storm: Storm) -> None:
    """Ctrl-C, once or impatiently, or SIGTERM."""
    number, times = storm.chance.choice([(signal.SIGINT, 1), (signal.SIGINT, 2), (signal.SIGTERM, 1)])
    storm.what.append(f"{number.name} x {times}")
    process = storm.start()
    storm.at_any_moment(process)
    storm.may_lose = 1
    for _ in range(times):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number) if number is signal.SIGINT else os.kill(process.pid, number)
        time.sleep(storm.chance.uniform(0, 0.03))
    process.communicate(timeout=60)


def stop_and_continue(storm: Storm) -> None:
    """One of the processes, or all, are stopped for a while: nothing is lost."""
    which = storm.chance.choice(["pytest", "server", "supervisor", "body", "all"])
    storm.what.append(which)
    process = storm.start()
    storm.after_a_few(process)
    pids = herd(storm, process)
    chosen = list(pids.values()) if which == "all" else [pids.get(which, process.pid)]
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for pid in chosen:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        time.sleep(storm.chance.uniform(0.1, 0.5))
    status, output = storm.end(process)
    assert status == 0, output
    assert "1 supported" in output, output


def limit(storm: Storm) -> None:
    """No more processes, no more open files, or no longer files, from some moment on."""
    which, who = storm.chance.choice(
        [
            ("NPROC", "server"),
            ("NPROC", "pytest"),
            ("NOFILE", "server"),
            ("NOFILE", "pytest"),
            ("FSIZE", "pytest"),
        ]
    )
    storm.what.append(f"{which} of {who}")
    process = storm.start()
    storm.after_a_few(process)
    pid = herd(storm, process).get(who, process.pid)
    kind = getattr(resource, f"RLIMIT_{which}")
    with suppress(ProcessLookupError):
        resource.prlimit(pid, kind, (_limit(storm, which, pid), resource.prlimit(pid, kind)[1]))
    storm.end(process)
    # Three attempts before the server is started anew, and three after it.
    storm.may_lose = 7


def _limit(storm: Storm, which: str, pid: int) -> int:
    """Just about what is in use."""
    if which == "NOFILE":
        return len(os.listdir(f"/proc/{pid}/fd")) + storm.chance.randint(0, 3)  # noqa: PTH208
    if which == "FSIZE":
        return max((path.stat().st_size for path in storm.files()), default=0) + storm.chance.randint(0, 500)
    return 1
