"""What attacks on this machine would reach if they got out, and what is left of them, seen without their sandbox."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

from naive_host import FOR_ALL, LOOT, SECRETS

if TYPE_CHECKING:
    from collections.abc import Iterator

_SET_CHILD_SUBREAPER = 36
_SETTLES = 5.0
"""Seconds that the kernel may take to be rid of what was killed."""


class Listener:
    """Tells a secret to all who connect, over TCP on loopback and under an abstract name, and counts them."""

    def __init__(self, secret: str) -> None:
        self.secret = secret.encode()
        self.connections = 0
        self.abstract = f"\0prereg-{uuid4().hex}"
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        by_name = socket.socket(socket.AF_UNIX)
        by_name.bind(self.abstract)
        by_name.listen()
        self._open = [socket.create_server(("127.0.0.1", 0)), by_name]
        for each in self._open:
            each.settimeout(0.1)
            self._threads.append(threading.Thread(target=self._serve, args=(each,), daemon=True))
            self._threads[-1].start()
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._open:
            each.close()
        for thread in self._threads:
            thread.join()

    @property
    def port(self) -> int:
        return int(self._open[0].getsockname()[1])

    def _serve(self, listening: socket.socket) -> None:
        while listening.fileno() >= 0:
            with contextlib.suppress(OSError):
                line, _ = listening.accept()
                self.connections += 1
                with line:
                    line.sendall(self.secret)


@dataclass
class Host:
    """A folder of files that anybody may change, a process that nobody should end, secrets everywhere."""

    folder: Path
    secret: str
    listener: Listener
    bystander: subprocess.Popen[bytes] = field(init=False)

    @property
    def places(self) -> dict[str, Any]:
        """What attacks are told."""
        return places(str(self.folder), self.listener)

    @contextlib.contextmanager
    def open(self) -> Iterator[Host]:
        self.folder.chmod(0o755)
        for name, text in self._files().items():
            (self.folder / name).write_text(text, encoding="utf-8")
            (self.folder / name).chmod(0o666)
        # A secret on a command line, in a process that is to outlive all attacks.
        command = [sys.executable, "-c", "import time; time.sleep(3600)", f"--token={self.secret}"]
        self.bystander = subprocess.Popen(command)
        try:
            yield self
        finally:
            self.bystander.kill()
            self.bystander.wait()

    def _files(self) -> dict[str, str]:
        return {LOOT: "", FOR_ALL: "kept\n", SECRETS: f"token = {self.secret}\n"}

    def harm(self) -> list[str]:
        """Returns what is no longer as it was."""
        found = [
            f"{name} is {text!r}"
            for name, kept in self._files().items()
            if (text := (self.folder / name).read_text("utf-8")) != kept
        ]
        names = {path.name for path in self.folder.iterdir()}
        found += [f"{name} is new" for name in names - self._files().keys()]
        if self.bystander.poll() is not None:
            found.append(f"the bystander ended with {self.bystander.poll()}")
        if self.listener.connections:
            found.append(f"{self.listener.connections} connections were made")
        return found


def places(home: str, listener: Listener) -> dict[str, Any]:
    return {
        "HOME": home,
        "LOOT": f"{home}/{LOOT}",
        "HOST_FILE": f"{home}/{FOR_ALL}",
        "SECRET_FILE": f"{home}/{SECRETS}",
        "PORT": listener.port,
        "ABSTRACT": listener.abstract,
    }


@dataclass(frozen=True)
class Traces:
    """What processes leave on a machine."""

    processes: frozenset[str]
    """Below this one, those that have been orphaned included."""
    mounts: frozenset[str]
    descriptors: frozenset[str]
    segments: frozenset[str]
    """Of System V."""
    temporary: frozenset[str]
    """In the folder for temporary files."""

    @classmethod
    def now(cls, temporary: Path) -> Traces:
        return cls(
            processes=frozenset(_below(os.getpid())),
            mounts=frozenset(_lines("/proc/self/mountinfo")),
            descriptors=frozenset(_descriptors()),
            segments=frozenset(_segments()),
            temporary=frozenset(str(path) for path in temporary.rglob("*")),
        )

    def since(self, before: Traces) -> list[str]:
        """Returns what is new."""
        names = ("processes", "mounts", "descriptors", "segments", "temporary")
        return [f"{name}: {each}" for name in names for each in getattr(self, name) - getattr(before, name)]


def left(before: Traces, temporary: Path) -> list[str]:
    """Returns what is left, once the kernel has had the time to be rid of what was killed."""
    deadline = time.monotonic() + _SETTLES
    while (found := Traces.now(temporary).since(before)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


@contextlib.contextmanager
def adopting_orphans() -> Iterator[None]:
    """Lets orphans below this process become its children, so that they are found."""
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    try:
        yield
    finally:
        assert libc.prctl(_SET_CHILD_SUBREAPER, 0, 0, 0, 0) == 0


def _processes() -> dict[int, tuple[int, str]]:
    """Returns parent and name of each process, zombies included."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                text = (folder / "status").read_text("utf-8", "replace")
                keys = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
                found[int(folder.name)] = (int(keys["PPid"]), keys["Name"])
    return found


def _below(root: int) -> list[str]:
    every, found, family = _processes(), [], {root}
    while more := {pid for pid, (parent, _) in every.items() if parent in family} - family:
        family |= more
        found += [f"{pid} {every[pid][1]}" for pid in more]
    return found


def _descriptors() -> list[str]:
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found.append(f"{entry.name} {re.sub(r'[0-9]+', 'N', str(entry.readlink()))}")
    return found


def _segments() -> list[str]:
    tables = ("/proc/sysvipc/shm", "/proc/sysvipc/sem", "/proc/sysvipc/msg")
    listed = [line for table in tables for line in _lines(table)[1:]]
    # Columns that change while others use what was there before don't count.
    return [" ".join(line.split()[:2]) for line in listed]


def _lines(path: str) -> list[str]:
    return Path(path).read_text("utf-8", "replace").splitlines()
