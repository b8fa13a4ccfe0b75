"""Where clients reach the service; it can be gone, for a while or for good, and keeps its port."""

from __future__ import annotations

import asyncio
import socket
import weakref
from typing import TYPE_CHECKING

from grpclib.server import Server
from standin_rpc import CommandRouter, ControlPlane

if TYPE_CHECKING:
    from grpclib.protocol import H2Protocol
    from standin_rpc import Serving
    from standin_state import Cloud


class DroppingServer(Server):
    """Remembers its connections, so that it can drop them as a machine that goes down does."""

    def __init__(self, handlers: list[Serving]) -> None:
        super().__init__(handlers)
        self.protocols: weakref.WeakSet[H2Protocol] = weakref.WeakSet()

    def _protocol_factory(self) -> H2Protocol:
        protocol = super()._protocol_factory()
        self.protocols.add(protocol)
        return protocol

    def drop(self) -> None:
        self.close()
        for protocol in list(self.protocols):
            transport = getattr(getattr(protocol, "connection", None), "_transport", None)
            if transport:  # it has none once it is closed
                transport.abort()


class Listener:
    """The port of the service. Two sockets have it, so that nobody else gets it while nobody listens."""

    def __init__(self, port: int) -> None:
        self.holding = _bound(port)
        self.port = self.holding.getsockname()[1]
        self.server: DroppingServer | None = None
        self._back: asyncio.Task[None] | None = None

    @property
    def gone(self) -> bool:
        return self.server is None

    async def open(self, cloud: Cloud) -> None:
        if self.server is None:
            self.server = DroppingServer([ControlPlane(cloud), CommandRouter(cloud)])
            await self.server.start(sock=_bound(self.port))

    async def close(self, cloud: Cloud, seconds: float | None = None) -> None:
        """Drops every connection and refuses new ones, for that long or for good; containers run on."""
        if self._back:
            self._back.cancel()
            self._back = None
        if self.server:
            self.server.drop()
            self.server = None
        if seconds is not None:
            self._back = asyncio.create_task(self._come_back_in(cloud, seconds))

    async def _come_back_in(self, cloud: Cloud, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self._back = None
        await self.come_back(cloud)

    async def come_back(self, cloud: Cloud) -> None:
        await self.open(cloud)
        cloud.note("back")


def _bound(port: int) -> socket.socket:
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    bound.bind(("127.0.0.1", port))
    return bound
