"""Containers: started where inputs wait, given their inputs, and what ends them."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from typing import TYPE_CHECKING

from grpclib.server import Server
from modal_proto import api_pb2 as api
from standin_interpreter import CRASHING, PLAIN, other_python, pretend
from standin_processes import Process
from standin_state import Container

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from standin_faults import Strike
    from standin_state import App, Cloud, Function, Input

Result = api.GenericResult
CRASHES_IN_A_ROW = 3
LONGEST_TEXT = 2000


async def enqueue(cloud: Cloud, each: Input, *, first: bool = False) -> None:
    pending = each.call.function.pending
    (pending.appendleft if first else pending.append)(each)
    await schedule(cloud, each.call.function)


async def schedule(cloud: Cloud, function: Function) -> None:
    """Starts containers until there is one for each input that waits, or as many as there may be."""
    room = sum(container.has_room for container in function.containers)
    most = function.definition.autoscaler_settings.max_containers or cloud.most_containers
    while len(function.pending) > room and len(function.containers) < most:
        room += 1
        name = cloud.new_id("ta")
        container = Container(name, function, cloud.folder / name)
        function.containers.add(container)
        cloud.containers[name] = container
        cloud.later(_run(cloud, container))
    async with function.waiting:
        function.waiting.notify_all()


async def _run(cloud: Cloud, container: Container) -> None:
    from standin_rpc import ControlPlane

    function, sock = container.function, str(container.home / "service.sock")
    await asyncio.sleep(cloud.faults.queue_seconds)
    if container.stopping or not function.pending:
        function.containers.discard(container)
        return
    command, environment = _prepare(cloud, container, sock)
    container.server = Server([ControlPlane(cloud, container)])
    await container.server.start(path=sock)
    container.process = await Process.start(command, str(container.home / "root"), environment)
    cloud.note(
        "container_started",
        container=container.id,
        pid=container.pid,
        function=function.name,
        app=function.app_id,
        gpu=function.gpu,
        image=function.definition.image_id,
        queued=container.queued,
    )
    if container.stopping:
        container.process.kill()
    code = (await asyncio.gather(container.process.exited(), *_log_both(cloud, container)))[0]
    function.containers.discard(container)
    cloud.note(
        "container_ended", container=container.id, pid=container.pid, code=code, served=container.served
    )
    await _account_for_the_end(cloud, container, code)
    container.server.close()
    await container.server.wait_closed()
    shutil.rmtree(container.home, ignore_errors=True)
    if function.pending:
        await schedule(cloud, function)


def _prepare(cloud: Cloud, container: Container, sock: str) -> tuple[list[str], dict[str, str]]:
    """Writes what the container finds, and returns its command and environment."""
    function, home, faults = container.function, container.home, cloud.faults
    root = home / "root"
    root.mkdir(parents=True)
    (home / "tmp").mkdir()
    for mount in function.definition.mount_ids:
        _unpack(cloud, root, cloud.mounts[mount])
    (home / "arguments").write_bytes(_arguments(cloud, container).SerializeToString())
    image = cloud.image(function.definition.image_id)
    python = other_python(faults.python or (image.python if image else ""))
    command = pretend(home / "pretence", python, faults.lacking) if python or faults.lacking else PLAIN
    if faults.crashes:
        faults.crashes, command = faults.crashes - 1, CRASHING
    return command, _environment(cloud, container, sock)


def _unpack(cloud: Cloud, root: Path, files: dict[str, str]) -> None:
    """PYTHONPATH and the current folder stand in for the container's ``/root``."""
    places = {root / name.removeprefix("/root/").lstrip("/"): digest for name, digest in files.items()}
    for folder in {place.parent for place in places}:
        folder.mkdir(parents=True, exist_ok=True)
    for place, digest in places.items():
        place.write_bytes(cloud.blobs[digest])


def _arguments(cloud: Cloud, container: Container) -> api.ContainerArguments:
    function, app = container.function, cloud.apps[container.function.app_id]
    objects = [
        api.Object(object_id=each, function_handle_metadata=cloud.functions[each].handle)
        for each in app.functions.values()
    ]
    objects += [api.Object(object_id=each.object_id) for each in function.definition.object_dependencies]
    return api.ContainerArguments(
        task_id=container.id,
        function_id=function.id,
        app_id=function.app_id,
        function_def=function.definition,
        app_layout=api.AppLayout(objects=objects, function_ids=app.functions),
    )


def _environment(cloud: Cloud, container: Container, sock: str) -> dict[str, str]:
    definition = container.function.definition
    secrets = {name: value for each in definition.secret_ids for name, value in cloud.secrets[each].items()}
    home, regions = container.home, definition.scheduler_placement.regions
    return {
        **plain_environment(),
        **secrets,
        "MODAL_IS_REMOTE": "1",
        "MODAL_SERVER_URL": f"unix://{sock}",
        "MODAL_CONTAINER_ARGUMENTS_PATH": str(home / "arguments"),
        "MODAL_TASK_ID": container.id,
        "MODAL_IMAGE_ID": definition.image_id,
        "MODAL_ENVIRONMENT": "main",
        "MODAL_REGION": regions[0] if regions else cloud.region,
        "MODAL_CLOUD_PROVIDER": cloud.provider,
        "PYTHONPATH": os.pathsep.join([str(home / "pretence"), str(home / "root")]),
        "HOME": str(home),
        "TMPDIR": str(home / "tmp"),
    }


def plain_environment() -> dict[str, str]:
    """The stand-in's own, without what is about a client or a run of pytest."""
    ours = ("MODAL_", "PYTEST_", "COV_", "PREREG_")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def _log_both(cloud: Cloud, container: Container) -> list:
    return [_log(cloud, container, channel) for channel in (1, 2)]


async def _log(cloud: Cloud, container: Container, channel: int) -> None:
    assert container.process
    app = cloud.apps[container.function.app_id]
    async for _, piece in container.process.follow(channel):
        item = api.TaskLogs(
            data=piece.decode(errors="replace"), file_descriptor=channel, timestamp=time.time()
        )
        async with app.logs_changed:
            app.logs.append(
                api.TaskLogsBatch(task_id=container.id, function_id=container.function.id, items=[item])
            )
            app.logs_changed.notify_all()


def _last_words(container: Container) -> str:
    assert container.process
    return container.process.output[2].decode(errors="replace")[-LONGEST_TEXT:]


async def _account_for_the_end(cloud: Cloud, container: Container, code: int) -> None:
    function = container.function
    if container.current is not None:
        result = Result(
            status=Result.GENERIC_STATUS_FAILURE,
            exitcode=code & 0xFF,
            exception=f"Runner failed with exit code: {code}\n{_last_words(container)}",
        )
        await finish(cloud, container.current, result, container)
    elif not container.served and code and not container.stopping:
        function.crashes += 1
        if function.crashes >= CRASHES_IN_A_ROW:
            await _give_up(cloud, function, f"Container crash-looped:\n{_last_words(container)}")


async def _give_up(cloud: Cloud, function: Function, why: str) -> None:
    function.crashes = 0
    while function.pending:
        result = Result(status=Result.GENERIC_STATUS_INIT_FAILURE, exception=why)
        await finish(cloud, function.pending.popleft(), result)


async def hand_over(cloud: Cloud, container: Container, each: Input) -> None:
    """Records that the container has begun that input, and starts the clocks that run from then."""
    container.function.crashes = 0
    container.current, container.served = each, container.served + 1
    each.container, each.started, each.begun = container, time.time(), each.begun + 1
    cloud.note(
        "input_started",
        input=each.id,
        call=each.call.id,
        container=container.id,
        pid=container.pid,
        nth=each.begun,
    )
    seconds = container.function.definition.timeout_secs
    if seconds:
        cloud.later(_end_at_its_timeout(cloud, container, each, seconds))
    if cloud.faults.strikes:
        cloud.later(_strike_later(cloud, container, each, cloud.faults.strikes.popleft()))


async def finish(
    cloud: Cloud,
    each: Input,
    result: Result,
    container: Container | None = None,
    *,
    data_format: int = 0,
    started: float = 0.0,
    created: float = 0.0,
) -> None:
    """Gives the input its one output, unless it has one."""
    if container is not None and container.current is each:
        container.current = None
    if each.output is not None or each.lost:
        return
    name = container.id if container else ""
    each.output = api.FunctionGetOutputsItem(
        result=result,
        idx=each.index,
        input_id=each.id,
        data_format=data_format,
        task_id=name,
        input_started_at=started or each.started,
        output_created_at=created or time.time(),
        retry_count=each.retries,
    )
    status = Result.GenericStatus.Name(result.status).removeprefix("GENERIC_STATUS_").lower()
    cloud.note("output", input=each.id, call=each.call.id, status=status, container=name)
    async with each.call.changed:
        each.call.done.append(each)
        each.call.changed.notify_all()


async def _end_at_its_timeout(cloud: Cloud, container: Container, each: Input, seconds: int) -> None:
    await asyncio.sleep(seconds)
    if container.current is each:
        text = f"Task's current input {each.id} hit its timeout of {seconds}s"
        await finish(cloud, each, Result(status=Result.GENERIC_STATUS_TIMEOUT, exception=text), container)
        container.kill()


async def _strike_later(cloud: Cloud, container: Container, each: Input, strike: Strike) -> None:
    await asyncio.sleep(strike.after)
    if container.current is each:
        await befall(cloud, container, strike)


async def befall(cloud: Cloud, container: Container, strike: Strike) -> None:
    """Does to a container that has an input what the strike says."""
    each = container.current
    cloud.note(strike.how, container=container.id, pid=container.pid, input=each.id if each else "")
    await HOW[strike.how](cloud, container, strike)


async def _preempt(cloud: Cloud, container: Container, strike: Strike) -> None:
    """The input goes back to the head of the queue, whatever the old container still says."""
    assert container.process
    each, container.current, container.stopping = container.current, None, True
    container.process.interrupt()
    if each is not None:
        each.container = None
        await enqueue(cloud, each, first=True)
    await asyncio.sleep(strike.grace)
    container.kill()


async def _kill(cloud: Cloud, container: Container, strike: Strike) -> None:
    container.kill()


async def _lose_machine(cloud: Cloud, container: Container, strike: Strike) -> None:
    if container.current:
        result = Result(status=Result.GENERIC_STATUS_INTERNAL_FAILURE, exception="worker lost")
        await finish(cloud, container.current, result, container)
    container.kill()


async def _lose_answer(cloud: Cloud, container: Container, strike: Strike) -> None:
    if container.current:
        container.current.lost = True


HOW: dict[str, Callable] = {
    "preempt": _preempt,
    "kill": _kill,
    "internal_failure": _lose_machine,
    "lose": _lose_answer,
}


async def cancel(cloud: Cloud, each: Input, *, terminate: bool) -> None:
    """Ends an input that has no output: where it waits, with its container, or by asking the container to."""
    if each in each.call.function.pending:
        each.call.function.pending.remove(each)
    elif each.container and terminate:
        each.container.kill()
    elif each.container:
        each.container.cancelled.set()
        return
    result = Result(status=Result.GENERIC_STATUS_TERMINATED, exception="Input was cancelled")
    await finish(cloud, each, result, each.container)


async def stop_app(cloud: Cloud, app: App, why: str) -> None:
    if app.stopped:
        return
    app.stopped, app.state = why, api.APP_STATE_STOPPED
    cloud.note("app_stopped", app=app.id, why=why)
    for function in [each for each in cloud.functions.values() if each.app_id == app.id]:
        await _stop_function(cloud, function)
    for box in {box for box in cloud.boxes.values() if box.app_id == app.id}:
        box.stop()
    async with app.logs_changed:
        app.logs.append(api.TaskLogsBatch(app_done=True))
        app.logs_changed.notify_all()


async def _stop_function(cloud: Cloud, function: Function) -> None:
    doomed = [*function.pending, *(each.current for each in function.containers if each.current)]
    function.pending.clear()
    for container in list(function.containers):
        container.current = None
        container.kill()
    for each in doomed:
        result = Result(status=Result.GENERIC_STATUS_TERMINATED, exception="App stopped")
        await finish(cloud, each, result)


async def stop_what_nobody_listens_to(cloud: Cloud) -> None:
    """An app that is not detached ends with its client: that is, once no heartbeat has come for long enough."""
    while True:
        await asyncio.sleep(0.25)
        for app in list(cloud.apps.values()):
            quiet = time.monotonic() - app.last_beat
            if app.state == api.APP_STATE_EPHEMERAL and quiet > cloud.dead_client_after:
                await stop_app(cloud, app, "client heartbeat lost")
