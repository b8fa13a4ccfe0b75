"""Worker processes that run rewards: how they are forked, watched and replaced, and what each one does.

A program is a duration here. A worker sleeps through it, one program at a time, and says when it is done.
"""

from __future__ import annotations

import gc
import math
import os
import select
import signal
import socket
import struct
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from pytest_prereg.measure.executors.processes import die_with_parent, fork

if TYPE_CHECKING:
    from collections.abc import Collection

WORKLOAD_VERSION = "1"
FOREVER = math.inf

_ORDER = struct.Struct("dd")
_ORDERS = 0
_MOST_DESCRIPTORS = os.sysconf("SC_OPEN_MAX")


@dataclass(frozen=True, kw_only=True, eq=False)
class Worker:
    """A forked process and our end of its socket."""

    process: int
    connection: socket.socket

    def begin(self, *, creation: float, duration: float) -> None:
        """Let the worker sleep through its creation, then through its program (seconds).

        Raises:
            ChildProcessError: The worker is dead.
        """
        try:
            self.connection.send(_ORDER.pack(creation, duration))
        except ConnectionError:
            self._mourn()

    def take_answer(self) -> None:
        """Take the answer that has arrived.

        Raises:
            ChildProcessError: What arrived is the worker's end.
        """
        try:
            answer = self.connection.recv(1)
        except ConnectionError:
            answer = b""
        if not answer:
            self._mourn()

    def _mourn(self) -> NoReturn:
        # Looked at and left to be reaped with the others.
        end = os.waitid(os.P_PID, self.process, os.WEXITED | os.WNOWAIT)
        status = end.si_status if end else 0
        killed = end is not None and end.si_code in (os.CLD_KILLED, os.CLD_DUMPED)
        how = f"was killed by {signal.Signals(status).name}" if killed else f"exited with status {status}"
        raise ChildProcessError(
            f"a reward worker {how} before it had answered, so how long its program takes isn't known"
        )


class Crew:
    """``size`` living workers, watched for what they say; those that go are replaced when there is time."""

    def __init__(self, size: int) -> None:
        self.idle: deque[Worker] = deque()
        """Those without a program, longest idle first."""
        self._size = size
        self._watched: dict[int, Worker] = {}
        self._spent: deque[Worker] = deque()
        self._epoll = select.epoll()

    @property
    def complete(self) -> bool:
        """Whether all that went have been reaped and replaced."""
        return len(self._watched) >= self._size and not self._spent

    def mend(self) -> None:
        """Fork a worker if one lacks, and reap one that is spent; about a millisecond."""
        if len(self._watched) < self._size:
            worker = _fork_worker()
            self._watched[worker.connection.fileno()] = worker
            self.idle.append(worker)
            self._epoll.register(worker.connection, select.EPOLLIN)
        if self._spent:
            _kill([self._spent[0]])
            self._spent.popleft()

    def heard_from(self, seconds: float) -> list[Worker]:
        """Wait until workers say something or die, at most ``seconds``; return those that did."""
        heard = self._epoll.poll(0)
        if not heard and seconds > 0:
            # An epoll rounds its timeout to milliseconds; a select around it does not.
            select.select([self._epoll], [], [], None if seconds == math.inf else seconds)
            heard = self._epoll.poll(0)
        return [self._watched[descriptor] for descriptor, _ in heard]

    def retire(self, worker: Worker) -> None:
        """Have a worker that is no longer needed killed and reaped when there is time."""
        self._spent.append(worker)  # first: whatever interrupts this, it is known in one place at least
        self._epoll.unregister(worker.connection)
        del self._watched[worker.connection.fileno()]

    def kill(self, workers: Collection[Worker]) -> None:
        """Kill and reap workers now."""
        for worker in workers:
            self.retire(worker)
        _kill(workers)
        for worker in workers:
            self._spent.remove(worker)

    def close(self) -> None:
        """Kill and reap them all."""
        _kill({*self._watched.values(), *self._spent})
        self._watched.clear()
        self._spent.clear()
        self.idle.clear()
        self._epoll.close()


def _kill(workers: Collection[Worker]) -> None:
    for worker in workers:  # all before the first is reaped: they die at the same time
        with suppress(ProcessLookupError):
            os.kill(worker.process, signal.SIGKILL)
    for worker in workers:
        with suppress(ChildProcessError):
            os.waitpid(worker.process, 0)
        worker.connection.close()


def _fork_worker() -> Worker:
    """Fork a worker; it ends when its socket closes, and is killed when its parent dies."""
    ours, theirs = socket.socketpair()
    parent = os.getpid()
    process = fork()
    if process == 0:
        try:
            _become_worker(theirs, parent)
        finally:
            os._exit(1)
    theirs.close()
    return Worker(process=process, connection=ours)


def _become_worker(connection: socket.socket, parent: int) -> NoReturn:
    # A worker that kept its siblings' sockets open would hide our end from them; and whoever waits for the
    # end of a pipe of the parent's must not have to wait for its workers.
    os.dup2(connection.fileno(), _ORDERS)
    os.closerange(_ORDERS + 1, _MOST_DESCRIPTORS)
    die_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    gc.disable()  # a collection would copy every page that is still shared with the parent
    _serve()


def _serve() -> NoReturn:
    _run(_ORDER.pack(0.0, 0.0))  # the first pass copies what it touches of the parent's memory
    while order := os.read(_ORDERS, _ORDER.size):
        _run(order)
        os.write(_ORDERS, b".")
    os._exit(0)


def _run(order: bytes) -> None:
    creation, duration = _ORDER.unpack(order)
    if creation:
        time.sleep(creation)
    while duration == FOREVER:
        signal.pause()
    time.sleep(duration)
