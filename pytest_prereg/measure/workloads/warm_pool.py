"""A pool of forked workers that wait for work, and the barrier in front of them.

Each worker runs one completion's program at a time; here a program is a duration, and one that never ends is
waited for until the deadline and killed.
"""

from __future__ import annotations

import math
import os
import select
import signal
import socket
import struct
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, Self

if TYPE_CHECKING:
    from collections.abc import Sequence

WORKLOAD_VERSION = "1"
FOREVER = math.inf

_ORDER = struct.Struct("d")


@dataclass(frozen=True, kw_only=True)
class Worker:
    """A forked process and the parent's end of its socket."""

    process: int
    connection: socket.socket


@dataclass(frozen=True, kw_only=True)
class Barrier:
    """What one pass through the barrier took (seconds) and how many programs the deadline cut off."""

    seconds: float
    cut: int


class WarmPool:
    """``size`` workers, forked on entry, killed and reaped on exit."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._workers: list[Worker] = []

    def __enter__(self) -> Self:
        self.refill()
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            _kill(worker)
        self._workers.clear()

    def refill(self) -> None:
        """Fork a worker for every one that was killed."""
        while len(self._workers) < self._size:
            self._workers.append(_fork([worker.connection for worker in self._workers]))

    def barrier(self, durations: Sequence[float], *, deadline: float) -> Barrier:
        """Run one program per worker at the same time and wait for the slowest, at most ``deadline`` seconds.

        Every program gets its whole deadline: the clock for it starts once all have been handed out. What is
        late is killed and reaped before this returns; call :meth:`refill` before the next pass.

        Raises:
            ChildProcessError: A worker died of something else.
        """
        start = time.perf_counter()
        try:
            late = self._late(durations, deadline)
        except ConnectionError as error:
            raise ChildProcessError("a worker of the warm pool died before it had answered") from error
        for worker in late:
            _kill(worker)
        seconds = time.perf_counter() - start
        self._workers = [worker for worker in self._workers if worker not in late]
        return Barrier(seconds=seconds, cut=len(late))

    def _late(self, durations: Sequence[float], deadline: float) -> list[Worker]:
        """Hand out the programs and return the workers that do not answer in time."""
        for worker, duration in zip(self._workers, durations, strict=True):
            worker.connection.send(_ORDER.pack(duration))
        return _unanswered(self._workers, time.perf_counter() + deadline)


def _unanswered(workers: Sequence[Worker], deadline: float) -> list[Worker]:
    """Wait for every worker's answer; return those without one when the clock shows ``deadline``."""
    waiting = {worker.connection.fileno(): worker for worker in workers}
    watch = select.poll()
    for descriptor in waiting:
        watch.register(descriptor, select.POLLIN)
    while waiting and (left := deadline - time.perf_counter()) > 0:
        for descriptor, _ in watch.poll(left * 1000):
            watch.unregister(descriptor)
            if not waiting.pop(descriptor).connection.recv(1):
                raise ConnectionResetError
    return list(waiting.values())


def _kill(worker: Worker) -> None:
    os.kill(worker.process, signal.SIGKILL)
    os.waitpid(worker.process, 0)
    worker.connection.close()


def _fork(inherited: Sequence[socket.socket]) -> Worker:
    ours, theirs = socket.socketpair()
    process = os.fork()
    if process == 0:
        try:
            # A worker that kept its siblings' sockets open would hide the parent's death from them.
            for connection in (ours, *inherited):
                connection.close()
            _serve(theirs)
        finally:
            os._exit(1)
    theirs.close()
    return Worker(process=process, connection=ours)


def _serve(connection: socket.socket) -> NoReturn:
    """Work until the parent closes its end, by intent or by dying."""
    while order := connection.recv(_ORDER.size):
        (duration,) = _ORDER.unpack(order)
        if duration == FOREVER:
            connection.recv(1)  # nothing is ever sent: this ends with the parent or by its hand
            os._exit(0)
        time.sleep(duration)
        connection.send(b".")
    os._exit(0)
