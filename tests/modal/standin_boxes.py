"""Sandboxes: their processes, what is executed in them, and how they end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from modal_proto import api_pb2 as api
from standin_containers import plain_environment
from standin_processes import Process
from standin_state import Box

if TYPE_CHECKING:
    from standin_state import Cloud

Result = api.GenericResult
TIMED_OUT = 124


def environment_of(cloud: Cloud, sources: Any) -> dict[str, str]:
    """What the secrets say, be they named or sent along."""
    found: dict[str, str] = {}
    for source in sources:
        which = source.WhichOneof(source.DESCRIPTOR.oneofs[0].name)
        if which and which.endswith("id"):
            found.update(cloud.secrets[getattr(source, which)])
        elif which:
            found.update(getattr(source, which).contents)
    return found


async def create_box(
    cloud: Cloud, request: Any, environment: dict[str, str], box_id: str, container_id: str
) -> None:
    definition = request.definition
    folder = cloud.folder / box_id
    folder.mkdir()
    own = {"HOME": str(folder), "MODAL_SANDBOX_ID": box_id}
    environment = {**plain_environment(), **environment, **own}
    command = list(definition.entrypoint_args) or ["sleep", "infinity"]
    process = await Process.start(command, definition.workdir or str(folder), environment)
    box = Box(box_id, request.app_id, container_id, process, str(folder), environment)
    cloud.boxes[box_id] = cloud.boxes[container_id] = box
    offline = definition.network_access.network_access_type == api.NetworkAccess.NetworkAccessType.BLOCKED
    about = {"app": request.app_id, "seconds": definition.timeout_secs, "offline": offline}
    cloud.note("sandbox_started", sandbox=box_id, pid=process.pid, **about)
    cloud.later(_run(cloud, box, definition.timeout_secs))


async def _run(cloud: Cloud, box: Box, seconds: int) -> None:
    try:
        code = await asyncio.wait_for(box.process.exited(), seconds or None)
        status = Result.GENERIC_STATUS_FAILURE if code else Result.GENERIC_STATUS_SUCCESS
        box.result = box.result or Result(status=status, exitcode=code if code >= 0 else 128 - code)
    except TimeoutError:
        box.result = Result(status=Result.GENERIC_STATUS_TIMEOUT, exitcode=TIMED_OUT)
    for process in (box.process, *box.executed.values()):
        process.kill()
    status = Result.GenericStatus.Name(box.result.status).removeprefix("GENERIC_STATUS_").lower()
    cloud.note("sandbox_ended", sandbox=box.id, pid=box.process.pid, status=status)
    box.finished.set()
