"""Messages between the processes of an executor: a length, then JSON."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

Message = TypeVar("Message")

LENGTH = 8
MOST_BYTES = 1 << 28
"""Of a message from a body: the samples of ten million readings, and less than would exhaust its reader."""
MOST_DESCRIPTORS = 250
"""The kernel takes 253 at once."""


class GarbledError(ValueError):
    """What a process sent is no message; the text says why."""


def encode(message: object) -> bytes:
    """Return ``message`` framed; what JSON has no form for is written as ``tolist()`` or ``repr()`` says."""
    body = msgspec.json.encode(message, enc_hook=_plain)
    return len(body).to_bytes(LENGTH, "big") + body


def send(channel: socket.socket, message: object) -> None:
    """Send a message; raise ``OSError`` if the other side is gone."""
    channel.sendall(encode(message))


def send_descriptors(channel: socket.socket, descriptors: Sequence[int]) -> None:
    """Send open files, which the other side then has open as well; raise ``OSError`` if it is gone."""
    if descriptors:
        socket.send_fds(channel, [b"+"], descriptors)
    else:
        channel.sendall(b"-")


def receive_descriptors(channel: socket.socket) -> list[int] | None:
    """Return the files that :func:`send_descriptors` sent, or ``None`` if the other side has gone.

    They are closed in programs that this process or its forks start.
    """
    try:
        data, descriptors, _, _ = socket.recv_fds(channel, 1, MOST_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC)
    except ConnectionError:
        return None
    return descriptors if data else None


def write(descriptor: int, framed: bytes) -> None:
    """Write an encoded message to a pipe, all of it."""
    rest = memoryview(framed)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def receive(channel: socket.socket, kind: type[Message]) -> Message | None:
    """Return the next message, or ``None`` if the other side has gone, even in the middle of one."""
    frames = Frames()
    while (body := frames.next()) is None:
        try:
            data = channel.recv(frames.wanted())
        except ConnectionError:
            return None
        if not data:
            return None
        frames.feed(data)
    return msgspec.json.decode(body, type=kind)


def decode(body: bytes, kind: Any) -> Any:
    """Return a message from a process that nobody vouches for; raise :class:`GarbledError` if it is none."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (ValueError, RecursionError, MemoryError) as error:
        raise GarbledError(str(error) or type(error).__name__) from None


class Frames:
    """Cuts a byte stream into messages as the bytes come in; none may be longer than ``most`` bytes."""

    def __init__(self, most: int | None = None) -> None:
        self._buffer = bytearray()
        self._most = most

    def feed(self, data: bytes) -> None:
        """Add bytes that arrived."""
        self._buffer += data

    def wanted(self) -> int:
        """Return how many bytes the message under way still needs, so that none of the next is taken."""
        if len(self._buffer) < LENGTH:
            return LENGTH - len(self._buffer)
        return LENGTH + int.from_bytes(self._buffer[:LENGTH], "big") - len(self._buffer)

    def next(self) -> bytes | None:
        """Return the oldest whole message, or ``None`` if there is none yet.

        Raises:
            GarbledError: It is too long, or its length is not one.
        """
        if len(self._buffer) < LENGTH:
            return None
        length = int.from_bytes(self._buffer[:LENGTH], "big")
        if self._most is not None and length > self._most:
            raise GarbledError(f"a message of {length} bytes, where {self._most} are the most")
        if self.wanted() > 0:
            return None
        end = LENGTH + length
        body = bytes(self._buffer[LENGTH:end])
        del self._buffer[:end]
        return body


def _plain(value: object) -> object:
    to_list = getattr(value, "tolist", None)
    return to_list() if callable(to_list) else repr(value)
