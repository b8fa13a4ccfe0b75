"""Waiting for many descriptors at once, in one thread that nothing may hold up."""

from __future__ import annotations

import select
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

WORKLOAD_VERSION = "1"


class Reactor:
    """Calls back when descriptors can be read, or written to."""

    def __init__(self) -> None:
        self._poll = select.epoll()
        self._reading: dict[int, Callable[[], None]] = {}
        self._writing: dict[int, Callable[[], None]] = {}

    def watch(self, descriptor: int, call: Callable[[], None]) -> None:
        """Call ``call`` whenever there is something to read, or the end of it."""
        self._reading[descriptor] = call
        self._poll.register(descriptor, select.EPOLLIN)

    def watch_writing(self, descriptor: int, call: Callable[[], None] | None) -> None:
        """Call ``call`` whenever there is room in a descriptor that is watched, or no more if ``None``."""
        if descriptor not in self._reading or (call is None and descriptor not in self._writing):
            return
        if call is None:
            del self._writing[descriptor]
        else:
            self._writing[descriptor] = call
        self._poll.modify(descriptor, select.EPOLLIN | (select.EPOLLOUT if call else 0))

    def forget(self, descriptor: int) -> None:
        """Call no more; does nothing where nothing was watched."""
        self._writing.pop(descriptor, None)
        if self._reading.pop(descriptor, None) is not None:
            self._poll.unregister(descriptor)

    def turn(self, seconds: float) -> None:
        """Wait until something is ready, at most ``seconds``, and call for all that is."""
        for descriptor, events in self._poll.poll(max(0.0, seconds)):
            if events & ~select.EPOLLOUT and (call := self._reading.get(descriptor)) is not None:
                call()
            if events & select.EPOLLOUT and (call := self._writing.get(descriptor)) is not None:
                call()


class Outgoing:
    """Sends through a watched socket without ever waiting for the other side."""

    def __init__(self, channel: socket.socket, reactor: Reactor) -> None:
        self._channel, self._reactor = channel, reactor
        self._rest = bytearray()

    def send(self, data: bytes) -> None:
        """Send all of it, sooner or later; nothing once the other side is gone."""
        self._rest += data
        self._push()

    def _push(self) -> None:
        try:
            sent = self._channel.send(self._rest)
        except BlockingIOError:
            sent = 0
        except OSError:
            sent = len(self._rest)  # whoever reads this socket is told of its end
        del self._rest[:sent]
        self._reactor.watch_writing(self._channel.fileno(), self._push if self._rest else None)
