"""The process that makes sandboxes, hands them programs, and ends them when their time is over.

It has one thread, since what is tied to a parent is killed when the thread ends that started it; and it ends
with its client, whichever way that goes.
"""

from __future__ import annotations

import os
import resource
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

from pytest_prereg.measure.executors.processes import become_subreaper
from pytest_prereg.measure.workloads.sandbox import making, staging
from pytest_prereg.measure.workloads.sandbox.messages import (
    Opened,
    Setup,
    Stream,
    ToClient,
    ToSupervisor,
    Work,
    encode,
)
from pytest_prereg.measure.workloads.sandbox.pool import Pool
from pytest_prereg.measure.workloads.sandbox.priority import come_first
from pytest_prereg.measure.workloads.sandbox.reactor import Outgoing, Reactor

if TYPE_CHECKING:
    from collections.abc import Callable

WORKLOAD_VERSION = "1"

_LOW_DESCRIPTORS = 10
"""Under these numbers sandboxes are handed what they get, so none of the supervisor's own may have one."""
_CHUNK = 1 << 18


class Supervisor:
    """Serves one client."""

    def __init__(self, client: socket.socket) -> None:
        self._client = client
        self._stream = Stream(ToSupervisor)
        self._reactor = Reactor()
        self._outgoing = Outgoing(client, self._reactor)
        self._pool: Pool | None = None
        self._setup: Setup | None = None
        self._works: list[Work] = []
        self._open = True

    def run(self) -> None:
        """Serve until the client hangs up or dies, then end all sandboxes."""
        self._client.settimeout(0)
        self._reactor.watch(self._client.fileno(), self._listen)
        while self._open and self._setup is None:
            self._reactor.turn(1.0)
        if self._setup is None:
            return
        self._watch_client(self._setup.client)
        pool = self._pool_for(self._setup)
        while pool is not None and self._open:
            while self._works:
                pool.add(self._works.pop(0))
            self._reactor.turn(pool.tend())
        if pool is not None:
            pool.end()

    def _watch_client(self, pid: int) -> None:
        try:
            self._reactor.watch(os.pidfd_open(pid), self._close)
        except ProcessLookupError:
            self._close()

    def _pool_for(self, setup: Setup) -> Pool | None:
        """Return a pool of sandboxes of which one was made, and tell the client which they are."""
        users = staging.spare_users()
        refusals: list[str] = []
        for name, make in _kinds(setup.isolation):
            try:
                made = make(setup, users)
                pool = Pool(made.recipe, made.users, setup, self._reactor, self._tell)
                problem = making.advised(name, pool.try_one())
            except making.UnavailableError as error:
                problem = str(error)
            if problem is None:
                missing = [*(f"no namespaces: {refusal}" for refusal in refusals), *made.missing]
                self._tell(Opened(isolation=name, missing=tuple(missing)))
                return pool
            refusals.append(problem)
        self._tell(Opened(error="; ".join(refusals)))
        return None

    def _tell(self, message: ToClient) -> None:
        self._outgoing.send(encode(message))

    def _listen(self) -> None:
        try:
            data = self._client.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._close()
        for message in self._stream.feed(data):
            if isinstance(message, Setup):
                self._setup = message
            else:
                self._works.append(message)

    def _close(self) -> None:
        self._open = False


def _kinds(isolation: str) -> list[tuple[str, Callable[[Setup, list[int]], making.Made]]]:
    kinds = {"namespaces": making.in_namespaces, "processes": making.in_processes}
    return [(name, make) for name, make in kinds.items() if isolation in {name, "auto"}]


def main(descriptor: int) -> None:
    """Serve the client at the other end of a socket."""
    while os.dup(0) < _LOW_DESCRIPTORS:
        pass
    client = socket.socket(fileno=os.dup(descriptor))
    os.close(descriptor)
    os.open(os.devnull, os.O_RDONLY)
    if os.geteuid() == 0:
        with suppress(PermissionError):  # as in a user namespace
            os.setgroups([])
    _open_as_many_as_allowed()
    come_first()
    become_subreaper()
    Supervisor(client).run()


def _open_as_many_as_allowed() -> None:
    """Hundreds of sandboxes take more descriptors than processes usually start with."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
