"""Requests about calls: their inputs, their outputs, and their end before that."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from grpclib import GRPCError, Status
from modal_proto import api_pb2 as api
from standin_containers import cancel, enqueue
from standin_state import Call, Input

if TYPE_CHECKING:
    from standin_state import Cloud


class Calls:
    cloud: Cloud

    async def function_map(self, request: Any) -> api.FunctionMapResponse:
        function = self.cloud.functions[request.function_id]
        if self.cloud.apps[function.app_id].stopped:
            raise GRPCError(Status.FAILED_PRECONDITION, "App is stopped")
        call = Call(self.cloud.new_id("fc"), function, request.function_call_invocation_type)
        self.cloud.calls[call.id] = call
        self.cloud.note("call", call=call.id, function=function.name, app=function.app_id)
        response = api.FunctionMapResponse(
            function_call_id=call.id,
            function_call_jwt=call.id,
            retry_policy=function.definition.retry_policy,
            sync_client_retries_enabled=True,
            max_inputs_outstanding=1000,
        )
        response.pipelined_inputs.extend([await self._put(call, each) for each in request.pipelined_inputs])
        return response

    async def _put(self, call: Call, item: Any) -> api.FunctionPutInputsResponseItem:
        each = Input(self.cloud.new_id("in"), call, item.idx, item.input)
        call.inputs.append(each)
        self.cloud.inputs[each.id] = each
        self.cloud.note("input", input=each.id, call=call.id)
        await enqueue(self.cloud, each)
        return api.FunctionPutInputsResponseItem(idx=item.idx, input_id=each.id, input_jwt=each.id)

    async def function_put_inputs(self, request: Any) -> api.FunctionPutInputsResponse:
        call = self.cloud.call(request.function_call_id)
        return api.FunctionPutInputsResponse(inputs=[await self._put(call, each) for each in request.inputs])

    async def function_finish_inputs(self, request: Any) -> None:
        return None

    async def function_retry_inputs(self, request: Any) -> api.FunctionRetryInputsResponse:
        for item in request.inputs:
            each = self.cloud.inputs[item.input_jwt]
            async with each.call.changed:
                if each in each.call.done:
                    each.call.done.remove(each)
            each.output, each.retries = None, item.retry_count or each.retries + 1
            await enqueue(self.cloud, each)
        return api.FunctionRetryInputsResponse(input_jwts=[each.input_jwt for each in request.inputs])

    async def function_get_outputs(self, request: Any) -> api.FunctionGetOutputsResponse:
        """``map`` reads on from a cursor, ``get`` asks for a range of indices."""
        call = self.cloud.call(request.function_call_id)
        cursor = int(request.last_entry_id.split("-")[0] or 0)

        def ready() -> list[Input]:
            if request.HasField("start_idx"):
                return [each for each in call.done if request.start_idx <= each.index <= request.end_idx]
            return call.done[cursor:]

        async with call.changed:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(call.changed.wait_for(ready), request.timeout)
            found = ready()
        return api.FunctionGetOutputsResponse(
            outputs=[each.output for each in found],
            idxs=[each.index for each in found],
            num_unfinished_inputs=sum(each.output is None for each in call.inputs),
            last_entry_id=f"{cursor + len(found)}-0",
        )

    async def function_call_from_id(self, request: Any) -> api.FunctionCallFromIdResponse:
        call = self.cloud.call(request.function_call_id)
        about = api.FunctionCallHandleMetadata(app_id=call.function.app_id, function_id=call.function.id)
        return api.FunctionCallFromIdResponse(
            function_call_id=call.id, num_inputs=len(call.inputs), metadata=about
        )

    async def function_get_call_graph(self, request: Any) -> api.FunctionGetCallGraphResponse:
        call = self.cloud.call(request.function_call_id)
        inputs = [
            api.InputCallGraphInfo(
                input_id=each.id,
                status=each.output.result.status if each.output else 0,
                function_call_id=call.id,
                task_id=each.container.id if each.container else "",
            )
            for each in call.inputs
        ]
        about = api.FunctionCallCallGraphInfo(function_call_id=call.id, function_name=call.function.name)
        return api.FunctionGetCallGraphResponse(inputs=inputs, function_calls=[about])

    async def function_call_cancel(self, request: Any) -> None:
        call = self.cloud.call(request.function_call_id)
        self.cloud.note("cancel", call=call.id, terminate=request.terminate_containers)
        for each in call.inputs:
            if each.output is None:
                await cancel(self.cloud, each, terminate=request.terminate_containers)
