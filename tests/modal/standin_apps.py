"""Requests about the client, apps and the workspace."""

from __future__ import annotations

import base64
import json
import time
from typing import TYPE_CHECKING, Any

from modal_proto import api_pb2 as api
from standin_containers import stop_app
from standin_state import App

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from standin_state import Cloud


def token(**claims: object) -> str:
    """A JSON web token that nobody signed."""
    parts = ({"alg": "none"}, {"exp": time.time() + 3600, **claims})
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts]
    return ".".join([*encoded, "x"])


class Apps:
    cloud: Cloud

    async def client_hello(self, request: Any) -> api.ClientHelloResponse:
        return api.ClientHelloResponse()

    async def auth_token_get(self, request: Any) -> api.AuthTokenGetResponse:
        return api.AuthTokenGetResponse(token=token())

    async def environment_get_or_create(self, request: Any) -> api.EnvironmentGetOrCreateResponse:
        settings = api.EnvironmentSettings(image_builder_version="2025.06")
        about = api.EnvironmentMetadata(name=request.deployment_name or "main", settings=settings)
        return api.EnvironmentGetOrCreateResponse(environment_id="en-1", metadata=about)

    async def workspace_name_lookup(self, request: Any) -> api.WorkspaceNameLookupResponse:
        return api.WorkspaceNameLookupResponse(workspace_name="standin", username="tester")

    async def workspace_billing_rates(self, request: Any) -> api.WorkspaceBillingRatesResponse:
        return api.WorkspaceBillingRatesResponse(rates=self.cloud.rates)

    def _new_app(self, name: str, state: int, tags: Mapping[str, str]) -> App:
        app = App(self.cloud.new_id("ap"), name, state, dict(tags))
        self.cloud.apps[app.id] = app
        shown = api.AppState.Name(state).removeprefix("APP_STATE_").lower()
        self.cloud.note("app_created", app=app.id, name=name, state=shown, tags=app.tags)
        return app

    async def app_create(self, request: Any) -> api.AppCreateResponse:
        app = self._new_app(request.description, request.app_state, request.tags)
        return api.AppCreateResponse(app_id=app.id, app_page_url=f"{self.cloud.http}/apps/{app.id}")

    async def app_get_or_create(self, request: Any) -> api.AppGetOrCreateResponse:
        app = self.cloud.deployed(request.app_name) or self._new_app(
            request.app_name, api.APP_STATE_DEPLOYED, {}
        )
        return api.AppGetOrCreateResponse(app_id=app.id)

    async def app_get_by_deployment_name(self, request: Any) -> api.AppGetByDeploymentNameResponse:
        app = self.cloud.deployed(request.name)
        return api.AppGetByDeploymentNameResponse(app_id=app.id if app else "")

    async def app_get_layout(self, request: Any) -> api.AppGetLayoutResponse:
        ids = self.cloud.app(request.app_id).functions
        handles = [(each, self.cloud.functions[each].handle) for each in ids.values()]
        objects = [api.Object(object_id=each, function_handle_metadata=handle) for each, handle in handles]
        return api.AppGetLayoutResponse(app_layout=api.AppLayout(objects=objects, function_ids=ids))

    async def app_publish(self, request: Any) -> api.AppPublishResponse:
        app = self.cloud.app(request.app_id)
        app.state, app.functions = request.app_state or app.state, dict(request.function_ids)
        app.name = request.name or app.name
        app.tags.update(request.tags)
        return api.AppPublishResponse(url=f"{self.cloud.http}/apps/{app.id}", deployed_at=time.time())

    async def app_set_tags(self, request: Any) -> None:
        self.cloud.app(request.app_id).tags = dict(request.tags)
        self.cloud.note("tags", app=request.app_id, tags=dict(request.tags))

    async def app_get_tags(self, request: Any) -> api.AppGetTagsResponse:
        return api.AppGetTagsResponse(tags=self.cloud.app(request.app_id).tags)

    async def app_heartbeat(self, request: Any) -> None:
        self.cloud.app(request.app_id).last_beat = time.monotonic()

    async def app_client_disconnect(self, request: Any) -> None:
        app = self.cloud.app(request.app_id)
        reason = api.AppDisconnectReason.Name(request.reason).removeprefix("APP_DISCONNECT_REASON_").lower()
        self.cloud.note("client_left", app=app.id, reason=reason)
        if app.state == api.APP_STATE_EPHEMERAL:
            await stop_app(self.cloud, app, "client disconnected")

    async def app_stop(self, request: Any) -> None:
        await stop_app(self.cloud, self.cloud.app(request.app_id), "asked to")

    async def app_get_lifecycle(self, request: Any) -> api.AppGetLifecycleResponse:
        app = self.cloud.app(request.app_id)
        return api.AppGetLifecycleResponse(lifecycle=api.AppLifecycle(app_state=app.state))

    async def task_list(self, request: Any) -> api.TaskListResponse:
        containers = self.cloud.containers.values()
        live = [each for each in containers if each in each.function.containers]
        asked = [each for each in live if request.app_id in ("", each.function.app_id)]
        tasks = [api.TaskStats(task_id=each.id, app_id=each.function.app_id) for each in asked]
        return api.TaskListResponse(tasks=tasks)

    async def app_get_logs(self, request: Any) -> AsyncIterator[api.TaskLogsBatch]:
        app, at = self.cloud.app(request.app_id), int(request.last_entry_id or 0)
        while True:
            async with app.logs_changed:
                await app.logs_changed.wait_for(lambda at=at: len(app.logs) > at)
            batch = app.logs[at]
            at += 1
            yield api.TaskLogsBatch(
                entry_id=str(at), task_id=batch.task_id, items=batch.items, app_done=batch.app_done
            )
            if batch.app_done:
                return
