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
from typing import TYPE_CHECKING, Any, NoReturn

from pytest_prereg.evidence import gpu_readings, kernel_counters
from pytest_prereg.evidence.model import Outcome
from pytest_prereg.measure.executors import caches, loading, memory, processes, scratch, wire
from pytest_prereg.measure.executors.base import Job, Result
from pytest_prereg.measure.executors.body import Place
from pytest_prereg.measure.executors.messages import Began, FromBody, Ready, Recorded, Report, Setup
from pytest_prereg.measure.executors.supervisor import Request, supervise
from pytest_prereg.measure.repeat import Repeat

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

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
        request = self._request(job, locks)
        own, other = socket.socketpair()
        try:
            pid = self._fork(request, own, other)
        except OSError as error:
            return Result(outcome=Outcome.INFRASTRUCTURE, cause="fork", error=str(error))
        other.close()
        with own:
            present = self._wait(own)
            result = wire.receive(own, Result) if present else None
        _reap(pid)
        processes.kill_descendants(STOP_SECONDS)
        scratch.remove_tree(request.place.workdir)
        caches.remove(self.folder)
        if present and result is None:
            return Result(outcome=Outcome.INFRASTRUCTURE, cause="supervisor", error="the supervisor died")
        return result

    def _request(self, job: Job, locks: list[int]) -> Request:
        received = time.monotonic()
        self.count += 1
        place = Place(
            output=self.folder / f"{self.count}.log",
            workdir=self.folder / f"work-{self.count}",
            service=self.folder / f"{self.count}.service.log",
        )
        place.workdir.mkdir()
        if job.cache == "fresh":
            caches.renew(self.folder)
        return Request(
            job=job,
            function=self.function,
            place=place,
            received=received,
            server=os.getpid(),
            locks=tuple(locks),
        )

    def _fork(self, request: Request, own: socket.socket, other: socket.socket) -> int:
        """Fork the supervisor; return its pid."""
        sys.stdout.flush()
        sys.stderr.flush()
        pid = processes.fork()
        if pid == 0:
            own.close()
            self._supervise(request, other)
        return pid

    def _supervise(self, request: Request, server: socket.socket) -> NoReturn:
        """Be the supervisor."""
        try:
            if self.client is not None:
                os.close(self.client)
            supervise(request, server, self.control)
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
