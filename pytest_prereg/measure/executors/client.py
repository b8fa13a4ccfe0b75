"""The executor's end of a fork server: starts it, talks to it, and is rid of it within two seconds."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

import pytest_prereg
from pytest_prereg.errors import MeasureError, Problem
from pytest_prereg.evidence.model import Outcome
from pytest_prereg.measure.executors import caches, scratch, wire
from pytest_prereg.measure.executors.base import Job, Result
from pytest_prereg.measure.executors.messages import Ready, Setup
from pytest_prereg.measure.executors.text import file_tail

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BOOTSTRAP = (
    "import sys; sys.path.append({root!r}); "
    "from pytest_prereg.measure.executors.forkserver import main; main({descriptor}, {folder!r})"
)
CLOSE_SECONDS = 1.6


class ForkServer:
    """A fork server that has been started and has not yet been closed."""

    def __init__(self, setup: Setup, *, cwd: Path, environ: Mapping[str, str], fresh: bool = False) -> None:
        self.folder = scratch.make()
        if fresh:
            environ = {**environ, **caches.fresh(self.folder)}
        self.log = self.folder / scratch.LOG
        self.alive = True
        self.importing = True
        self.setup = msgspec.structs.replace(setup, client=os.getpid())
        self.control, other = socket.socketpair()
        with other:
            self.process = self._spawn(other, cwd, environ)
        with contextlib.suppress(OSError):
            wire.send(self.control, self.setup)

    def _spawn(self, other: socket.socket, cwd: Path, environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
        # -P: else the folder it starts in, the study's, would come before the standard library.
        root = str(Path(pytest_prereg.__file__).parents[1])
        code = BOOTSTRAP.format(root=root, descriptor=other.fileno(), folder=str(self.folder))
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-P", "-c", code],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=cwd,
                env=dict(environ),
                pass_fds=(other.fileno(),),
                start_new_session=True,
            )

    def wait_until_ready(self, what: str) -> None:
        """Wait for the imports; raise ``MeasureError`` about the experiment ``what`` if they fail."""
        ready = wire.receive(self.control, Ready)
        self.importing = False
        if ready is None:
            self.alive = False
            raise MeasureError(_not_started(what, self._exit_status(), file_tail(self.log)))
        if ready.error is not None:
            self.alive = False
            raise MeasureError(_not_imported(what, ready))

    def run(self, job: Job, locks: Sequence[int] = ()) -> Result:
        """Run one job; if the server dies meanwhile, that is the result.

        ``locks`` are open files, whose locks last until nothing of the job runs any more, whoever dies first.
        """
        began = time.monotonic()
        result = self._ask(job, locks)
        if result is None:
            self.alive = False
            result = Result(outcome=Outcome.INFRASTRUCTURE, cause="server", error=self._epitaph())
        seconds = {**result.seconds, "total": time.monotonic() - began}
        return msgspec.structs.replace(result, seconds=seconds)

    def _ask(self, job: Job, locks: Sequence[int]) -> Result | None:
        try:
            wire.send_descriptors(self.control, locks)
            wire.send(self.control, job)
            return wire.receive(self.control, Result)
        except OSError:
            return None

    def hang_up(self) -> None:
        """Tell the server and whatever runs under it to stop, without waiting."""
        self.alive = False
        with contextlib.suppress(OSError):
            self.control.shutdown(socket.SHUT_WR)
        if self.importing:  # it listens to nothing else
            self.process.terminate()

    def close(self, deadline: float) -> None:
        """Wait until all have stopped, by the monotonic clock until ``deadline``, then kill the server."""
        self.hang_up()
        self._wait_for_end(deadline)
        try:
            self.process.wait(max(0.05, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.control.close()
        scratch.remove(self.folder)

    def _wait_for_end(self, deadline: float) -> None:
        """Wait for the end of the socket: server and supervisor hold the other end until they exit."""
        with contextlib.suppress(OSError):
            while (left := deadline - time.monotonic()) > 0:
                self.control.settimeout(left)
                if not self.control.recv(1 << 16):
                    return

    def _exit_status(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.process.wait(1)
        return None

    def _epitaph(self) -> str:
        return f"the fork server died (status {self._exit_status()})\n{file_tail(self.log)}".strip()


def _not_imported(what: str, ready: Ready) -> Problem:
    return Problem(
        code="PR130",
        message=f'experiment "{what}" could not be imported: {ready.error}',
        path=_relative(ready.file),
        line=ready.line,
        advice=ready.traceback,
    )


def _not_started(what: str, status: int | None, output: str) -> Problem:
    return Problem(
        code="PR131",
        message=f'the process that imports experiment "{what}" ended with status {status}',
        advice=output or None,
    )


def _relative(file: str | None) -> str | None:
    """Return a path as the user would type it here."""
    if file is None:
        return None
    path, here = Path(file), Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
