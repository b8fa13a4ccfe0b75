"""Servers that repeats talk to: each repeat gets one of its own, which ends with it."""

from __future__ import annotations

import os
import signal
import socket
import time
import warnings
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from pytest_prereg.measure.executors import memory, processes
from pytest_prereg.measure.executors.base import Service
from pytest_prereg.measure.executors.classify import signal_name
from pytest_prereg.measure.executors.ports import free_port, is_free
from pytest_prereg.measure.executors.text import file_tail
from pytest_prereg.registry.durations import parse_duration
from pytest_prereg.registry.placeholders import PORT, fill, filled, placeholders

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from typing import Any

    from pytest_prereg.registry.model import Experiment

HOST = "localhost"
ADDRESS = "http://"
PORT_ATTEMPTS = 5
"""How often a service is started anew, each time on another port, because its port turned out to be taken."""
PROBE_SECONDS = 0.5
"""How long one question whether it is ready may take."""
SHORTEST_WAIT = 0.01
LONGEST_WAIT = 0.2
PATIENCE = 1 / 20
"""Between two questions passes so much of the time that it has been starting."""
SERVER_ERROR = 500


def service_of(experiment: Experiment) -> Service | None:
    """Return the server that each repeat of an experiment needs, or ``None``."""
    table = experiment.table.service
    if table is None:
        return None
    return Service(command=table.command, ready=table.ready, seconds=parse_duration(table.timeout))


def modules_for(experiment: Experiment) -> list[str]:
    """Return the modules that starting a service takes, and asking it whether it is ready."""
    service = experiment.table.service
    if service is None:
        return []
    return ["subprocess", *(["http.client"] if (service.ready or "").startswith(ADDRESS) else [])]


class Unserved(NamedTuple):
    """Why a repeat has no server: what became of it, and the end of its output."""

    what: str
    output: str

    def __str__(self) -> str:
        return f"{self.what}\n{self.output}".strip()


class Serving:
    """A service from its start to its end; whoever starts it is the subreaper that kills what it leaves."""

    def __init__(self, service: Service, params: Mapping[str, Any], log: Path) -> None:
        self.service = service
        self.params = params
        self.log = log
        self.names_port = any(PORT in placeholders(argument) for argument in service.command)
        self.port: int | None = None
        self.seconds = 0.0
        """From its start until it was ready."""
        self.oom_kills = memory.oom_kills()
        self._process: subprocess.Popen[bytes] | None = None
        self._ready: Callable[[], bool] = bool

    def start(self, wait: Callable[[float], bool]) -> Unserved | None:
        """Start it and return once it is ready: ``None``, or why it never will be.

        ``wait`` sleeps for at most so many seconds and says whether to give up; then this returns ``None``.
        """
        began = time.monotonic()
        for _ in range(PORT_ATTEMPTS):
            fault = self._start_once(wait)
            if fault is None or not self._lost_its_port():
                break
        self.seconds = time.monotonic() - began
        return fault

    def pids(self) -> set[int]:
        """Return the pids of the service and of all that descends from it."""
        return {self._process.pid, *processes.descendants(self._process.pid)} if self._process else set()

    def death(self) -> Unserved | None:
        """Return how it ended, ``None`` while it runs."""
        status = None if self._process is None else self._process.poll()
        if status is None:
            return None
        return self._unserved(f"ended {self._described(status)}")

    def _lost_its_port(self) -> bool:
        """Return whether it ended while somebody else has its port."""
        ended = self._process is not None and self._process.poll() is not None
        return ended and self.port is not None and not is_free(self.port)

    def _start_once(self, wait: Callable[[float], bool]) -> Unserved | None:
        self._process = None
        self.log.unlink(missing_ok=True)
        self.port = free_port() if self.names_port else None
        values = {**self.params, PORT: self.port}
        command = filled(self.service.command, values)
        try:
            self._process = _spawn(command, self.service, self.log)
        except (OSError, ValueError) as error:
            return Unserved(f"the service could not be started: {error}", " ".join(command))
        self._ready = self._question(values)
        return self._wait_until_ready(wait)

    def _question(self, values: Mapping[str, Any]) -> Callable[[], bool]:
        """Return what says whether it is ready."""
        if self.service.ready in (None, "tcp"):
            return lambda: _accepts(self.port)
        text = fill(self.service.ready or "", values)
        if text.startswith(ADDRESS):
            return lambda: _answers(text)
        return OutputSearch(self.log, text).found

    def _wait_until_ready(self, wait: Callable[[float], bool]) -> Unserved | None:
        began = time.monotonic()
        while True:
            ready = self._ready()
            if (fault := self.death()) is not None:  # somebody else may have answered
                return fault
            passed = time.monotonic() - began
            if ready:
                return None
            if passed > self.service.seconds:
                return self._unserved(f"was not ready within {self.service.seconds:g} s")
            if wait(min(max(SHORTEST_WAIT, passed * PATIENCE), LONGEST_WAIT)):
                return None

    def _unserved(self, what: str) -> Unserved:
        return Unserved(f"the service {what}", file_tail(self.log))

    def _described(self, status: int) -> str:
        if status >= 0:
            return f"with status {status}"
        if -status == signal.SIGKILL and memory.oom_kills() > self.oom_kills:
            return "because the kernel was out of memory"
        return f"by {signal_name(-status)}"


class OutputSearch:
    """Looks for a text in output that grows, and may be cut back meanwhile."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.wanted = text.encode("utf-8", "surrogateescape")
        self.place = 0

    def found(self) -> bool:
        """Return whether the text has come since the last look."""
        with self.path.open("rb") as file:
            if os.fstat(file.fileno()).st_size < self.place:
                self.place = 0
            file.seek(max(0, self.place - len(self.wanted) + 1))
            data = file.read()
            self.place = file.tell()
        return self.wanted in data


def _spawn(command: list[str], service: Service, log: Path) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own, to die with this process."""
    import subprocess  # noqa: PLC0415 - it and its threads would make every fork of a server dearer

    parent = os.getpid()

    def settle() -> None:
        processes.die_with_parent(parent)
        memory.prefer_as_victim()

    with log.open("ab") as output, warnings.catch_warnings():
        # Like every fork here: what threads there are stop around it by themselves.
        warnings.simplefilter("ignore", DeprecationWarning)
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=service.folder,
            env={**os.environ, **service.env},
            start_new_session=True,
            preexec_fn=settle,  # noqa: PLW1509
        )


def _accepts(port: int | None) -> bool:
    try:
        socket.create_connection((HOST, port or 0), PROBE_SECONDS).close()
    except OSError:
        return False
    return True


def _answers(address: str) -> bool:
    """Return whether an ``http://`` address answers at all, and not by saying that the server is at fault."""
    import http.client  # noqa: PLC0415 - as large as all else here, and for a service with an address alone

    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.netloc, timeout=PROBE_SECONDS)
    try:
        connection.request("GET", f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}")
        return connection.getresponse().status < SERVER_ERROR
    except (OSError, http.client.HTTPException, ValueError):
        return False
    finally:
        connection.close()
