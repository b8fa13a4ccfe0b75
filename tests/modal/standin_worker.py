"""Requests that a container makes: for inputs, with outputs, and to say that it lives."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from grpclib import GRPCError, Status
from modal_proto import api_pb2 as api
from standin_containers import finish, hand_over

if TYPE_CHECKING:
    from standin_state import Cloud, Container, Input

HEARTBEAT = 10
IDLE = 5
"""Seconds that a container waits for an input where nothing else is asked for."""


class Worker:
    cloud: Cloud
    container: Container | None

    @property
    def _here(self) -> Container:
        if self.container is None:
            raise GRPCError(Status.PERMISSION_DENIED, "only a container may ask for that")
        return self.container

    async def container_hello(self, request: Any) -> None:
        return None

    async def container_heartbeat(self, request: Any) -> api.ContainerHeartbeatResponse:
        here = self._here
        try:
            await asyncio.wait_for(here.cancelled.wait(), HEARTBEAT)
        except TimeoutError:
            return api.ContainerHeartbeatResponse()
        here.cancelled.clear()
        cancelled = api.CancelInputEvent(input_ids=[here.current.id] if here.current else [])
        return api.ContainerHeartbeatResponse(cancel_input_event=cancelled)

    async def function_get_inputs(self, request: Any) -> api.FunctionGetInputsResponse:
        each = await self._next_input()
        if each is None:
            last = api.FunctionGetInputsItem(kill_switch=True)
            return api.FunctionGetInputsResponse(inputs=[last])
        await hand_over(self.cloud, self._here, each)
        item = api.FunctionGetInputsItem(
            input_id=each.id,
            input=each.payload,
            function_call_id=each.call.id,
            retry_count=each.retries,
            function_call_invocation_type=each.call.kind,
            function_map_idx=each.index,
        )
        return api.FunctionGetInputsResponse(inputs=[item])

    async def _next_input(self) -> Input | None:
        """None where the container is to end."""
        here, function = self._here, self._here.function
        asked = function.definition
        seconds = asked.autoscaler_settings.scaledown_window or asked.task_idle_timeout_secs or IDLE
        if function.single_use and here.served:
            here.stopping = True
        async with function.waiting:
            waiting = function.waiting.wait_for(lambda: function.pending or here.stopping)
            try:
                await asyncio.wait_for(waiting, seconds)
            except TimeoutError:
                here.stopping = True
            return None if here.stopping else function.pending.popleft()

    async def function_put_outputs(self, request: Any) -> None:
        for output in request.outputs:
            each = self.cloud.inputs[output.input_id]
            if each.container is not self._here:  # one that was preempted may still answer
                self.cloud.note("late_output", input=each.id, container=self._here.id)
                continue
            await finish(
                self.cloud,
                each,
                output.result,
                self._here,
                data_format=output.data_format,
                started=output.input_started_at,
                created=output.output_created_at,
            )

    async def task_result(self, request: Any) -> None:
        """The body could not even be imported."""
        here = self._here
        if here.current is None and here.function.pending:
            here.current = here.function.pending.popleft()
        if here.current is not None:
            await finish(self.cloud, here.current, request.result, here)
