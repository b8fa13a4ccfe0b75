"""The built-in ``known_host_load``: CPU time that others burn and account for, while the machine is watched.

What descends from a repeat is its own, orphans and all, so no process that it starts could pass for somebody
else. Here the roles are turned round: the instrument reads in a child that adopts its orphans itself, and so
takes itself for the repeat; its siblings burn, and are others to it.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import msgspec

from pytest_prereg.measure.executors import processes
from pytest_prereg.measure.experiment import experiment
from pytest_prereg.measure.instruments.readers import reader_of
from pytest_prereg.measure.instruments.reading import Reading, UnreadableError
from pytest_prereg.measure.instruments.wall_clock import NAME as WALL_CLOCK
from pytest_prereg.measure.workloads.calibration.reading import accepted, calibrating, check_seconds
from pytest_prereg.registry.instruments import CALIBRATES
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_prereg.measure.repeat import Repeat

WORKLOAD_VERSION = "1"

MOST_BURNERS = 1024
LONGEST_MESSAGE = 1 << 16
SPINS = 10_000
"""Turns of an empty loop between two looks at the socket: some hundred microseconds."""


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """Of the CPU time of all cores over a window: what was burned, and what the instrument read."""

    known: float
    reading: Reading


@experiment(
    metrics={
        "known": {"unit": "1", "instrument": "wall-clock"},
        "quiet": {"unit": "1", "instrument": "wall-clock"},
        "read": {"unit": "1", "instrument": "wall-clock"},
        "error": {"unit": "1", "instrument": "wall-clock"},
    },
)
def known_host_load(
    repeat: Repeat, *, instrument: str = "host-load", burners: int = 1, seconds: float = 2.0
) -> None:
    """Let ``burners`` processes burn CPU time for ``seconds``, each by its own account, and read the machine.

    ``known`` is what they burned, as a share of the CPU time of all cores, ``read`` what the instrument made
    of it, ``error`` the second less the first. ``quiet`` is what it read just before, over as long, without
    them: on a machine that others use as well, their load is in ``error`` too.
    """
    if not isinstance(burners, int) or not 0 <= burners <= MOST_BURNERS:
        most = f"from 0 to {MOST_BURNERS}"
        raise ValueError(f"burners: {quoted(burners)} is no whole number of processes {most}; write 1, say")
    check_seconds(seconds)
    with calibrating(repeat, instrument, CALIBRATES["known_host_load"]):
        quiet = _watched(instrument, 0, seconds)
        loaded = _watched(instrument, burners, seconds)
        read = accepted(repeat, instrument, loaded.reading).value
        taken = repeat._taken_by(WALL_CLOCK)  # noqa: SLF001
        taken.record("known", loaded.known)
        taken.record("quiet", quiet.reading.value)
        taken.record("read", read)
        taken.record("error", read - loaded.known)


def _watched(instrument: str, burners: int, seconds: float) -> Share:
    """Burn while a child watches.

    Raises:
        UnreadableError: The instrument can't read.
    """
    with ExitStack() as stack:
        watcher = stack.enter_context(_forked(lambda line: _watch(line, instrument)))
        burning = [stack.enter_context(_forked(_burn)) for _ in range(burners)]
        _answer(watcher, bool)
        began, own = time.perf_counter(), time.process_time()
        _tell(burning)
        time.sleep(seconds)
        _tell(burning)
        burned = [_answer(each, float) for each in burning]
        passed = time.perf_counter() - began
        burned.append(time.process_time() - own)
        _tell([watcher])
        reading = _answer(watcher, Reading)
    return Share(known=sum(burned) / (passed * (os.cpu_count() or 1)), reading=reading)


def _watch(line: socket.socket, instrument: str) -> None:
    """Read from one word of the parent to the next: that it has begun, then the reading."""
    processes.become_subreaper()
    try:
        reader = reader_of(instrument)
        reader.start()
        line.send(msgspec.json.encode(True))  # noqa: FBT003
        line.recv(1)
        reader.stop()
        line.send(msgspec.json.encode(reader.reading()))
    except UnreadableError as error:
        line.send(msgspec.json.encode(str(error)))


def _burn(line: socket.socket) -> None:
    """Burn from one word of the parent to the next, and answer with the seconds of CPU time."""
    line.recv(1)
    line.settimeout(0)
    began = time.process_time()
    while True:
        for _ in range(SPINS):
            pass
        with suppress(BlockingIOError):
            line.recv(1)
            break
    burned = time.process_time() - began
    line.settimeout(None)
    line.send(msgspec.json.encode(burned))


def _tell(lines: list[socket.socket]) -> None:
    for line in lines:
        line.send(b".")


def _answer(line: socket.socket, kind: type[Any]) -> Any:
    """Wait for an answer of a kind; a text in its place says why there is none."""
    message = line.recv(LONGEST_MESSAGE)
    if not message:
        raise ChildProcessError("a process that burned or watched died before it had answered")
    found = msgspec.json.decode(message, type=kind | str)
    if isinstance(found, str):
        raise UnreadableError(found)
    return found


@contextmanager
def _forked(serve: Callable[[socket.socket], None]) -> Iterator[socket.socket]:
    """Run ``serve`` in a child, which is killed at the end and sees its socket close if this process dies."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    child = processes.fork()
    if child == 0:
        try:
            ours.close()
            serve(theirs)
        finally:
            os._exit(0)
    theirs.close()
    try:
        yield ours
    finally:
        ours.close()
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
