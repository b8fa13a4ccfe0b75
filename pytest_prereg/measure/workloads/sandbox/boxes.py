"""One sandbox, from its start to when nothing of it is left."""

from __future__ import annotations

import marshal
import os
import signal
import socket
import time
from contextlib import suppress
from typing import Any, Protocol

import msgspec

from pytest_prereg.measure.workloads.sandbox import ends, staging, watching
from pytest_prereg.measure.workloads.sandbox.limits import Limits
from pytest_prereg.measure.workloads.sandbox.messages import LENGTH, Done, End, TestEnd, Work
from pytest_prereg.measure.workloads.sandbox.priority import come_first
from pytest_prereg.measure.workloads.sandbox.reactor import Outgoing, Reactor

WORKLOAD_VERSION = "1"

FILTER = 6
"""Descriptor under which bubblewrap finds the filter of system calls."""

_OUTPUT, _ERRORS, _ANSWERS = range(3)
_CHUNK = 1 << 16
_MOST_ERRORS = 2000
_MOST_TOLD = 64
_BESIDE_ANSWER = 4096
"""Bytes that may come where an answer does: the text of an exception can be longer than an answer may."""


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """How all sandboxes of a supervisor are made."""

    command: list[str]
    environment: dict[str, str]
    code: int
    """Descriptor of the driver's code."""
    filter: int | None
    """Descriptor of the filter of system calls, where it is bubblewrap that needs it."""
    setting: dict[str, Any]
    """What the driver is told first."""
    limits: Limits
    contained: bool
    """Whether they have namespaces of their own."""


class Owner(Protocol):
    """What a sandbox reports to."""

    def is_ready(self, box: Box) -> None:
        """It can take a program."""

    def is_gone(self, box: Box, status: int) -> None:
        """Nothing is left of it; ``status`` as from ``waitpid``."""


class Box:
    """A sandbox and what is known of it.

    Whatever comes out of it may come from the program: it is data, and no more than a bounded amount of it
    is kept.
    """

    def __init__(self, recipe: Recipe, user: int | None, reactor: Reactor, owner: Owner) -> None:
        self.recipe, self.user, self._reactor, self._owner = recipe, user, reactor, owner
        self.began = time.monotonic()
        self.ready_at = self.taken_at = self.deadline = self._sent_at = 0.0
        self.init: int | None = None
        self.work: Work | None = None
        self.ended: list[TestEnd] = []
        self.cause: tuple[End, str] | None = None
        self.killed_at: float | None = None
        self._kernel_kills = self._peak = 0
        self._handle = -1
        self._status = 0
        self._told = b""
        self._kept = [bytearray(), bytearray(), bytearray()]
        self._start()

    def _start(self) -> None:
        self._control, inside = socket.socketpair()
        self._sources: list[int] = []
        sinks: list[int] = []
        try:
            for _ in self._kept:
                source, sink = os.pipe2(os.O_CLOEXEC)
                self._sources.append(source)
                sinks.append(sink)
            self.pid = self._spawn(inside.fileno(), sinks)
        except OSError:
            self._control.close()
            for source in self._sources:
                os.close(source)
            raise
        finally:
            inside.close()
            for sink in sinks:
                os.close(sink)
        self._control.settimeout(0)
        self._outer = os.pidfd_open(self.pid)
        for number, source in enumerate(self._sources):
            os.set_blocking(source, False)
            self._reactor.watch(source, lambda number=number: self._read(number))  # type: ignore[misc]
        self._reactor.watch(self._control.fileno(), self._hear)
        self._reactor.watch(self._outer, self._outer_ended)
        self._outgoing = Outgoing(self._control, self._reactor)
        self._say(marshal.dumps(self._setting()))

    def _spawn(self, control: int, sinks: list[int]) -> int:
        """Start it; return the pid of bubblewrap, or of the driver where there is none."""
        output, errors, answers = sinks
        files = [self.recipe.code] if self.recipe.filter is None else [self.recipe.code, self.recipe.filter]
        # Opened anew each time: whoever reads one goes on from where the one before stopped.
        opened = [os.open(f"/proc/self/fd/{file}", os.O_RDONLY | os.O_CLOEXEC) for file in files]
        given = [
            (output, 1),
            (errors, 2),
            (control, 3),
            (answers, 4),
            *zip(opened, (5, FILTER), strict=False),
        ]
        actions: list[Any] = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
        actions += [(os.POSIX_SPAWN_DUP2, source, target) for source, target in given]
        command = self.recipe.command
        try:
            with staging.acting_as(self.user):
                return os.posix_spawn(command[0], command, self.recipe.environment, file_actions=actions)
        finally:
            for descriptor in opened:
                os.close(descriptor)

    def _setting(self) -> dict[str, Any]:
        """Return what the driver is told first."""
        return self.recipe.setting

    def take(self, work: Work) -> None:
        """Run the tests of ``work``; the clock starts."""
        self.work = work
        self._kernel_kills = watching.kernel_kills()
        self._peak = sum(map(watching.memory, self._members()))
        for kept in self._kept:
            kept.clear()
        self.taken_at = time.monotonic()
        self.deadline = self.taken_at + self.recipe.limits.deadline
        self._say(work.program)
        self._next()

    def stop(self, end: End, text: str) -> None:
        """Kill all of it; what had not ended yet, ended so."""
        if self.cause is None:
            self.cause = (end, text)
        self.kill()
        if self._handle != -1:
            self._hasten()

    def _hasten(self) -> None:
        """Let what is dying come first: it has to run once more for that, behind all that spin.

        Only what can't run its own code any more may have that priority, so each is killed by itself before.
        """
        for pid in reversed(watching.family(self.pid)[1:]):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
                come_first(pid)
        come_first(self.pid)

    def kill(self) -> None:
        """Kill the init, and so all in its namespace.

        Before it is ready it is asked to end, which it does: bubblewrap's own processes aren't yet tied to
        each other then.
        """
        self.killed_at = self.killed_at or time.monotonic()
        if self._handle == -1:
            with suppress(OSError):
                self._control.shutdown(socket.SHUT_RDWR)
            return
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def force(self) -> None:
        """Kill whatever is left of it, one by one."""
        for pid in reversed(watching.family(self.pid)):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)

    def look(self) -> None:
        """Hold what its processes take against the limits."""
        if self.init is None or self.killed_at is not None:
            return
        pids, limits = self._members(), self.recipe.limits
        taken = sum(map(watching.memory, pids))
        self._peak = max(self._peak, taken)
        if (problem := watching.memory_problem(pids, taken, limits)) is not None:
            self.stop(End.MEMORY, problem)
        elif (problem := watching.processes_problem(pids, limits)) is not None:
            self.stop(End.SIGNAL, problem)
        elif (problem := self._files_problem()) is not None:
            self.stop(End.OUTPUT, problem)

    def errors(self) -> str:
        """Return the end of what was written to standard error."""
        return bytes(self._kept[_ERRORS][-_MOST_ERRORS:]).decode("utf-8", "replace").strip()

    def done(self, status: int) -> Done:
        """Return how the work ended; ``status`` is that of bubblewrap."""
        assert self.work is not None
        now = time.monotonic()
        tests, left = self.ended, len(self.work.inputs) - len(self.ended)
        if left and self.cause is None:
            self.cause = ends.of_sandbox(status, self.errors(), contained=self.recipe.contained)
        if left and self.cause is not None:
            end, text = self.cause
            tests = [*tests, *[TestEnd(end=end, text=text.encode(), seconds=now - self._sent_at)] * left]
        tests, evidence = self._excused(tests)
        return Done(
            number=self.work.number,
            tests=tuple(tests),
            evidence=evidence,
            taken=self.taken_at,
            seconds=now - self.taken_at,
            creation=self.ready_at - self.began,
            peak_memory=self._peak,
        )

    def _excused(self, tests: list[TestEnd]) -> tuple[list[TestEnd], str]:
        """Return the tests, all of them lost if what ended one was not the program's doing, and evidence."""
        evidence = self.cause[1] if self.cause is not None else "all tests ended"
        killed = any(ends.was_killed(test) for test in tests)
        if killed and watching.kernel_kills() > self._kernel_kills:
            near = self._peak >= ends.NEAR * self.recipe.limits.memory
            evidence = "the kernel killed a process for want of memory"
            end = End.MEMORY if near else End.LOST
            tests = [
                msgspec.structs.replace(test, end=end) if ends.was_killed(test) else test for test in tests
            ]
        if any(test.end is End.LOST for test in tests):
            tests = [TestEnd(end=End.LOST, text=evidence.encode(), seconds=test.seconds) for test in tests]
        return tests, evidence

    def _say(self, body: bytes) -> None:
        self._outgoing.send(len(body).to_bytes(LENGTH, "big") + body)

    def _next(self) -> None:
        assert self.work is not None
        if len(self.ended) == len(self.work.inputs):
            self.kill()
            return
        self._sent_at = time.monotonic()
        self._say(self.work.inputs[len(self.ended)].sent)

    def _hear(self) -> None:
        try:
            told = self._control.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            told = b""
        if not told:
            self._reactor.forget(self._control.fileno())
            self._hung_up()
            return
        *lines, self._told = (self._told + told).split(b"\n")
        for line in lines:
            self._take_note(line)
        if len(self._told) > _MOST_TOLD:
            self.stop(End.STATUS, ends.TAKEN_OVER)

    def _hung_up(self) -> None:
        """The driver has ended, or closed its socket."""

    def _take_note(self, line: bytes) -> None:
        if self.cause is not None:
            return
        if line == b"ready" and not self.ready_at:
            self._become_ready()
        elif self.work is not None and (status := ends.status_of(line)) is not None:
            self._test_ended(*status)
        else:
            self.stop(End.STATUS, ends.TAKEN_OVER)

    def _become_ready(self) -> None:
        """Take hold of the init: its pid can't be another's as long as bubblewrap has it as a child."""
        for pid in watching.children(self.pid)[:1]:
            handle = os.pidfd_open(pid)
            if pid not in watching.children(self.pid):
                os.close(handle)
                continue
            self.init, self._handle = pid, handle
            self._note_ready()

    def _note_ready(self) -> None:
        self.ready_at = time.monotonic()
        self._owner.is_ready(self)

    def _test_ended(self, status: int, cpu: float) -> None:
        assert self.work is not None
        now = time.monotonic()
        self._clear_up()
        for number in range(len(self._sources)):
            self._read(number)
        if (problem := self._files_problem()) is not None:  # made since the last look
            self.stop(End.OUTPUT, problem)
        if self.cause is not None or now >= self.deadline or len(self.ended) == len(self.work.inputs):
            return
        seen = ends.Seen(status, cpu, *map(bytes, self._kept))
        is_call = self.work.inputs[len(self.ended)].is_call
        end, text = ends.ended(seen, is_call=is_call, limits=self.recipe.limits)
        self.ended.append(TestEnd(end=end, text=text, seconds=now - self._sent_at))
        for kept in self._kept:
            kept.clear()
        self._next()

    def _clear_up(self) -> None:
        """Kill what a test left behind; the init has done so."""

    def _members(self) -> list[int]:
        """Return the pids of its processes."""
        assert self.init is not None
        return watching.family(self.init)

    def _files_problem(self) -> str | None:
        assert self.init is not None
        return watching.files_problem(self.init, self.recipe.limits)

    def _read(self, number: int) -> None:
        """Take what is in a pipe; too much of it ends the sandbox."""
        while True:
            try:
                data = os.read(self._sources[number], _CHUNK)
            except BlockingIOError:
                return
            if not data:
                self._reactor.forget(self._sources[number])
                return
            if self.cause is not None:
                return
            self._kept[number] += data
            if (problem := self._output_problem()) is not None:
                self.stop(End.OUTPUT, problem)

    def _output_problem(self) -> str | None:
        limits = self.recipe.limits
        output, errors, answer = map(len, self._kept)
        if answer > limits.answer + _BESIDE_ANSWER:
            return f"an answer of more than {limits.answer} bytes"
        if output + errors > limits.output + (0 if self.work else _MOST_ERRORS):
            return f"more than {limits.output} bytes of output"
        return None

    def _outer_ended(self) -> None:
        """Bubblewrap has ended: as a rule after its namespace, but it may have been killed by someone."""
        self._reactor.forget(self._outer)
        _, self._status = os.waitpid(self.pid, 0)
        self.kill()
        if self._handle == -1:
            self._all_ended()
        else:
            self._reactor.watch(self._handle, self._all_ended)

    def _all_ended(self) -> None:
        self._read(_ERRORS)
        descriptors = [*self._sources, self._outer, *([] if self._handle == -1 else [self._handle])]
        for descriptor in (*descriptors, self._control.fileno()):
            self._reactor.forget(descriptor)
        for descriptor in descriptors:
            os.close(descriptor)
        self._control.close()
        if self.init is not None:
            with suppress(ChildProcessError):  # an orphan of bubblewrap's comes to us
                os.waitpid(self.init, os.WNOHANG)
        self._owner.is_gone(self, self._status)
