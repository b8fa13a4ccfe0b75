"""Requests that go to a sandbox itself: to execute something there, and to read and write what it does."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from grpclib import GRPCError, Status
from modal_proto import task_command_router_pb2 as router
from standin_boxes import environment_of
from standin_processes import Process

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from standin_state import Cloud

CHANNELS = {
    router.TASK_EXEC_STDIO_FILE_DESCRIPTOR_STDOUT: 1,
    router.TASK_EXEC_STDIO_FILE_DESCRIPTOR_STDERR: 2,
}
OWN_CHANNELS = {
    router.SANDBOX_STDIO_FILE_DESCRIPTOR_STDOUT: 1,
    router.SANDBOX_STDIO_FILE_DESCRIPTOR_STDERR: 2,
}


async def _feed(process: Process, request: Any) -> None:
    with contextlib.suppress(ConnectionError):  # it doesn't read any more
        await process.feed(request.data, end=request.eof)


class Router:
    cloud: Cloud

    def _executed(self, request: Any) -> Process:
        box = self.cloud.boxes[request.task_id]
        if request.exec_id not in box.executed:
            raise GRPCError(Status.NOT_FOUND, f"No exec {request.exec_id!r}")
        return box.executed[request.exec_id]

    async def task_exec_start(self, request: Any) -> None:
        box = self.cloud.boxes.get(request.task_id)
        if box is None or box.finished.is_set():
            raise GRPCError(Status.NOT_FOUND, "Sandbox has already shut down")
        if request.exec_id in box.executed:  # the client asks again with the same id
            return
        environment = {**box.environment, **environment_of(self.cloud, request.secret_sources)}
        folder = request.workdir or box.folder
        process = await Process.start(list(request.command_args), folder, environment)
        box.executed[request.exec_id] = process
        self.cloud.note("executed", sandbox=box.id, pid=process.pid, command=list(request.command_args))
        if request.HasField("timeout_secs"):
            asyncio.get_running_loop().call_later(request.timeout_secs, process.kill)

    async def task_exec_stdio_read(self, request: Any) -> AsyncIterator[Any]:
        channel = CHANNELS[request.file_descriptor]
        async for _, piece in self._executed(request).follow(channel, request.offset):
            yield router.TaskExecStdioReadResponse(data=piece)

    async def task_exec_wait(self, request: Any) -> Any:
        code = await self._executed(request).exited()
        return (
            router.TaskExecWaitResponse(code=code) if code >= 0 else router.TaskExecWaitResponse(signal=-code)
        )

    async def task_exec_poll(self, request: Any) -> Any:
        code = self._executed(request).code
        if code is None:
            return router.TaskExecPollResponse()
        return (
            router.TaskExecPollResponse(code=code) if code >= 0 else router.TaskExecPollResponse(signal=-code)
        )

    async def task_exec_stdin_write(self, request: Any) -> None:
        await _feed(self._executed(request), request)

    async def sandbox_stdin_write_v2(self, request: Any) -> None:
        await _feed(self.cloud.boxes[request.task_id].process, request)

    async def sandbox_stdio_read_v2(self, request: Any) -> AsyncIterator[Any]:
        channel, process = OWN_CHANNELS[request.file_descriptor], self.cloud.boxes[request.task_id].process
        async for offset, piece in process.follow(channel, request.offset):
            yield router.SandboxStdioReadV2Response(data=piece, starting_offset=offset)
