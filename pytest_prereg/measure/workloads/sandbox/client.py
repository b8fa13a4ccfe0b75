"""Grades completions in sandboxes: a fresh one for each, and no process of any outlives this one."""

from __future__ import annotations

import contextlib
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
from pytest_prereg.measure.executors.processes import descendants
from pytest_prereg.measure.workloads.language.settings import count_problem, refuse, word_problem
from pytest_prereg.measure.workloads.sandbox import grading, messages, verdicts
from pytest_prereg.measure.workloads.sandbox.checking import check_completions, completion_problems
from pytest_prereg.measure.workloads.sandbox.limits import Limits
from pytest_prereg.measure.workloads.sandbox.messages import Created, Opened, Setup, Work

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    # What runs in processes of its own: imported nowhere, and its versions count all the same.
    from pytest_prereg.measure.workloads.sandbox import driver, supervisor  # noqa: F401
    from pytest_prereg.measure.workloads.sandbox.completions import Completion
    from pytest_prereg.measure.workloads.sandbox.messages import ToClient
    from pytest_prereg.measure.workloads.sandbox.outcomes import Graded

WORKLOAD_VERSION = "1"

ISOLATIONS = ("namespaces", "processes", "auto")
MOST = 200
"""Workers, and sandboxes kept warm: each is a handful of processes."""

_BOOTSTRAP = (
    "import sys; at = [path[-9:] for path in [*sys.path, '-packages']].index('-packages'); "
    "sys.path.insert(at, {root!r}); "
    "from pytest_prereg.measure.workloads.sandbox.supervisor import main; main({descriptor})"
)
_INHERITED = ("PATH", "TMPDIR", "LD_LIBRARY_PATH")
_CHUNK = 1 << 18
_CLOSE_SECONDS = 30.0
_MOST_TOLD = 2000


class SandboxUnavailableError(RuntimeError):
    """No sandbox can be made here; the text says why, and what to do."""


class Sandbox:
    """Grades completions; a context manager, which any number of threads may use.

    Args:
        limits: What each completion may use.
        workers: Completions at a time.
        warm: Sandboxes kept ready ahead, beyond those that run.
        isolation: ``namespaces``; or ``processes``, which is weaker; or ``auto``, the first if possible.
        packages: Folders that programs may import from; they can't write to them.

    Raises:
        ValueError: Some of these can't be; all are named.
        SandboxUnavailableError: On entering, where ``isolation`` can't be had.
    """

    isolation: str
    """What really holds, once entered: ``namespaces`` or ``processes``."""
    missing: tuple[str, ...]
    """What is weaker than it should be, a sentence each."""

    def __init__(
        self,
        *,
        limits: Limits = Limits(),  # noqa: B008  # immutable
        workers: int = 2,
        warm: int = 0,
        isolation: str = "namespaces",
        packages: Sequence[Path] = (),
    ) -> None:
        refuse(
            [
                count_problem("workers", workers) or _most_problem("workers", workers),
                count_problem("warm", warm, least=0) or _most_problem("warm", warm),
                word_problem("isolation", isolation, ISOLATIONS),
                *map(_package_problem, packages),
            ]
        )
        self._limits, self._workers, self._warm = limits, workers, warm
        self._packages = tuple(Path(os.path.realpath(path)) for path in packages)
        self._wanted, self.isolation, self.missing = isolation, isolation, ()
        self._lock = threading.Lock()
        self._numbers = 0
        self._pending: dict[int, tuple[Completion, float, Future[Graded]]] = {}
        self._creations: list[tuple[float, float]] = []
        self._lost: str | None = "the sandbox was not entered"
        self._entered_by = 0
        self._left = False

    def __enter__(self) -> Self:
        self._socket, other = socket.socketpair()
        self._log = os.memfd_create("supervisor", os.MFD_CLOEXEC)
        try:
            with other:
                self._process = self._started(other.fileno())
        except BaseException:
            self._close()
            raise
        self._entered_by, self._lost, self._left = os.getpid(), None, False
        self._opened: Future[Opened] = Future()
        self._reader = threading.Thread(target=self._read, name="sandbox", daemon=True)
        self._reader.start()
        self._send(
            Setup(
                limits=self._limits,
                workers=self._workers,
                warm=self._warm,
                isolation=self._wanted,
                packages=self._packages,
                client=os.getpid(),
            )
        )
        try:
            opened = self._opened.result()
            if opened.error:
                raise SandboxUnavailableError(opened.error)  # noqa: TRY301
        except BaseException:
            self.__exit__()
            raise
        self.isolation, self.missing = opened.isolation, opened.missing
        return self

    def _started(self, descriptor: int) -> subprocess.Popen[bytes]:
        # -P: else the folder it starts in would come before the standard library. Ours comes behind that, but
        # before what is installed: another copy of this package may be among it.
        root = str(Path(pytest_prereg.__file__).parents[1])
        return subprocess.Popen(
            [sys.executable, "-P", "-c", _BOOTSTRAP.format(root=root, descriptor=descriptor)],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            cwd="/",
            env={name: os.environ[name] for name in _INHERITED if name in os.environ},
            pass_fds=(descriptor,),
            start_new_session=True,
        )

    def __exit__(self, *_: object) -> None:
        """End all sandboxes; what is under way has no verdict. In a fork of who entered, end none."""
        if os.getpid() != self._entered_by:
            self._close()
            return
        self._left = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
        try:
            self._process.wait(_CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._reader.join()
        self._close()

    def _close(self) -> None:
        self._socket.close()
        os.close(self._log)

    def submit(self, completion: Completion) -> Future[Graded]:
        """Return the outcome to come.

        Raises:
            ValueError: The completion can't be graded, whatever its program does; all that is wrong is told.
            RuntimeError: This is a fork of the process that entered; no answer would come to it.
        """
        if self._entered_by not in {0, os.getpid()}:
            raise RuntimeError("a Sandbox grades in the process that entered it: enter one in each fork")
        refuse(completion_problems(completion))
        program, inputs = verdicts.sent(completion)
        future: Future[Graded] = Future()
        future.set_running_or_notify_cancel()
        with self._lock:
            submitted = time.monotonic()
            if self._lost is not None:
                future.set_result(verdicts.no_verdict(completion, submitted, self._lost, self.isolation))
                return future
            self._numbers += 1
            self._pending[self._numbers] = (completion, submitted, future)
            self._send(Work(number=self._numbers, program=program, inputs=inputs))
        return future

    def grade(self, completions: Sequence[Completion]) -> list[Graded]:
        """Return their outcomes, in order.

        Raises:
            ValueError: As :meth:`submit`; none is run then.
        """
        check_completions(completions)
        return [future.result() for future in [self.submit(each) for each in completions]]

    def creations(self) -> list[tuple[float, float]]:
        """Return when each sandbox made so far was begun and was ready: seconds of the monotonic clock."""
        return list(self._creations)

    def alive(self) -> int:
        """Return how many processes of sandboxes live now, the supervisor not among them."""
        return len(descendants(self._process.pid))

    def _send(self, message: messages.ToSupervisor) -> None:
        with contextlib.suppress(OSError):  # whoever reads the socket is told of its end
            self._socket.sendall(messages.encode(message))

    def _read(self) -> None:
        stream = messages.Stream(messages.ToClient)
        with contextlib.suppress(OSError):
            while data := self._socket.recv(_CHUNK):
                for message in stream.feed(data):
                    self._take(message)
        self._lose()

    def _take(self, message: ToClient) -> None:
        if isinstance(message, Created):
            self._creations.append((message.began, message.ready))
        elif isinstance(message, Opened):
            self._opened.set_result(message)
        else:
            with self._lock:
                completion, submitted, future = self._pending.pop(message.number)
            try:
                future.set_result(verdicts.graded(completion, message, submitted, self.isolation))
            except Exception as error:  # noqa: BLE001  # whoever waits for it shall hear of it
                future.set_exception(error)

    def _lose(self) -> None:
        """Say of all that is under way that there is no verdict."""
        status = self._process.wait()
        told = os.pread(self._log, _MOST_TOLD, max(0, os.fstat(self._log).st_size - _MOST_TOLD))
        why = f"the supervisor of the sandboxes ended (status {status}) {grading.printable(told, _MOST_TOLD)}"
        if self._left:
            why = "the block of this Sandbox was left before it was graded: grade inside of it"
        with self._lock:
            self._lost = why.strip()
            pending = [*self._pending.values()]
            self._pending.clear()
        if not self._opened.done():
            self._opened.set_result(Opened(error=self._lost))
        for completion, submitted, future in pending:
            future.set_result(verdicts.no_verdict(completion, submitted, self._lost, self.isolation))


def _most_problem(name: str, value: int) -> str | None:
    return None if value <= MOST else f"{name} = {value!r}: give a whole number of at most {MOST}"


def _package_problem(path: Path) -> str | None:
    if Path(path).is_dir() and Path(path).is_absolute():
        return None
    return f"packages holds {str(path)!r}: give folders that exist, with their whole path"
