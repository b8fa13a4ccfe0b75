"""Watches over one body: its clock, its end, and everything that it started.

The supervisor never waits for the end of a pipe that a grandchild of the body may hold: it waits for the
report or for the death of the body itself, then kills whatever is left below it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_prereg.evidence.bounding import bounded
from pytest_prereg.evidence.model import Outcome
from pytest_prereg.evidence.repeat_watch import RepeatWatch
from pytest_prereg.measure import commands
from pytest_prereg.measure.checkpoints import has_content
from pytest_prereg.measure.executors import body, memory, processes, scratch, wire
from pytest_prereg.measure.executors.base import Result
from pytest_prereg.measure.executors.classify import End, Ending, classify
from pytest_prereg.measure.executors.messages import (
    Assignment,
    Began,
    Done,
    FromBody,
    Recorded,
    Report,
    flaw_of,
)
from pytest_prereg.measure.executors.services import Serving, Unserved
from pytest_prereg.measure.executors.text import file_tail, tail
from pytest_prereg.measure.repeat import Readings

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from pytest_prereg.measure.executors.base import Job

START_SECONDS = 60.0
"""Between the fork and the start of the body there is nothing that could take long."""
EXIT_SECONDS = 1.0
"""How long a body that has reported may take to exit."""
KILL_SECONDS = 1.2
TICK_SECONDS = 1.0
OUTPUT_BYTES = 64 << 20
"""Output that has grown beyond this is thrown away, but for its end; no more is ever read."""
KEPT_OUTPUT_BYTES = 1 << 20
CHUNK = 1 << 20
SMALL_BYTES = 1 << 18
"""A report that is larger leaves its supervisor so large that forks of it cost more than a new one."""
CHUNKS_AT_ONCE = 16
"""A body that never stops sending must not keep its supervisor from looking at the clock."""


class Request(NamedTuple):
    """A job as a supervisor has it."""

    job: Job
    function: Callable[..., Any]
    place: body.Place
    received: float
    """When the server received it, by the monotonic clock."""
    locks: tuple[int, ...] = ()
    """Open files of devices, which stay locked as long as the server or the supervisor has them."""


class Signals(NamedTuple):
    """A pipe on which SIGCHLD and SIGTERM can be read, as bytes of their numbers."""

    reading: int
    writing: int


def supervise(
    function: Callable[..., Any], server: socket.socket, control: socket.socket, parent: int
) -> None:
    """Run the jobs that ``server`` assigns, each in a body of its own, and send it their results.

    Called in a fork of the server, whose pid is ``parent``. The end of either socket stops it: ``server``
    ends with the fork server, ``control`` with the executor. After a job that did not end well it takes no
    more: the next one has a supervisor that has seen nothing.
    """
    os.setsid()
    processes.become_subreaper()
    signals = _listen_for_signals()
    processes.die_with_parent(parent, signal.SIGTERM)
    while (request := _assigned(function, server, signals)) is not None:
        supervision = Supervision(request, server, control, signals)
        end = supervision.launch() or supervision.watch()
        if end is End.STOPPED:
            supervision.stop()
            return
        result = supervision.finish(end)
        goes_on = supervision.ended_plainly(result)
        for lock in request.locks if goes_on else ():
            os.close(lock)
        with contextlib.suppress(OSError):
            wire.send(server, Done(result=result, goes_on=goes_on))
        if not goes_on:
            return


def _assigned(function: Callable[..., Any], server: socket.socket, signals: Signals) -> Request | None:
    """Wait for the next job; return ``None`` if there is none any more, or on the order to stop."""
    poll = select.poll()
    poll.register(server, select.POLLIN)
    poll.register(signals.reading, select.POLLIN)
    while signals.reading in dict(poll.poll()):
        if signal.SIGTERM in os.read(signals.reading, 4096):
            return None
    locks = wire.receive_descriptors(server)
    assignment = None if locks is None else wire.receive(server, Assignment)
    if locks is None or assignment is None:
        return None
    place = body.Place(
        output=Path(assignment.output), workdir=Path(assignment.workdir), service=Path(assignment.service)
    )
    return Request(
        job=assignment.job,
        function=function,
        place=place,
        received=assignment.received,
        locks=tuple(locks),
    )


class Supervision:
    """One body, from its fork until nothing of it is left."""

    def __init__(
        self, request: Request, server: socket.socket, control: socket.socket, signals: Signals
    ) -> None:
        self.request = request
        self.own = [server.fileno(), control.fileno(), *request.locks]
        self.watcher = RepeatWatch()
        self.readings: dict[str, Any] = {}
        self.oom_kills = 0
        self.wakeup, self.waker = signals
        self.poll = select.poll()
        self.poll.register(self.wakeup, select.POLLIN)
        self.poll.register(server, select.POLLIN)
        self.poll.register(control, select.POLLRDHUP)
        self.frames = wire.Frames(wire.MOST_BYTES)
        self.size = 0
        """Bytes that the body has sent."""
        self.pipe: int | None = None
        self.report: Report | None = None
        self.garbled: str | None = None
        self.status: int | None = None
        self.begun: Began | None = None
        self.recorded = False
        self.deadline: float | None = None
        self.ended = 0.0
        self.cut = ""
        self.pid: int | None = None
        self.gate: int | None = None
        """Closed until the body may begin."""
        job = request.job
        self.resumed = job.checkpoint is not None and has_content(Path(job.checkpoint))
        self.serving = Serving(job.service, job.params, request.place.service) if job.service else None
        self.unserved: Unserved | None = None
        self.beside: set[int] = set()
        """Pids of the service and of what it started, as far as they are known."""

    def launch(self) -> End | None:
        """Start the body, and before it the service that it talks to; return what came in between.

        Without a service the body becomes a process while the machine is looked at, and waits at its gate.
        """
        if self.serving is None:
            self.pid = self._fork()
        self.oom_kills = memory.oom_kills()
        self.watcher.begin()
        if self.watcher.foreign and self.watcher.foreign[0]:
            return End.FOREIGN
        if self.serving is not None and (end := self._serve(self.serving)) is not None:
            return end
        self.pid = self.pid or self._fork()
        self._open_gate()
        return None

    def _open_gate(self) -> None:
        self.deadline = time.monotonic() + START_SECONDS
        if self.gate is not None:
            with contextlib.suppress(BrokenPipeError):
                os.write(self.gate, b"+")
            os.close(self.gate)
            self.gate = None

    def _serve(self, serving: Serving) -> End | None:
        """Start the service; return what came before it was ready."""
        stopped = False

        def wait(seconds: float) -> bool:
            nonlocal stopped
            stopped = self._wait(time.monotonic() + seconds)
            self._bound_output()
            return stopped

        self.unserved = serving.start(wait)
        self.beside = serving.pids()
        if stopped:
            return End.STOPPED
        return None if self.unserved is None else End.UNSERVED

    def watch(self) -> End:
        """Wait for whatever comes first."""
        while True:
            if self._wait(self.deadline):
                return End.STOPPED
            self._reap()
            self._read()
            self.ended = time.monotonic()
            if self.report is not None:
                return End.LATE if self._is_late() else End.REPORTED
            if self.garbled is not None:
                return End.GARBLED
            if self.status is not None:
                return End.DIED
            if self._is_late():
                return End.STUCK if self.begun is None else End.LATE
            self._bound_output()

    def finish(self, end: End) -> Result:
        """Leave nothing running; return the result."""
        if self.serving is not None and self.unserved is None:
            self.unserved = self.serving.death()
            self.beside |= self.serving.pids()
        ending = self._ending(end)
        if end is End.REPORTED:  # else there may be something to be stopped first
            self.readings = self.watcher.end()
        left = self._clear(EXIT_SECONDS if end is End.REPORTED else 0)
        if end is not End.REPORTED:
            self.readings, ending = self.watcher.end(), self._ending(end)
        result = self._result(ending, left if end in {End.REPORTED, End.DIED} else 0)
        self._tidy(keep=result.outcome is not Outcome.OK)
        return result

    def ended_plainly(self, result: Result) -> bool:
        """Return whether nothing of the repeat is left, in this process either, as another needs it."""
        is_plain = result.outcome is Outcome.OK and "leftover_processes" not in result.diagnostics
        is_small = self.size <= SMALL_BYTES and self.serving is None
        return is_plain and is_small and not processes.has_children()

    def _ending(self, end: End) -> Ending:
        """Return what is known of the end by now."""
        return Ending(
            end=end,
            recorded=self.recorded,
            unserved=None if self.unserved is None else str(self.unserved),
            began=self.begun is not None,
            report=self.report,
            garbled=self.garbled or "",
            status=self.status,
            out_of_memory=memory.oom_kills() > self.oom_kills,
            output=tail(f"{self.cut}\n{file_tail(self.request.place.output)}"),
        )

    def stop(self) -> None:
        """Leave nothing running and nothing behind."""
        self._clear(0)
        self._tidy(keep=False)

    def _tidy(self, *, keep: bool) -> None:
        place = self.request.place
        scratch.remove_tree(place.workdir)
        for output in (place.output, place.service):
            _tidy(output, keep=keep)

    def _fork(self) -> int:
        """Fork the body, with a gate before it and a pipe on which it reports; return its pid."""
        self.pipe, writing = os.pipe()
        gate, self.gate = os.pipe()
        pid = processes.fork()
        if pid == 0:
            own = [self.pipe, self.gate, self.wakeup, self.waker, *self.own]
            place = self.request.place._replace(port=self.serving.port if self.serving else None)
            body.run(self.request.function, self.request.job, place, body.Channels(gate, writing), own)
        os.close(writing)
        os.close(gate)
        os.set_blocking(self.pipe, False)
        self.poll.register(self.pipe, select.POLLIN)
        return pid

    def _wait(self, until: float | None) -> bool:
        """Sleep until something happens; return whether it is the order to stop."""
        left = TICK_SECONDS if until is None else until - time.monotonic()
        seconds = min(TICK_SECONDS, left)
        events = {descriptor for descriptor, _ in self.poll.poll(max(0, seconds * 1000))}
        if self.wakeup in events:
            return signal.SIGTERM in os.read(self.wakeup, 4096)
        return bool(events - {self.pipe})

    def _wait_for_signal(self, seconds: float) -> None:
        """Sleep until a child has ended, or longer than that takes: an order to stop comes too late here."""
        if select.select([self.wakeup], [], [], seconds)[0]:
            os.read(self.wakeup, 4096)

    def _is_late(self) -> bool:
        return self.deadline is not None and self.ended > self.deadline

    def _reap(self) -> None:
        if self.status is None and self.pid is not None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)

    def _read(self) -> None:
        """Take in what the body has sent, without ever waiting for more."""
        for _ in range(CHUNKS_AT_ONCE):
            if self.pipe is None:
                return
            try:
                data = os.read(self.pipe, CHUNK)
            except BlockingIOError:
                return
            self.frames.feed(data)
            self.size += len(data)
            self._receive()
            if not data:
                self.poll.unregister(self.pipe)
                os.close(self.pipe)
                self.pipe = None

    def _receive(self) -> None:
        """Take in the messages that are whole, up to the report or to what is none.

        The body and all that it starts can write to the pipe: no bytes of theirs may end the supervisor, or
        whoever has seen a bad value could have another go.
        """
        try:
            while self.report is None and self.garbled is None and (frame := self.frames.next()) is not None:
                self._take(wire.decode(frame, FromBody))
        except wire.GarbledError as error:
            self.garbled = str(error)

    def _take(self, message: Began | Recorded | Report) -> None:
        job = self.request.job
        if isinstance(message, Report):
            self.garbled = flaw_of(message, job.metrics, commands.optional(job.command))
            self.report = message if self.garbled is None else None
        elif isinstance(message, Recorded):
            self.recorded = True
        elif self.begun is None:
            self.begun = message
            timeout = job.timeout
            self.deadline = None if timeout is None else time.monotonic() + timeout

    def _bound_output(self) -> None:
        place = self.request.place
        for output in (place.output, place.service):
            with contextlib.suppress(OSError):
                if output.stat().st_size > OUTPUT_BYTES:
                    self.cut = file_tail(output) if output == place.output else self.cut
                    os.truncate(output, 0)

    def _clear(self, patience: float) -> int:
        """Kill the body, unless it exits by itself, and all that it left; return how many those were."""
        until = time.monotonic() + patience
        self._reap()
        while self.status is None and (left := until - time.monotonic()) > 0:
            self._wait_for_signal(left)
            self._reap()
        if self.status is None and self.pid is not None:
            # It may not have come to lead a group yet, or be another user's by now.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        return len(processes.kill_descendants(KILL_SECONDS) - self.beside - {self.pid})

    def _result(self, ending: Ending, left: int) -> Result:
        verdict = classify(ending)
        readings = self.report.readings if self.report and ending.end is End.REPORTED else Readings()
        diagnostics = bounded(readings.diagnostics)
        instruments = {
            name: taker
            for name, taker in readings.instruments.items()
            if name in readings.values or name in diagnostics
        }
        if left:
            diagnostics["leftover_processes"] = left
        if readings.problems and verdict.outcome is not Outcome.INVALID:
            diagnostics["problems"] = readings.problems
        return Result(
            outcome=verdict.outcome,
            cause=verdict.cause,
            error=verdict.error,
            values=readings.values,
            diagnostics=diagnostics,
            instruments=instruments,
            samples=readings.samples,
            seconds=self._seconds(),
            environment=self._environment(),
            resumed=self.resumed,
            unreadable=readings.unreadable,
        )

    def _environment(self) -> dict[str, Any]:
        pid = {} if self.gate is not None or self.pid is None else {"pid": self.pid}
        cache = {"cache": "fresh"} if self.request.job.cache == "fresh" else {}
        return {**self.readings, **pid, **cache}

    def _seconds(self) -> dict[str, float]:
        """Return the times by the body's own clock, as far as it told them: its messages may have waited."""
        service = {} if self.serving is None else {"service": self.serving.seconds}
        if self.begun is None:
            return service
        ended = self.ended if self.report is None else self.report.at
        launch = self.begun.at - self.request.received - sum(service.values())
        return {"launch": launch, **service, "body": ended - self.begun.at}


def _listen_for_signals() -> Signals:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    return Signals(reading, writing)


def _tidy(output: Path, *, keep: bool) -> None:
    """Remove a body's output, unless it is small and may explain a failure."""
    with contextlib.suppress(OSError):
        size = output.stat().st_size
        if not (keep and 0 < size <= KEPT_OUTPUT_BYTES):
            output.unlink()
