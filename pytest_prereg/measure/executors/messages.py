"""What the processes of the local executor tell each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from pytest_prereg.measure.executors.base import Job, Result
from pytest_prereg.measure.repeat import Readings

if TYPE_CHECKING:
    from collections.abc import Collection


class Setup(msgspec.Struct, kw_only=True, frozen=True):
    """Executor to fork server, first of all: what to import, and where things are."""

    module: str
    function: str
    file: str | None
    """The module's file; ``None`` for a built-in."""
    paths: list[str]
    """What goes first on ``sys.path``."""
    preload: list[str]
    client: int
    """Pid of the executor's process; nothing outlives it."""


class Ready(msgspec.Struct, kw_only=True, frozen=True):
    """Fork server to executor: the experiment is imported, or why it can't be."""

    error: str | None = None
    """Last line of the traceback."""
    traceback: str | None = None
    file: str | None = None
    line: int | None = None


class Assignment(msgspec.Struct, kw_only=True, frozen=True):
    """Fork server to supervisor, after the open files of the devices: a job, and what is its own."""

    job: Job
    output: str
    workdir: str
    service: str
    """Output of its service."""
    received: float
    """When the server received it, by the monotonic clock."""


class Done(msgspec.Struct, kw_only=True, frozen=True):
    """Supervisor to fork server: how a job ended."""

    result: Result
    goes_on: bool
    """Whether it takes another; else it exits."""


class Began(msgspec.Struct, kw_only=True, frozen=True, tag="began"):
    """Body to supervisor: the time of the body starts now."""

    at: float
    """By the monotonic clock, which all processes of a machine share."""


class Recorded(msgspec.Struct, kw_only=True, frozen=True, tag="recorded"):
    """Body to supervisor, once, where it has a service: a declared metric has a value."""


class Report(msgspec.Struct, kw_only=True, frozen=True, tag="report"):
    """Body to supervisor: how the function ended, and what it recorded."""

    ended: Literal["returned", "exception", "exit", "oom", "signal", "killed"]
    """Of the last two, only a command says so: by which signal it died itself."""
    at: float
    readings: Readings
    error: str | None = None


FromBody = Began | Recorded | Report
"""All that a body says."""


def flaw_of(report: Report, metrics: Collection[str], optional: Collection[str] = ()) -> str | None:
    """Return what a report says that none of the package's own says; ``None`` for one that may be.

    It holds readings of declared metrics alone, and where the body returned says of each that has none why,
    unless it is ``optional``.
    """
    readings = report.readings
    strange = sorted(readings.values.keys() - metrics)
    if strange:
        return f"a value of {strange[0][:100]!r}, which is not declared"
    if [] in readings.values.values():
        return "a value without a number"
    told = readings.problems or readings.discarded or readings.missing
    silent = [name for name in metrics if name not in readings.values and name not in optional]
    if report.ended == "returned" and silent and not told:
        return f'no value of "{silent[0]}", and no word of it'
    return None
