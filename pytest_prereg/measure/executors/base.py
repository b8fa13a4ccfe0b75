"""What every executor does: take one repeat at a time to where it runs, and say how it ended."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from pytest_prereg.evidence.model import Outcome, Value


class Job(msgspec.Struct, kw_only=True, frozen=True):
    """One repeat to be run."""

    repeat: str
    """Its id, as in the evidence."""
    arm: str
    index: int
    seed: int
    metrics: dict[str, str]
    """Unit by declared metric."""
    params: dict[str, Any] = {}
    env: dict[str, str] = {}
    timeout: float | None = None
    """Seconds from the start of the body."""
    checkpoint: str | None = None
    """Folder that outlives a lost attempt."""


class Result(msgspec.Struct, kw_only=True, frozen=True):
    """How one attempt at a repeat ended; the fields are those of the evidence's ``finished`` line."""

    outcome: Outcome
    values: dict[str, Value] = {}
    diagnostics: dict[str, Any] = {}
    instruments: dict[str, str] = {}
    samples: dict[str, int] = {}
    cause: str | None = None
    error: str | None = None
    seconds: dict[str, float] = {}
    environment: dict[str, Any] = {}


class Executor(Protocol):
    """Where repeats run. One job at a time; :meth:`close` may interrupt it at any moment."""

    @property
    def name(self) -> str:
        """Name in the study file and in the evidence."""

    def start(self) -> None:
        """Get ready to run; raise ``MeasureError``, with nothing left running, if that is impossible."""

    def run(self, job: Job) -> Result:
        """Run one repeat to its end and return how it ended; never raise for what the body does."""

    def close(self) -> None:
        """Stop everything that runs; return within two seconds. The executor can be started again."""
