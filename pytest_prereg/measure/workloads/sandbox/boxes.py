"""One sandbox, from its start to when nothing of it is left."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import time
from typing import TYPE_CHECKING, Protocol

import msgspec

from pytest_prereg.measure.workloads.sandbox import ends, watching
from pytest_prereg.measure.workloads.sandbox.messages import LENGTH, Done, End, TestEnd

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_prereg.measure.workloads.sandbox.limits import Limits
    from pytest_prereg.measure.workloads.sandbox.messages import Work

WORKLOAD_VERSION = "1"

OUTPUT, ERRORS, ANSWERS = range(3)
"""Pipes out of a sandbox."""

_CHILD = re.compile(rb'"child-pid": (\d+)\D')
_CHUNK = 1 << 16
_MOST_ERRORS = 2000
_STATUS_LINE = 64


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """How all sandboxes of a supervisor are made."""

    command: list[str]
    environment: dict[str, str]
    code: int
    """Descriptor of the driver's code."""
    filter: int | None
    """Descriptor of the filter of system calls."""
    setting: bytes
    """What the driver is told first."""
    limits: Limits
    contained: bool
    """Whether they have namespaces of their own."""


class Loop(Protocol):
    """What calls back when a descriptor can be read."""

    def watch(self, descriptor: int, call: Callable[[], None]) -> None:
        """Call ``call`` whenever ``descriptor`` can be read."""

    def forget(self, descriptor: int) -> None:
        """Call no more."""


class Box:
    """A sandbox; tells its ``owner`` when it is ready, and when it is gone."""

    def __init__(self, recipe: Recipe, user: int | None, loop: Loop, owner: Owner) -> None:
        self.recipe, self.user, self._loop, self._owner = recipe, user, loop, owner
        self.began = time.monotonic()
        self.ready_at = self.taken_at = self.deadline = self._sent_at = 0.0
        self.init: int | None = None
        self._init_handle: int | None = None
        self.work: Work | None = None
        self.ended: list[TestEnd] = []
        self.cause: tuple[End, str] | None = None
        self.peak = 0
        self._lines = self._informed = b""
        self._collected = [bytearray(), bytearray(), bytearray()]
        self._start()

    def _start(self) -> None:
        self.control, inside = socket.socketpair()
        self.control.setblocking(False)
        ends_of = [os.pipe2(os.O_CLOEXEC) for _ in range(4)]
        self._pipes = [source for source, _ in ends_of[:3]]
        self._information = ends_of[3][0]
        try:
            self.pid = _spawn(self.recipe, self.user, inside.fileno(), [sink for _, sink in ends_of])
        finally:
            inside.close()
            for _, sink in ends_of:
                os.close(sink)
        self._handle = os.pidfd_open(self.pid)
        for source in (*self._pipes, self._information):
            os.set_blocking(source, False)
        for number, source in enumerate(self._pipes):
            self._loop.watch(source, lambda number=number: self._read(number))  # type: ignore[misc]
        self._loop.watch(self._information, self._learn_init)
        self._loop.watch(self.control.fileno(), self._hear)
        self._loop.watch(self._handle, self._bury)
        self._say(self.recipe.setting)

    def take(self, work: Work) -> None:
        """Run the tests of ``work``; the clock starts."""
        self.work = work
        self.taken_at = time.monotonic()
        self.deadline = self.taken_at + self.recipe.limits.deadline
        self._say(work.program)
        self._next()

    def stop(self, end: End, text: str) -> None:
        """Kill all of it; what had not ended yet, ended so."""
        if self.cause is None:
            self.cause = (end, text)
        self.kill()

    def kill(self) -> None:
        """Kill the init, and so all in the namespace."""
        if self.recipe.contained and self._init_handle is None:
            self._learn_init()
        handle = self._handle if self._init_handle is None else self._init_handle
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, signal.SIGKILL)

    def _say(self, body: bytes) -> None:
        frame = len(body).to_bytes(LENGTH, "big") + body
        self.control.setblocking(True)
        try:
            self.control.sendall(frame)
        except OSError:
            pass  # its end is told by itself
        finally:
            self.control.setblocking(False)

    def _next(self) -> None:
        assert self.work is not None
        if len(self.ended) == len(self.work.inputs):
            self.kill()
            return
        self._sent_at = time.monotonic()
        self._say(self.work.inputs[len(self.ended)].sent)

    def _learn_init(self) -> None:
        """Read the pid of the init, which bubblewrap writes piece by piece."""
        try:
            told = os.read(self._information, _CHUNK)
        except BlockingIOError:
            return
        self._informed += told
        found = _CHILD.search(self._informed)
        if found or not told:
            self._loop.forget(self._information)
        if found and self.init is None:
            self.init = int(found[1])
            with contextlib.suppress(ProcessLookupError):
                self._init_handle = os.pidfd_open(self.init)

    def _hear(self) -> None:
        try:
            told = self.control.recv(_CHUNK)
        except BlockingIOError:
            return
        except ConnectionError:
            told = b""
        if not told:
            self._loop.forget(self.control.fileno())
            return
        *lines, self._lines = (self._lines + told).split(b"\n")
        for line in lines:
            self._told(line)
        if len(self._lines) > _STATUS_LINE:
            self.stop(End.STATUS, "the driver was made to say something else")

    def _told(self, line: bytes) -> None:
        if self.cause is not None:
            return
        if line == b"ready" and not self.ready_at:
            self.ready_at = time.monotonic()
            self._owner.is_ready(self)
        elif self.work is not None and (status := ends.status_of(line)) is not None:
            self._test_ended(*status)
        else:
            self.stop(End.STATUS, "the driver was made to say something else")

    def _test_ended(self, status: int, cpu: float) -> None:
        assert self.work is not None
        now = time.monotonic()
        for number in range(3):
            self._read(number)
        if now >= self.deadline or self.cause is not None or len(self.ended) == len(self.work.inputs):
            return
        output, errors, answer = (bytes(each) for each in self._collected)
        is_call = self.work.inputs[len(self.ended)].is_call
        end, text = ends.ended(
            status, cpu, output, errors, answer, is_call=is_call, limits=self.recipe.limits
        )
        self.ended.append(TestEnd(end=end, text=text, seconds=now - self._sent_at))
        for each in self._collected:
            each.clear()
        self._next()

    def _read(self, number: int) -> None:
        """Take what is in a pipe; too much of it ends the sandbox."""
        limits = self.recipe.limits
        kept = self._collected[number]
        while True:
            try:
                data = os.read(self._pipes[number], _CHUNK)
            except BlockingIOError:
                return
            if not data:
                self._loop.forget(self._pipes[number])
                return
            kept += data
            written = len(self._collected[OUTPUT]) + len(self._collected[ERRORS])
            if number == ANSWERS and len(kept) > limits.answer + _MOST_ERRORS:
                self.stop(End.OUTPUT, f"an answer of more than {limits.answer} bytes")
                return
            if self.work is not None and written > limits.output:
                self.stop(End.OUTPUT, f"more than {limits.output} bytes of output")
                return

    def _bury(self) -> None:
        """Nothing of it is left: bubblewrap only ends when its namespace is empty."""
        _, status = os.waitpid(self.pid, 0)
        self._read(ERRORS)
        for descriptor in (*self._pipes, self._information, self.control.fileno(), self._handle):
            self._loop.forget(descriptor)
        for descriptor in (*self._pipes, self._information, self._handle):
            os.close(descriptor)
        if self._init_handle is not None:
            os.close(self._init_handle)
        self.control.close()
        self._owner.is_gone(self, status)

    def errors(self) -> str:
        """Return what was written to standard error, the end of it."""
        return bytes(self._collected[ERRORS][-_MOST_ERRORS:]).decode("utf-8", "replace").strip()

    def look(self) -> None:
        """Hold what its processes take against the limits."""
        if self.init is None or self.cause is not None:
            return
        limits = self.recipe.limits
        pids = watching.family(self.init)
        self.peak = max(self.peak, taken := sum(map(watching.memory, pids)))
        if taken > limits.memory:
            taken = sum(map(watching.private_memory, pids))
            if taken > limits.memory:
                self.stop(End.MEMORY, f"{taken} bytes of memory, where {limits.memory} are the most")

    def done(self, status: int) -> Done:
        """Return how the work ended, with the status of bubblewrap."""
        assert self.work is not None
        left = len(self.work.inputs) - len(self.ended)
        end, text = self.cause or (None, "")
        if left and end is None:
            end, text = ends.of_sandbox(status, self.errors(), contained=self.recipe.contained)
        now = time.monotonic()
        tests = [*self.ended]
        if end is not None:
            tests += [TestEnd(end=end, text=text.encode(), seconds=now - self._sent_at)] * left
        if end is End.LOST:
            tests = [TestEnd(end=end, text=text.encode(), seconds=each.seconds) for each in tests]
        return Done(
            number=self.work.number,
            tests=tuple(tests),
            evidence=text or "all tests ended",
            taken=self.taken_at,
            seconds=now - self.taken_at,
            creation=self.ready_at - self.began,
            peak_memory=self.peak,
        )


class Owner(Protocol):
    """What a sandbox reports to."""

    def is_ready(self, box: Box) -> None:
        """It can take a program."""

    def is_gone(self, box: Box, status: int) -> None:
        """Nothing is left of it; ``status`` as from ``waitpid``."""


def _spawn(recipe: Recipe, user: int | None, control: int, sinks: list[int]) -> int:
    """Start bubblewrap, as ``user``; return its pid."""
    output, errors, answers, information = sinks
    given = [(control, 3), (answers, 4), (recipe.code, 5), (information, 6), (output, 1), (errors, 2)]
    opened = [os.open(f"/proc/self/fd/{recipe.code}", os.O_RDONLY | os.O_CLOEXEC)]
    given[2] = (opened[0], 5)
    if recipe.filter is not None:
        # Opened anew each time: bubblewrap reads from where the one before stopped.
        opened.append(os.open(f"/proc/self/fd/{recipe.filter}", os.O_RDONLY | os.O_CLOEXEC))
        given.append((opened[1], 7))
    actions: list[tuple[int, ...] | tuple[int, int, str, int, int]] = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
    ]
    actions += [(os.POSIX_SPAWN_DUP2, source, target) for source, target in given]
    try:
        with _as_user(user):
            return os.posix_spawn(recipe.command[0], recipe.command, recipe.environment, file_actions=actions)
    finally:
        for descriptor in opened:
            os.close(descriptor)


@contextlib.contextmanager
def _as_user(user: int | None):
    """Be ``user`` for a moment, so that what is started meanwhile is for good."""
    if user is None:
        yield
        return
    os.setresgid(user, user, 0)
    os.setresuid(user, user, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)
