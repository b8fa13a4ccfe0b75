"""Requests about sandboxes; the client asks in the older way as soon as a GPU is wanted."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING, Any

from grpclib import GRPCError, Status
from modal_proto import api_pb2 as api
from standin_apps import token
from standin_boxes import create_box, environment_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from standin_state import Box, Cloud


class Sandboxes:
    cloud: Cloud

    async def sandbox_create_v2(self, request: Any) -> api.SandboxCreateV2Response:
        box_id, container_id = f"sb-{os.urandom(13).hex()}", f"{self.cloud.new_id('ta')}V"
        environment = environment_of(self.cloud, request.secret_sources)
        await create_box(self.cloud, request, environment, box_id, container_id)
        access = api.CommandRouterAccess(url=self.cloud.url, jwt=token(task=container_id))
        return api.SandboxCreateV2Response(
            sandbox_id=box_id,
            task_id=container_id,
            metadata=api.SandboxHandleMetadata(app_id=request.app_id),
            command_router_access=access,
        )

    async def sandbox_create(self, request: Any) -> api.SandboxCreateResponse:
        box_id, container_id = f"sb-{os.urandom(11).hex()}", self.cloud.new_id("ta")
        secrets = [self.cloud.secrets[each] for each in request.definition.secret_ids]
        environment = {name: value for secret in secrets for name, value in secret.items()}
        await create_box(self.cloud, request, environment, box_id, container_id)
        about = api.SandboxHandleMetadata(app_id=request.app_id)
        return api.SandboxCreateResponse(sandbox_id=box_id, metadata=about)

    def _box(self, name: str) -> Box:
        if name not in self.cloud.boxes:
            raise GRPCError(Status.NOT_FOUND, f"No sandbox {name!r}")
        return self.cloud.boxes[name]

    async def sandbox_get_task_id_v2(self, request: Any) -> api.SandboxGetTaskIdResponse:
        return api.SandboxGetTaskIdResponse(task_id=self._box(request.sandbox_id).container_id)

    async def sandbox_get_command_router_access(
        self, request: Any
    ) -> api.SandboxGetCommandRouterAccessResponse:
        box = self._box(request.sandbox_id or request.task_id)
        return api.SandboxGetCommandRouterAccessResponse(url=self.cloud.url, jwt=token(task=box.container_id))

    async def task_get_command_router_access(self, request: Any) -> api.TaskGetCommandRouterAccessResponse:
        return api.TaskGetCommandRouterAccessResponse(url=self.cloud.url, jwt=token(task=request.task_id))

    async def sandbox_wait_v2(self, request: Any) -> api.SandboxWaitResponse:
        box = self._box(request.sandbox_id)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(box.finished.wait(), request.timeout)
        if not box.finished.is_set():  # a wait of no time at all sees nothing
            return api.SandboxWaitResponse()
        return api.SandboxWaitResponse(result=box.result)

    async def sandbox_terminate_v2(self, request: Any) -> api.SandboxTerminateResponse:
        box = self._box(request.sandbox_id)
        box.stop()
        await box.finished.wait()
        return api.SandboxTerminateResponse(existing_result=box.result)

    sandbox_get_task_id = sandbox_get_task_id_v2
    sandbox_wait = sandbox_wait_v2
    sandbox_terminate = sandbox_terminate_v2

    async def sandbox_get_logs(self, request: Any) -> AsyncIterator[api.TaskLogsBatch]:
        channel, process = request.file_descriptor, self._box(request.sandbox_id).process
        async for at, piece in process.follow(channel, int(request.last_entry_id or 0)):
            item = api.TaskLogs(data=piece.decode(errors="replace"), file_descriptor=channel)
            yield api.TaskLogsBatch(entry_id=str(at + len(piece)), items=[item])
        yield api.TaskLogsBatch(eof=True)
