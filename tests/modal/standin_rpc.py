"""The services as gRPC has them: each request is a method of that name in snake case, met by faults before it is."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

from grpclib import GRPCError, Status
from grpclib.const import Cardinality, Handler
from modal_proto.api_grpc import ModalClientBase
from modal_proto.task_command_router_grpc import TaskCommandRouterBase
from standin_apps import Apps
from standin_calls import Calls
from standin_functions import Functions
from standin_objects import Objects
from standin_router import Router
from standin_sandboxes import Sandboxes
from standin_worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable

    from grpclib.server import Stream
    from standin_state import Cloud, Container


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


class Serving:
    """Answers the requests of ``service`` that it has methods for; all others are not implemented."""

    service: type[Any]

    def __init__(self, cloud: Cloud, container: Container | None = None) -> None:
        self.cloud, self.container = cloud, container

    def __mapping__(self) -> dict[str, Handler]:
        nothing = dict.fromkeys(self.service.__abstractmethods__)  # only to have its list of requests
        requests = type("Requests", (self.service,), nothing)().__mapping__()
        return {path: self._handler(path.rpartition("/")[2], each) for path, each in requests.items()}

    def _handler(self, name: str, like: Handler) -> Handler:
        return Handler(self._answering(name, like), like.cardinality, like.request_type, like.reply_type)

    def _answering(self, name: str, like: Handler) -> Callable:
        async def answer(stream: Stream) -> None:
            self.cloud.requests[name] += 1
            late = await self.cloud.faults.meet(name)
            method = getattr(self, snake_case(name), None)
            if method is None or like.cardinality in (Cardinality.STREAM_UNARY, Cardinality.STREAM_STREAM):
                self.cloud.missing[name] += 1
                raise GRPCError(Status.UNIMPLEMENTED, f"the stand-in has no {name}")
            request = await stream.recv_message()
            if like.cardinality is Cardinality.UNARY_STREAM:
                async for item in method(request):
                    await stream.send_message(item)
            else:
                reply = (await method(request)) or like.reply_type()
                await asyncio.sleep(late)
                await stream.send_message(reply)

        return answer


class ControlPlane(Serving, Apps, Objects, Functions, Calls, Worker, Sandboxes):
    """What clients ask; with a container, the same as seen from inside of it."""

    service = ModalClientBase


class CommandRouter(Serving, Router):
    service = TaskCommandRouterBase
