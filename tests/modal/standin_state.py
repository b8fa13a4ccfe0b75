"""What the stand-in knows: apps, functions, calls, containers, objects, and the record of all that happened."""

from __future__ import annotations

import asyncio
import collections
import itertools
import os
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grpclib import GRPCError, Status
from modal_proto import api_pb2 as api
from standin_faults import Faults

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from grpclib.server import Server
    from standin_processes import Process


KILLED = 137
MEMORY, AMPLE_BYTES = "/dev/shm", 4 << 30


@dataclass(eq=False)
class Input:
    """One call of a body, however often it has to be begun."""

    id: str
    call: Call
    index: int
    payload: api.FunctionInput
    retries: int = 0
    begun: int = 0
    """How often a container has had it."""
    lost: bool = False
    """Whatever a container answers never arrives."""
    output: api.FunctionGetOutputsItem | None = None
    container: Container | None = None
    started: float = 0.0


@dataclass(eq=False)
class Call:
    id: str
    function: Function
    kind: int
    inputs: list[Input] = field(default_factory=list)
    done: list[Input] = field(default_factory=list)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)


@dataclass(eq=False)
class Function:
    id: str
    app_id: str
    name: str
    handle: api.FunctionHandleMetadata
    definition: api.Function = field(default_factory=api.Function)
    pending: collections.deque[Input] = field(default_factory=collections.deque)
    waiting: asyncio.Condition = field(default_factory=asyncio.Condition)
    containers: set[Container] = field(default_factory=set)
    crashes: int = 0
    """Containers in a row that never asked for an input."""

    @property
    def single_use(self) -> bool:
        return self.definition.single_use_containers or self.definition.max_inputs == 1

    @property
    def gpu(self) -> str:
        return self.definition.resources.gpu_config.gpu_type


@dataclass(eq=False)
class App:
    id: str
    name: str
    state: int
    tags: dict[str, str] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)
    last_beat: float = field(default_factory=time.monotonic)
    stopped: str = ""
    """Why, once it has."""
    logs: list[api.TaskLogsBatch] = field(default_factory=list)
    logs_changed: asyncio.Condition = field(default_factory=asyncio.Condition)


@dataclass(eq=False)
class Container:
    """A process that asks for inputs, over a socket of its own: its requests don't say who it is."""

    id: str
    function: Function
    home: Path
    process: Process | None = None
    server: Server | None = None
    current: Input | None = None
    served: int = 0
    stopping: bool = False
    queued: float = field(default_factory=time.time)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def pid(self) -> int:
        return self.process.pid if self.process else 0

    @property
    def has_room(self) -> bool:
        return self.current is None and not self.stopping and not (self.function.single_use and self.served)

    def kill(self) -> None:
        self.stopping = True
        if self.process:
            self.process.kill()


@dataclass(eq=False)
class Box:
    """A sandbox."""

    id: str
    app_id: str
    container_id: str
    process: Process
    folder: str
    environment: dict[str, str]
    result: api.GenericResult | None = None
    finished: asyncio.Event = field(default_factory=asyncio.Event)
    executed: dict[str, Process] = field(default_factory=dict)

    def stop(self) -> None:
        """End it, where it has not."""
        if not self.finished.is_set():
            self.result = api.GenericResult(
                status=api.GenericResult.GENERIC_STATUS_TERMINATED, exitcode=KILLED
            )
            self.process.kill()


@dataclass(frozen=True)
class Image:
    id: str
    recipe: list[str]
    python: str
    """The version that the recipe is based on; "" where it doesn't say."""


def _roomy() -> str:
    """Where containers lie: in memory if there is ample room, since a disk takes longer to make the hundreds of
    files of one than it takes to run. Not in TMPDIR: the path of a socket has to be short."""
    try:
        room = os.statvfs(MEMORY)
    except OSError:
        return "/tmp"
    ample = room.f_bavail * room.f_frsize >= AMPLE_BYTES and not room.f_flag & os.ST_NOEXEC
    return MEMORY if ample and os.access(MEMORY, os.W_OK) else "/tmp"


class Cloud:
    """The service's whole memory; a new one is an account without anything in it."""

    def __init__(self, dead_client_after: float, most_containers: int) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="standin-", dir=_roomy()))
        self.dead_client_after, self.most_containers = dead_client_after, most_containers
        self.faults = Faults()
        self.url = self.http = ""
        self.apps: dict[str, App] = {}
        self.functions: dict[str, Function] = {}
        self.calls: dict[str, Call] = {}
        self.inputs: dict[str, Input] = {}
        self.containers: dict[str, Container] = {}
        self.boxes: dict[str, Box] = {}
        self.mounts: dict[str, dict[str, str]] = {}
        self.blobs: dict[str, bytes] = {}
        self.images: dict[bytes, Image] = {}
        self.secrets: dict[str, dict[str, str]] = {}
        self.volumes: dict[str, str] = {}
        self.dicts: dict[str, dict[bytes, bytes]] = {}
        self.rates = {"gpu_hour_cost_l4": "0.8", "cpu_hour_cost": "0.0473", "mem_gib_hour_cost": "0.008"}
        """Made up: no price list of Modal's."""
        self.region, self.provider = "standin-1", "CLOUD_PROVIDER_STANDIN"
        self.requests: collections.Counter[str] = collections.Counter()
        self.missing: collections.Counter[str] = collections.Counter()
        self.events: list[dict[str, Any]] = []
        self._ids = itertools.count(1)
        self._tasks: set[asyncio.Task[Any]] = set()

    def new_id(self, prefix: str) -> str:
        return f"{prefix}-{next(self._ids):022d}"

    def note(self, event: str, **what: object) -> None:
        self.events.append({"at": time.time(), "event": event, **what})

    def later(self, job: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.create_task(job)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def call(self, call_id: str) -> Call:
        if call_id not in self.calls:
            raise GRPCError(Status.NOT_FOUND, f"No function call {call_id!r}")
        return self.calls[call_id]

    def app(self, app_id: str) -> App:
        if app_id not in self.apps:
            raise GRPCError(Status.NOT_FOUND, f"No app {app_id!r}")
        return self.apps[app_id]

    def deployed(self, name: str) -> App | None:
        apps = self.apps.values()
        return next(
            (each for each in apps if each.name == name and each.state == api.APP_STATE_DEPLOYED), None
        )

    def image(self, image_id: str) -> Image | None:
        return next((image for image in self.images.values() if image.id == image_id), None)

    async def close(self) -> None:
        """Ends every process, and everything that waits."""
        processes = [each.process for each in (*self.containers.values(), *self.boxes.values())]
        processes += [each for box in self.boxes.values() for each in box.executed.values()]
        running = [each for each in processes if each and each.code is None]
        for container in self.containers.values():
            container.stopping = True
        for process in running:
            process.kill()
        await asyncio.gather(*(process.exited() for process in running))
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
