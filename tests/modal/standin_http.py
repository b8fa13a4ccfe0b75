"""The blob store, and what tests ask of the stand-in itself: what happened, and what is to go wrong."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from aiohttp import web
from standin_containers import befall
from standin_faults import Rate, RequestFault, Strike

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from standin import StandIn
    from standin_state import Container

Answer = dict[str, Any] | None


def http_app(standin: StandIn) -> web.Application:
    app = web.Application(client_max_size=1 << 30)
    blobs, admin = Blobs(standin), Admin(standin)
    for place in ("/blob/{id}", "/inside/{id}"):
        app.add_routes([web.put(place, blobs.put), web.get(place, blobs.get)])
    app.add_routes(
        [web.get("/state", admin.state), web.get("/log/{id}", admin.log), web.post("/{what}", admin.act)]
    )
    return app


class Blobs:
    def __init__(self, standin: StandIn) -> None:
        self.standin = standin

    def _reach(self, request: web.Request) -> None:
        if request.path.startswith("/blob/") and self.standin.listener.gone and request.transport:
            request.transport.abort()
            raise web.HTTPServiceUnavailable

    async def put(self, request: web.Request) -> web.Response:
        self._reach(request)
        data = self.standin.cloud.blobs[request.match_info["id"]] = await request.read()
        digest = hashlib.md5(data, usedforsecurity=False).hexdigest()
        return web.Response(headers={"ETag": digest})

    async def get(self, request: web.Request) -> web.Response:
        self._reach(request)
        blobs, name = self.standin.cloud.blobs, request.match_info["id"]
        return web.Response(body=blobs[name]) if name in blobs else web.Response(status=404)


class Admin:
    """``POST /WHAT`` with a JSON object: the arguments of the method of that name."""

    def __init__(self, standin: StandIn) -> None:
        self.standin = standin
        self.actions: dict[str, Callable[..., Awaitable[Answer]]] = {
            name: getattr(self, f"do_{name}") for name in ACTIONS
        }

    async def act(self, request: web.Request) -> web.Response:
        name = request.match_info["what"]
        if name not in self.actions:
            return web.Response(status=404, text=f"no {name!r}; there are {', '.join(ACTIONS)}")
        arguments = await request.json() if request.can_read_body else {}
        try:
            return web.json_response(await self.actions[name](**arguments))
        except (TypeError, ValueError) as problem:
            return web.Response(status=400, text=str(problem))

    async def state(self, request: web.Request) -> web.Response:
        cloud = self.standin.cloud
        live = {each.id: each.pid for function in cloud.functions.values() for each in function.containers}
        boxes = {each.id: each.process.pid for each in cloud.boxes.values() if not each.finished.is_set()}
        apps = {
            each.id: {"name": each.name, "tags": each.tags, "stopped": each.stopped}
            for each in cloud.apps.values()
        }
        return web.json_response(
            {
                "events": cloud.events,
                "requests": cloud.requests,
                "missing": cloud.missing,
                "containers": live,
                "sandboxes": boxes,
                "apps": apps,
            }
        )

    async def log(self, request: web.Request) -> web.Response:
        return web.json_response(_log_of(self.standin.cloud.containers[request.match_info["id"]]))

    async def do_reset(self) -> Answer:
        await self.standin.reset()
        return None

    async def do_fail(self, **fault: Any) -> Answer:
        self.standin.cloud.faults.requests.append(RequestFault(**fault))
        return None

    async def do_limit(self, **rate: Any) -> Answer:
        made = Rate(**rate)
        self.standin.cloud.faults.rates[made.rpc] = made
        return None

    async def do_plan(self, times: int = 1, **strike: Any) -> Answer:
        """For the next inputs that begin."""
        self.standin.cloud.faults.strikes.extend(Strike(**strike) for _ in range(times))
        return None

    async def do_strike(self, container: str = "", **strike: Any) -> Answer:
        """Now: that container, or all that have an input."""
        cloud = self.standin.cloud
        functions = cloud.functions.values()
        busy = [each for function in functions for each in function.containers if each.current]
        struck = [each for each in busy if container in ("", each.id)]
        for each in struck:
            cloud.later(befall(cloud, each, Strike(**strike)))
        return {"containers": [each.id for each in struck]}

    async def do_set(self, **values: Any) -> Answer:
        """What there is and what it does: see ``SETTINGS``."""
        for name, value in values.items():
            if name not in SETTINGS:
                raise ValueError(f"no setting {name!r}; there are {', '.join(SETTINGS)}")
            owner = self.standin.cloud if name in OF_THE_CLOUD else self.standin.cloud.faults
            setattr(owner, name, value)
        return None

    async def do_secret(self, name: str, values: dict[str, str]) -> Answer:
        self.standin.cloud.secrets[name] = values
        return None

    async def do_volume(self, name: str) -> Answer:
        self.standin.cloud.volumes[name] = self.standin.cloud.new_id("vo")
        return None

    async def do_forget(self, call: str) -> Answer:
        """As the service forgets calls after some days."""
        self.standin.cloud.calls.pop(call, None)
        return None

    async def do_leave(self, seconds: float | None = None) -> Answer:
        """Gone, for that long or for good."""
        self.standin.cloud.note("gone", seconds=seconds)
        await self.standin.listener.close(self.standin.cloud, seconds)
        return None

    async def do_return(self) -> Answer:
        await self.standin.listener.come_back(self.standin.cloud)
        return None


ACTIONS = tuple(name.removeprefix("do_") for name in vars(Admin) if name.startswith("do_"))
OF_THE_CLOUD = ("rates", "region", "provider", "most_containers", "dead_client_after")
SETTINGS = (*OF_THE_CLOUD, "crashes", "queue_seconds", "python", "lacking", "image_failures")


def _log_of(container: Container) -> str:
    """What it wrote, to standard output and then to standard error."""
    if container.process is None:
        return ""
    return b"".join(container.process.output.values()).decode(errors="replace")
