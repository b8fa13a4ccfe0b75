"""Requests about functions: what they are and what they ask for."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from grpclib import GRPCError, Status
from modal_proto import api_pb2 as api
from standin_state import Function

if TYPE_CHECKING:
    from standin_state import Cloud


def ranked(definition: api.Function) -> api.FunctionData:
    """A plain function in the form that offers a choice: fields of the same name, and itself as the only rank."""
    first = api.FunctionData.RankedFunction(rank=0, function=definition)
    data = api.FunctionData(ranked_functions=[first])
    shared = {each.name for each in data.DESCRIPTOR.fields} - {"ranked_functions"}
    for each, value in definition.ListFields():
        if each.name in shared and each.message_type is None:
            with contextlib.suppress(AttributeError, TypeError):  # a repeated one can't be set
                setattr(data, each.name, value)
    return data


class Functions:
    cloud: Cloud

    async def function_precreate(self, request: Any) -> api.FunctionPrecreateResponse:
        function_id = request.existing_function_id or self.cloud.new_id("fu")
        handle = api.FunctionHandleMetadata(
            function_name=request.function_name,
            function_type=request.function_type,
            function_schema=request.function_schema,
            definition_id=f"de-{function_id}",
            app_id=request.app_id,
            supported_input_formats=request.supported_input_formats,
            supported_output_formats=request.supported_output_formats,
        )
        function = Function(function_id, request.app_id, request.function_name, handle)
        self.cloud.functions[function_id] = function
        return api.FunctionPrecreateResponse(function_id=function_id, handle_metadata=handle)

    async def function_create(self, request: Any) -> api.FunctionCreateResponse:
        function, chosen = (
            self.cloud.functions[request.existing_function_id],
            request.HasField("function_data"),
        )
        # gpu=["L4", "A10"]: the first choice is always there
        first = request.function_data.ranked_functions[0].function if chosen else request.function
        function.definition = first
        self._note("function", function)
        data = request.function_data if chosen else ranked(first)
        return api.FunctionCreateResponse(
            function_id=function.id, handle_metadata=function.handle, function_data=data
        )

    def _note(self, event: str, function: Function) -> None:
        asked, place = function.definition.resources, function.definition.scheduler_placement
        self.cloud.note(
            event,
            function=function.name,
            app=function.app_id,
            image=function.definition.image_id,
            gpu=function.gpu,
            gpus=asked.gpu_config.count,
            milli_cpu=asked.milli_cpu,
            memory_mb=asked.memory_mb,
            single_use=function.single_use,
            timeout=function.definition.timeout_secs,
            retries=function.definition.retry_policy.retries,
            most_containers=function.definition.autoscaler_settings.max_containers,
            regions=list(place.regions),
            secrets=list(function.definition.secret_ids),
            volumes={each.mount_path: each.volume_id for each in function.definition.volume_mounts},
            nonpreemptible=place.nonpreemptible,
        )

    async def function_get(self, request: Any) -> api.FunctionGetResponse:
        app = self.cloud.deployed(request.app_name)
        if app is None or request.object_tag not in app.functions:
            text = f"No function {request.object_tag!r} in app {request.app_name!r}"
            raise GRPCError(Status.NOT_FOUND, text)
        function = self.cloud.functions[app.functions[request.object_tag]]
        return api.FunctionGetResponse(
            function_id=function.id, handle_metadata=function.handle, function=ranked(function.definition)
        )

    async def function_bind_params(self, request: Any) -> api.FunctionBindParamsResponse:
        """A variant of a published function, as ``with_options`` asks for it."""
        base, options = self.cloud.functions[request.function_id], request.function_options
        definition = api.Function()
        definition.CopyFrom(base.definition)
        if options.HasField("resources"):
            definition.resources.MergeFrom(options.resources)
        if options.HasField("timeout_secs"):
            definition.timeout_secs = options.timeout_secs
        if options.HasField("retry_policy"):
            definition.retry_policy.CopyFrom(options.retry_policy)
        if options.HasField("concurrency_limit"):
            definition.autoscaler_settings.max_containers = options.concurrency_limit
        definition.secret_ids.extend(options.secret_ids)
        variant = Function(self.cloud.new_id("fu"), base.app_id, base.name, base.handle, definition)
        self.cloud.functions[variant.id] = variant
        self._note("variant", variant)
        return api.FunctionBindParamsResponse(bound_function_id=variant.id, handle_metadata=base.handle)

    async def function_get_current_stats(self, request: Any) -> api.FunctionStats:
        function = self.cloud.functions[request.function_id]
        running = sum(each.current is not None for each in function.containers)
        return api.FunctionStats(
            backlog=len(function.pending),
            num_total_tasks=len(function.containers),
            num_running_inputs=running,
        )
