"""What the processes of the local executor tell each other."""

from __future__ import annotations

from typing import Literal

import msgspec

from pytest_prereg.measure.repeat import Readings


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


class Began(msgspec.Struct, kw_only=True, frozen=True, tag="began"):
    """Body to supervisor: the time of the body starts now."""

    at: float
    """By the monotonic clock, which all processes of a machine share."""


class Recorded(msgspec.Struct, kw_only=True, frozen=True, tag="recorded"):
    """Body to supervisor, once, where it has a service: a declared metric has a value."""


class Report(msgspec.Struct, kw_only=True, frozen=True, tag="report"):
    """Body to supervisor: how the function ended, and what it recorded."""

    ended: Literal["returned", "exception", "exit", "oom"]
    at: float
    readings: Readings
    error: str | None = None
