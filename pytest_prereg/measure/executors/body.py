"""The process in which an experiment's function, or its command, runs once."""

from __future__ import annotations

import contextlib
import dataclasses
import faulthandler
import mmap
import os
import signal
import sys
import time
import traceback
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import msgspec

from pytest_prereg.evidence.bounding import bounded
from pytest_prereg.measure import commands
from pytest_prereg.measure.executors import memory, processes, wire
from pytest_prereg.measure.executors.exhaustion import is_out_of_memory
from pytest_prereg.measure.executors.messages import Began, Recorded, Report
from pytest_prereg.measure.executors.text import traceback_tail
from pytest_prereg.measure.readings import ReadingError
from pytest_prereg.measure.repeat import Repeat

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_prereg.measure.executors.base import Job

NOT_REPORTED = 70
RESERVE = 16 * 2**20
"""Bytes of address space with which a body that has none left still says so; they are touched by nobody."""


class Place(NamedTuple):
    """Where a body's output goes, the folder that is its own, and where its service is."""

    output: Path
    workdir: Path
    service: Path
    """Output of its service."""
    port: int | None = None
    """Where its service listens."""


class Channels(NamedTuple):
    """How the body and its supervisor talk."""

    gate: int
    """Where the body waits for a byte until it may begin."""
    pipe: int
    """Where it reports."""


def run(
    function: Callable[..., Any], job: Job, place: Place, channels: Channels, closed: Sequence[int]
) -> NoReturn:
    """Be the body: once the gate is open, call ``function``, report over the pipe, and exit.

    Called in a child that the supervisor has just forked; ``closed`` are the supervisor's own descriptors.
    """
    try:
        _settle(os.getppid(), place, closed)
        pipe = channels.pipe
        repeat = _repeat(job, place, pipe)
        pid = os.getpid()
        task = _task(function, job, place)
        _wait_at(channels.gate)
        wire.write(pipe, wire.encode(Began(at=time.monotonic())))
        ended, error = _call(task, repeat)
        at = time.monotonic()
        if os.getpid() == pid:  # else a child that the function forked, and that came back out of it
            _flush()
            report = Report(ended=ended, at=at, error=error, readings=repeat.readings())
            wire.write(pipe, _encoded(report))
        os._exit(0)
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
    finally:
        os._exit(NOT_REPORTED)


def _wait_at(gate: int) -> None:
    """Wait until the supervisor has opened the gate; exit if it never will."""
    if not os.read(gate, 1):
        os._exit(NOT_REPORTED)
    os.close(gate)


def _settle(supervisor: int, place: Place, closed: Sequence[int]) -> None:
    """Become what a freshly started process is: own session, default signals, own output and randomness."""
    os.setsid()
    processes.die_with_parent(supervisor)
    for descriptor in closed:
        os.close(descriptor)
    _redirect(place.output)
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    memory.prefer_as_victim()
    faulthandler.enable()
    _reseed_numpy()


def _redirect(output: Path) -> None:
    # Appending, so that whoever watches the file can cut it short at any time.
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)


def _reseed_numpy() -> None:
    """Draw numpy's global state anew: after a fork Python does so for ``random``, numpy doesn't."""
    random = sys.modules.get("numpy.random")
    if random is not None:
        random.seed()


def _repeat(job: Job, place: Place, pipe: int) -> Repeat:
    def recorded() -> None:
        with contextlib.suppress(OSError):
            wire.write(pipe, wire.encode(Recorded()))

    return Repeat(
        metrics=job.metrics,
        index=job.index,
        arm=job.arm,
        seed=job.seed,
        workdir=place.workdir,
        checkpoint=Path(job.checkpoint) if job.checkpoint else None,
        service_port=place.port,
        optional=commands.optional(job.command),
        recorded=recorded if job.service is not None and job.command is None else None,
    )


def _task(function: Callable[..., Any], job: Job, place: Place) -> Callable[[Repeat], object]:
    """Return what is to be run: the function with its parameters, or the command in its place."""
    if job.command is None:
        return partial(function, **job.params)
    return commands.prepared(
        job.command, job.params, port=place.port, output=place.output, workdir=place.workdir
    )


def _call(task: Callable[[Repeat], object], repeat: Repeat) -> tuple[Any, str | None]:
    """Run the task; return how it ended, and the tail of the traceback if it raised."""
    reserve = mmap.mmap(-1, RESERVE)
    try:
        task(repeat)
    except ReadingError:
        return "returned", None  # the repeat knows, and is invalid
    except commands.CommandError as error:
        return error.ended, str(error)
    except SystemExit as error:
        return _exited(error)
    except BaseException as error:  # noqa: BLE001
        reserve.close()
        return _raised(error)
    return "returned", None


def _raised(error: BaseException) -> tuple[str, str]:
    if not is_out_of_memory(error):
        return "exception", traceback_tail(error, skip=1)
    traceback.clear_frames(error.__traceback__)  # what they hold is what there is no more of
    return "oom", traceback_tail(error, skip=1)


def _exited(error: SystemExit) -> tuple[str, str | None]:
    if error.code in {None, 0}:
        return "returned", None
    return "exit", f"sys.exit({error.code!r})\n{traceback_tail(error, skip=1)}"


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


def _encoded(report: Report) -> bytes:
    """Return the report as a message that can be read back, whatever the body recorded beside its metrics.

    A diagnostic that JSON has no form for is described instead; of the others there is as much as evidence
    keeps.
    """
    told = report.readings
    readings = dataclasses.replace(
        told,
        diagnostics=bounded({_legible(name): _described(each) for name, each in told.diagnostics.items()}),
        instruments={_legible(name): _legible(taker) for name, taker in told.instruments.items()},
        samples={_legible(name): count for name, count in told.samples.items()},
        problems=[_legible(problem) for problem in told.problems],
        missing=[_legible(sentence) for sentence in told.missing],
    )
    return wire.encode(msgspec.structs.replace(report, readings=readings))


def _legible(text: str) -> str:
    """Return ``text``, half characters (lone surrogates) spelled out: JSON has none."""
    return text.encode("utf-8", "backslashreplace").decode()


def _described(value: object) -> object:
    try:
        wire.encode(value)
    except Exception:  # noqa: BLE001
        with contextlib.suppress(Exception):
            return ascii(value)[:1000]
        return f"{type(value).__name__}: it can be neither written nor described"
    return value
