"""Grades completions in sandboxes: one fresh one for each, in processes that end when this one does."""

from __future__ import annotations

import contextlib
import marshal
import os
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING

import pytest_prereg
from pytest_prereg.measure.workloads.sandbox import grading
from pytest_prereg.measure.workloads.sandbox.completions import CallTest
from pytest_prereg.measure.workloads.sandbox.limits import Limits
from pytest_prereg.measure.workloads.sandbox.messages import (
    Count,
    Counted,
    Created,
    Done,
    End,
    Input,
    Opened,
    Setup,
    Stream,
    ToClient,
    Work,
    encode,
)
from pytest_prereg.measure.workloads.sandbox.outcomes import Graded, Outcome, TestOutcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_prereg.measure.workloads.sandbox.completions import Completion, Test
    from pytest_prereg.measure.workloads.sandbox.messages import TestEnd

WORKLOAD_VERSION = "1"

_BOOTSTRAP = (
    "import sys; sys.path.append({root!r}); "
    "from pytest_prereg.measure.workloads.sandbox.supervisor import main; main({descriptor})"
)
_CHUNK = 1 << 18
_MARSHAL = 2
"""The format without references between parts."""

_OUTCOMES = {
    End.NO_ANSWER: Outcome.FAIL,
    End.REFUSED: Outcome.FAIL,
    End.EXCEPTION: Outcome.CRASH,
    End.STATUS: Outcome.CRASH,
    End.SIGNAL: Outcome.CRASH,
    End.DEADLINE: Outcome.TIMEOUT,
    End.CPU: Outcome.TIMEOUT,
    End.MEMORY: Outcome.MEMORY,
    End.OUTPUT: Outcome.OUTPUT,
    End.LOST: Outcome.INFRASTRUCTURE,
}


class SandboxUnavailableError(RuntimeError):
    """No sandbox can be made here; the text says why, and what to do."""


class Sandbox:
    """Grades completions; a context manager that any number of threads may use.

    Args:
        limits: What each completion may use.
        workers: Completions at a time.
        warm: Sandboxes kept ready ahead, beyond those that run.
        isolation: ``namespaces``; or ``processes``, which is weaker; or ``auto``, the first if possible.
        packages: Folders that programs may import from.

    Raises:
        ValueError: Some of these are out of range.
        SandboxUnavailableError: On entering, if ``isolation`` can't be had here.
    """

    def __init__(
        self,
        *,
        limits: Limits = Limits(),
        workers: int = 2,
        warm: int = 0,
        isolation: str = "namespaces",
        packages: Sequence[Path] = (),
    ) -> None:
        self._setup = Setup(
            limits=limits,
            workers=workers,
            warm=warm,
            isolation=isolation,
            packages=tuple(packages),
            client=os.getpid(),
        )
        self.isolation = isolation
        self.missing: tuple[str, ...] = ()
        self._lock = threading.Lock()
        self._pending: dict[int, tuple[Completion, float, Future[Graded]]] = {}
        self._number = 0
        self._creations: list[tuple[float, float]] = []
        self._counted: list[Future[int]] = []

    def __enter__(self) -> Sandbox:
        self._socket, other = socket.socketpair()
        root = str(Path(pytest_prereg.__file__).parents[1])
        with other:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _BOOTSTRAP.format(root=root, descriptor=other.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=(other.fileno(),),
                start_new_session=True,
                cwd="/",
            )
        self._socket.sendall(encode(self._setup))
        self._reader = threading.Thread(target=self._read, name="sandbox", daemon=True)
        self._opened: Future[Opened] = Future()
        self._reader.start()
        opened = self._opened.result()
        if opened.error:
            raise SandboxUnavailableError(opened.error)
        self.isolation, self.missing = opened.isolation, opened.missing
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
        self._process.wait()
        self._reader.join()
        self._socket.close()

    def submit(self, completion: Completion) -> Future[Graded]:
        """Return the outcome to come."""
        future: Future[Graded] = Future()
        with self._lock:
            self._number += 1
            work = Work(
                number=self._number,
                program=marshal.dumps(completion.program),
                inputs=tuple(map(_input, completion.tests)),
            )
            self._pending[work.number] = (completion, time.monotonic(), future)
            self._socket.sendall(encode(work))
        return future

    def grade(self, completions: Sequence[Completion]) -> list[Graded]:
        """Return their outcomes, in order."""
        return [future.result() for future in [self.submit(each) for each in completions]]

    def creations(self) -> list[tuple[float, float]]:
        """Return when, by the monotonic clock, each sandbox made so far was begun and was ready."""
        return list(self._creations)

    def alive(self) -> int:
        """Return how many processes of sandboxes live now."""
        counted: Future[int] = Future()
        with self._lock:
            self._counted.append(counted)
            self._socket.sendall(encode(Count()))
        return counted.result()

    def _read(self) -> None:
        stream = Stream(ToClient)
        with contextlib.suppress(ConnectionError):
            while data := self._socket.recv(_CHUNK):
                for message in stream.feed(data):
                    self._take(message)
        self._lose()

    def _lose(self) -> None:
        """Say of all that is under way that the supervisor is gone."""
        why = f"the supervisor of the sandboxes died (status {self._process.wait()})"
        if not self._opened.done():
            self._opened.set_result(Opened(error=why))

    def _take(self, message: object) -> None:
        if isinstance(message, Done):
            completion, submitted, future = self._pending.pop(message.number)
            future.set_result(_graded(completion, message, submitted, self.isolation))
        elif isinstance(message, Created):
            self._creations.append((message.began, message.ready))
        elif isinstance(message, Counted):
            self._counted.pop(0).set_result(message.processes)
        elif isinstance(message, Opened):
            self._opened.set_result(message)


def _input(test: Test) -> Input:
    if isinstance(test, CallTest):
        return Input(True, marshal.dumps(("call", test.function, test.args, test.kwargs), _MARSHAL))
    return Input(False, marshal.dumps(("script", test.stdin), _MARSHAL))


def _graded(completion: Completion, done: Done, submitted: float, isolation: str) -> Graded:
    tests = tuple(map(_outcome, completion.tests, done.tests))
    first = next((test.outcome for test in tests if test.outcome is not Outcome.PASS), Outcome.PASS)
    return Graded(
        outcome=first,
        tests=tests,
        evidence=grading.printable(done.evidence),
        seconds=done.seconds,
        creation=done.creation,
        waited=done.taken - submitted,
        peak_memory=done.peak_memory,
        isolation=isolation,
    )


def _outcome(test: Test, end: TestEnd) -> TestOutcome:
    if end.end is End.ANSWER:
        outcome, evidence = grading.compare(test, end.text)
    else:
        outcome, evidence = _OUTCOMES[end.end], grading.printable(end.text)
    return TestOutcome(outcome=outcome, seconds=end.seconds, evidence=evidence)
