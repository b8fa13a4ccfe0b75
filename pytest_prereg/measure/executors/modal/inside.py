"""What runs in a container: one repeat, under a fork server and a supervisor as on any machine.

Modal finds the two functions here by their names, so nothing of the user's is ever pickled. Both ways go
bytes, and how a repeat ended is decided in the container: by who keeps its deadline and watches its process.
"""

from __future__ import annotations

import gc
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

import pytest_prereg
from pytest_prereg.errors import MeasureError, Problem
from pytest_prereg.evidence.environment import describe_machine, describe_versions
from pytest_prereg.evidence.model import Outcome
from pytest_prereg.measure.executors import wire
from pytest_prereg.measure.executors.base import Result
from pytest_prereg.measure.executors.client import CLOSE_SECONDS, ForkServer
from pytest_prereg.measure.executors.environment import scrub
from pytest_prereg.measure.executors.modal import marks
from pytest_prereg.measure.executors.modal.messages import STUDY, Answer, Errand, Look
from pytest_prereg.measure.executors.text import file_tail

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_prereg.measure.executors.messages import Setup

Served = TypeVar("Served")

MACHINE = ("cpu", "cores", "memory_gib", "gpu", "driver", "kernel", "python", "torch", "cuda")
"""What a repeat says of the machine that it ran on."""
UNTOLD = ("TOKEN", "SECRET")
"""What variables of Modal's are called that no repeat has to see."""


def run(errand: bytes) -> bytes:
    """Run the repeat of an :class:`Errand`; return its :class:`Answer`, both as JSON."""
    import modal  # noqa: PLC0415

    before, began = _seconds_alive(), time.monotonic()
    asked = wire.decode(errand, Errand)
    start = marks.Start(asked, modal.current_function_call_id() or "", _container())
    if start.instead:
        return _encoded(_begun_by(start.instead, asked))
    if (answer := marks.answer_in(start.before)) is not None:
        return answer  # its body has had its end: to run it again would be another go
    launched = began

    def ready() -> None:
        nonlocal launched
        start.imported()
        launched = time.monotonic()

    result = _run(asked, ready)
    launch = before + launched - began + result.seconds.get("launch", 0.0)
    seconds = {**result.seconds, "launch": launch, "total": before + time.monotonic() - began}
    told = msgspec.structs.replace(
        result,
        restarts=len(start.before),
        environment={**result.environment, **place()},
        error=_shortened(result.error),
        seconds=seconds,
    )
    answer = _encoded(Answer(whose=asked.whose, result=told))
    start.answered(answer)
    return answer


def look(errand: bytes) -> bytes:
    """Import what an :class:`Errand` names, run nothing, and return a :class:`Look`, both as JSON."""
    asked = wire.decode(errand, Errand)
    problem = None
    try:
        _with_server(asked, lambda _server: None)
    except MeasureError as error:
        problem = _told(error.problems[0])
    found = Look(
        versions=describe_versions(),
        environment=place(),
        problem=problem,
    )
    return _encoded(found)


def place() -> dict[str, Any]:
    """Return what this container is: its machine, and how Modal calls what it runs."""
    machine = describe_machine()
    modal = {
        "container_id": os.environ.get("MODAL_TASK_ID"),
        "image_id": os.environ.get("MODAL_IMAGE_ID"),
        "region": os.environ.get("MODAL_REGION"),
        "cloud": os.environ.get("MODAL_CLOUD_PROVIDER"),
    }
    told = {name: value for name, value in modal.items() if value}
    kept = {name: machine[name] for name in MACHINE}
    return {**kept, "backend": "modal", **told}


def _begun_by(call: str, asked: Errand) -> Answer:
    """Return that another call has begun the attempt: to run its body here, too, would be to buy it twice."""
    never = Result(outcome=Outcome.INFRASTRUCTURE, cause="answer", error=f"the same was begun by {call}")
    return Answer(whose=asked.whose, instead=call, result=never)


def _encoded(message: object) -> bytes:
    return wire.encode(message)[wire.LENGTH :]


def _run(asked: Errand, ready: Callable[[], None]) -> Result:
    def serve(server: ForkServer) -> Result:
        ready()
        if asked.job is None:
            raise ValueError("an errand without a repeat")
        result = server.run(asked.job)
        for output in sorted(server.folder.glob("[0-9]*.log")):
            print(file_tail(output), flush=True)  # noqa: T201 - so that Modal keeps it with the container
        return result

    try:
        return _with_server(asked, serve)
    except MeasureError as error:
        # Another container could import it: a repeat that never began is nothing that its body did.
        return Result(outcome=Outcome.INFRASTRUCTURE, cause="import", error=str(error))


def _with_server(asked: Errand, serve: Callable[[ForkServer], Served]) -> Served:
    """Start the fork server, hand it on once its imports are done, and leave nothing of it running."""
    gc.freeze()  # as this process ends, Python would look through all that Modal's client has imported: 0.1 s
    root = _root() / STUDY
    server = ForkServer(
        _located(asked.setup, root),
        cwd=root / asked.folder,
        environ=_environ(asked.env),
        fresh=asked.fresh,
    )
    try:
        server.wait_until_ready(asked.experiment)
        return serve(server)
    finally:
        server.close(time.monotonic() + CLOSE_SECONDS)


def _located(setup: Setup, root: Path) -> Setup:
    file = None if setup.file is None else str(root / setup.file)
    return msgspec.structs.replace(setup, file=file, paths=[str(root / path) for path in setup.paths])


def _environ(own: Mapping[str, str]) -> dict[str, str]:
    """Return what repeats see: the container's variables and their arm's, and where this package is."""
    seen, _ = scrub(os.environ)
    kept = {name: value for name, value in seen.items() if not _is_untold(name)}
    merged = {**kept, **own}
    paths = [merged.get("PYTHONPATH", ""), str(_root())]
    return {**merged, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}


def _is_untold(name: str) -> bool:
    return name.startswith("MODAL_") and any(word in name for word in UNTOLD)


def _root() -> Path:
    return Path(pytest_prereg.__file__).parents[1]


def _container() -> str:
    return os.environ.get("MODAL_TASK_ID", "")


def _told(problem: Problem) -> Problem:
    """Return a problem with paths as they are in the study."""
    texts = {name: _shortened(getattr(problem, name)) for name in ("message", "path", "advice")}
    return Problem(code=problem.code, line=problem.line, **texts)  # type: ignore[arg-type]


def _shortened(text: str | None) -> str | None:
    """Return a text with paths relative to the study, which lies elsewhere here than at home."""
    study = _root() / STUDY
    relative = os.path.relpath(study)
    return text and text.replace(f"{study}/", "").replace(f"{relative}/", "")


def _seconds_alive() -> float:
    """Return for how long this process has run; 0 where the kernel does not tell."""
    try:
        ticks = int(Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19])
        up = float(Path("/proc/uptime").read_text(encoding="utf-8").split()[0])
    except (OSError, ValueError, IndexError):
        return 0.0
    return max(0.0, up - ticks / os.sysconf("SC_CLK_TCK"))
