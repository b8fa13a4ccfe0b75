"""What client and supervisor of a sandbox tell each other: a length, then msgpack.

Expected answers are no part of any message: what runs beside a program can't leak what it doesn't hold.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pytest_prereg.measure.workloads.sandbox.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WORKLOAD_VERSION = "1"

LENGTH = 4
"""Bytes in front of each message, that say how long it is."""


class End(StrEnum):
    """How one hidden test ended, as the supervisor saw it."""

    ANSWER = "answer"
    """There is an answer, right or wrong."""
    NO_ANSWER = "no answer"
    """It ended by itself, with status 0, without one."""
    REFUSED = "refused"
    """What the function returned is no plain data."""
    EXCEPTION = "exception"
    STATUS = "status"
    SIGNAL = "signal"
    DEADLINE = "deadline"
    CPU = "cpu"
    MEMORY = "memory"
    OUTPUT = "output"
    """Too much output, too long an answer, or too much on its disk."""
    LOST = "lost"
    """The sandbox ended, and not by the program's doing."""


class Setup(msgspec.Struct, frozen=True, kw_only=True, tag="setup"):
    """Client to supervisor, first of all."""

    limits: Limits
    workers: int
    warm: int
    isolation: str
    packages: tuple[Path, ...]
    client: int
    """Pid of the client's process, which nothing outlives."""


class Input(msgspec.Struct, frozen=True, array_like=True):
    """What a program is given in one hidden test."""

    is_call: bool
    """Whether the answer is what a function returns; else it is what is printed."""
    sent: bytes
    """Marshalled, as the driver takes it."""


class Work(msgspec.Struct, frozen=True, kw_only=True, tag="work"):
    """Client to supervisor: a program, and the input of each hidden test."""

    number: int
    program: bytes
    """Marshalled source."""
    inputs: tuple[Input, ...]


class Opened(msgspec.Struct, frozen=True, kw_only=True, tag="opened"):
    """Supervisor to client, once: sandboxes can be made, or why not."""

    isolation: str = ""
    missing: tuple[str, ...] = ()
    error: str = ""


class Created(msgspec.Struct, frozen=True, kw_only=True, tag="created"):
    """Supervisor to client: one more sandbox is ready."""

    began: float
    """By the monotonic clock, which all processes of a machine share."""
    ready: float


class TestEnd(msgspec.Struct, frozen=True, kw_only=True):
    """One hidden test."""

    __test__ = False

    end: End
    text: bytes = b""
    """The answer, or the evidence of how it ended without one; as the program wrote it, so not printable."""
    seconds: float = 0.0


class Done(msgspec.Struct, frozen=True, kw_only=True, tag="done"):
    """Supervisor to client: nothing is left of the sandbox that took a program."""

    number: int
    tests: tuple[TestEnd, ...]
    evidence: str
    """What ended the sandbox."""
    taken: float
    """When a ready sandbox was handed the program, by the monotonic clock."""
    seconds: float
    creation: float
    peak_memory: int


ToSupervisor = Setup | Work
ToClient = Opened | Created | Done


def encode(message: ToSupervisor | ToClient) -> bytes:
    """Return ``message`` as it is sent."""
    body = msgspec.msgpack.encode(message, enc_hook=str)
    return len(body).to_bytes(LENGTH, "big") + body


class Stream:
    """Cuts the bytes of one direction into messages as they come in."""

    def __init__(self, kind: object) -> None:
        self._decoder = msgspec.msgpack.Decoder(kind, dec_hook=_path)
        self._bytes = bytearray()

    def feed(self, data: bytes) -> Iterator[Any]:
        """Yield the messages that these bytes complete."""
        self._bytes += data
        while len(self._bytes) >= LENGTH:
            end = LENGTH + int.from_bytes(self._bytes[:LENGTH], "big")
            if len(self._bytes) < end:
                return
            body = bytes(self._bytes[LENGTH:end])
            del self._bytes[:end]
            yield self._decoder.decode(body)


def _path(kind: Callable[[str], Any], value: str) -> Any:
    return kind(value)
