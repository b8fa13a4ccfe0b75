"""The fork server: imports an experiment once, then forks a supervisor for each repeat.

Started by :class:`~pytest_prereg.measure.executors.client.ForkServer` in a session of its own, with one end
of a socket pair. Nothing of it outlives the other end: neither the server, nor a supervisor, nor a body.
The repeats share what a fork shares: the address layout and the hash seed of one interpreter.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import linecache
import os
import select
import signal
import socket
import sys
import time
import tokenize
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from pytest_prereg.evidence import gpu_readings, kernel_counters
from pytest_prereg.evidence.model import Outcome
from pytest_prereg.measure.executors import caches, loading, memory, processes, scratch, wire
from pytest_prereg.measure.executors.base import Job, Result
from pytest_prereg.measure.executors.messages import (
    Assignment,
    Began,
    Done,
    FromBody,
    Ready,
    Recorded,
    Report,
    Setup,
)
from pytest_prereg.measure.executors.supervisor import supervise
from pytest_prereg.measure.repeat import Repeat

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

_IMPORTED_EARLY = (linecache, tokenize)
"""What tracebacks load late: by then a module beside the study could have taken the name."""

STOP_SECONDS = 1.3
"""What a supervisor needs at most to clear up when told to stop."""


def main(descriptor: int, folder: str) -> None:
    """Serve the executor at the other end of the socket ``descriptor`` until it closes; never returns.

    Usually the executor removes ``folder``, but it may have been killed. Only where the server itself fails,
    its log is left for the executor to read.
    """
    try:
        # A parent that ignores SIGCHLD hands that on, and then nobody's exit status can be read.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        processes.become_subreaper()
        serve(socket.socket(fileno=descriptor), Path(folder))
        scratch.remove(Path(folder))
    finally:
        processes.kill_descendants(STOP_SECONDS)
        sys.stderr.flush()
        os._exit(0)


def serve(control: socket.socket, folder: Path) -> None:
    """Load what the setup names, then run job after job."""
    setup = wire.receive(control, Setup)
    if setup is None:
        return
    try:
        with _sigterm_stops(setup.client, folder):
            function = loading.load(setup)
    except BaseException as error:  # noqa: BLE001
        wire.send(control, loading.refusal(setup, error))
        return
    _rehearse()
    _hide_from_collector()
    wire.send(control, Ready())
    server = ForkServer(function, control, setup.client, folder)
    while os.getppid() == setup.client and server.serve_one():
        pass


@contextlib.contextmanager
def _sigterm_stops(client: int, folder: Path) -> Generator[None]:
    """Let SIGTERM and the death of the executor's process end an import: it may take minutes, or hang."""

    def stop(*_: object) -> None:
        processes.kill_descendants(STOP_SECONDS)
        scratch.remove(folder)
        os._exit(0)

    before = signal.signal(signal.SIGTERM, stop)
    processes.die_with_parent(client, signal.SIGTERM)
    try:
        yield
    finally:
        processes.outlive_parent()
        signal.signal(signal.SIGTERM, before)


def _rehearse() -> None:
    """Do once what each repeat does around its body: what that loads and keeps comes with every fork."""
    memory.oom_kills()
    kernel_counters.heat_throttles()
    kernel_counters.quota_throttles()
    kernel_counters.pages_swapped()
    if gpu_readings.gpu_is_there():
        importlib.import_module("pytest_prereg.evidence.driver_questions")
    repeat = Repeat(metrics={"t": "s"})
    repeat.record("t", 1.0)
    report = Report(ended="returned", at=time.monotonic(), readings=repeat.readings())
    for message in (Began(at=report.at), Recorded(), report):
        wire.decode(wire.encode(message)[wire.LENGTH :], FromBody)
    wire.encode(Result(outcome=Outcome.OK))


def _hide_from_collector() -> None:
    """Keep collections in a child from copying the pages that it shares with this process."""
    gc.collect()
    gc.freeze()


class Supervisor(NamedTuple):
    """A fork that runs jobs, and the channel to it."""

    pid: int
    channel: socket.socket


class ForkServer:
    """One experiment, imported and ready to be forked."""

    def __init__(
        self, function: Callable[..., Any], control: socket.socket, client: int, folder: Path
    ) -> None:
        self.function = function
        self.control = control
        self.folder = folder
        self.client = _watch(client)
        self.count = 0
        self.supervisor: Supervisor | None = None
        """Waiting for a job, or at one."""

    def serve_one(self) -> bool:
        """Run the next job; return whether there may be another."""
        if not self._wait(self.control):
            return False
        locks = wire.receive_descriptors(self.control)
        job = wire.receive(self.control, Job)
        if locks is None or job is None:
            return False
        result = self._run(job, locks)
        for lock in locks:
            os.close(lock)
        if result is None:
            return False
        wire.send(self.control, result)
        return True

    def _run(self, job: Job, locks: list[int]) -> Result | None:
        """Run a job under a supervisor; return ``None`` if the executor has gone meanwhile."""
        assignment = self._assignment(job)
        try:
            channel = self._hand_on(assignment, locks)
        except OSError as error:
            return Result(outcome=Outcome.INFRASTRUCTURE, cause="fork", error=str(error))
        present = self._wait(channel)
        done = wire.receive(channel, Done) if present else None
        if done is None or not done.goes_on:
            self._dismiss()
        scratch.remove_tree(Path(assignment.workdir))
        caches.remove(self.folder)
        if present and done is None:
            return Result(outcome=Outcome.INFRASTRUCTURE, cause="supervisor", error="the supervisor died")
        return None if done is None else done.result

    def _assignment(self, job: Job) -> Assignment:
        received = time.monotonic()
        self.count += 1
        place = f"{self.folder}/work-{self.count}"
        os.mkdir(place)  # noqa: PTH102 - a Path per repeat is dear
        if job.cache == "fresh":
            caches.renew(self.folder)
        output = f"{self.folder}/{self.count}"
        return Assignment(
            job=job,
            output=f"{output}.log",
            workdir=place,
            service=f"{output}.service.log",
            received=received,
        )

    def _hand_on(self, assignment: Assignment, locks: list[int]) -> socket.socket:
        """Give a job to the supervisor that is there, or to a new one; return the channel to it."""
        if self.supervisor is not None:
            with contextlib.suppress(OSError):  # somebody has killed it while it had nothing to do
                return _assign(self.supervisor.channel, assignment, locks)
            self._dismiss()
        self.supervisor = self._fork(locks)
        return _assign(self.supervisor.channel, assignment, locks)

    def _fork(self, locks: Sequence[int]) -> Supervisor:
        """Fork a supervisor; the ``locks`` that are open here it is given with its first job."""
        sys.stdout.flush()
        sys.stderr.flush()
        own, other = socket.socketpair()
        parent = os.getpid()
        pid = processes.fork()
        if pid == 0:
            own.close()
            for lock in locks:
                os.close(lock)
            self._supervise(other, parent)
        other.close()
        return Supervisor(pid, own)

    def _dismiss(self) -> None:
        """Be rid of the supervisor, and of all that it has left."""
        if self.supervisor is not None:
            self.supervisor.channel.close()
            _reap(self.supervisor.pid)
        processes.kill_descendants(STOP_SECONDS)
        self.supervisor = None

    def _supervise(self, server: socket.socket, parent: int) -> NoReturn:
        """Be the supervisor."""
        try:
            if self.client is not None:
                os.close(self.client)
            supervise(self.function, server, self.control, parent)
        except BaseException:  # noqa: BLE001
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(0)

    def _wait(self, channel: socket.socket) -> bool:
        """Wait until ``channel`` can be read; return whether the executor is still there."""
        poll = select.poll()
        poll.register(self.control, select.POLLRDHUP)
        poll.register(channel, select.POLLIN | (select.POLLRDHUP if channel is self.control else 0))
        if self.client is not None:
            poll.register(self.client, select.POLLIN)
        events = dict(poll.poll())
        gone = events.get(self.control.fileno(), 0) & (select.POLLRDHUP | select.POLLHUP | select.POLLERR)
        return not gone and self.client not in events


def _assign(channel: socket.socket, assignment: Assignment, locks: Sequence[int]) -> socket.socket:
    wire.send_descriptors(channel, locks)
    wire.send(channel, assignment)
    return channel


def _watch(pid: int) -> int | None:
    """Return a descriptor that can be read once a process is dead.

    Of the executor's, the end of the socket says it as well, unless a fork of that process still holds its
    end.
    """
    try:
        return os.pidfd_open(pid)
    except OSError:  # a kernel without it, or the process has gone
        return None


def _reap(pid: int) -> None:
    """Wait for a supervisor that has reported or been told to stop, but not for long."""
    deadline = time.monotonic() + STOP_SECONDS
    death = _watch(pid)
    if death is not None:
        select.select([death], [], [], STOP_SECONDS)
        os.close(death)
    while time.monotonic() < deadline:
        with contextlib.suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG) == (0, 0):
                time.sleep(processes.POLL_SECONDS / 4)
                continue
        return
