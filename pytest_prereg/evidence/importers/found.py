"""What is found in a result file of another tool: its benchmarks, and the independent repeats of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from pytest_prereg.evidence.model import Value

if TYPE_CHECKING:
    from pytest_prereg.evidence.importers.complaints import Complaints


class FoundRepeat(msgspec.Struct, kw_only=True, frozen=True):
    """One independent repeat, with all that the file says of it."""

    label: str
    """What a message calls it: ``process 3``, ``run 1``."""
    line: int | None = None
    """Where the file has it, if it has lines."""
    at: str | None = None
    """Where the document has it, if it is a JSON document: ``benchmarks[3].runs[0]``, counted from 0."""
    readings: dict[str, Value]
    """By the tool's own name; a list holds samples within the repeat. Finite numbers only."""
    units: dict[str, str] = {}
    """Of readings whose unit the format fixes; for all others the declared unit is taken for granted."""
    unreadable: dict[str, str] = {}
    """Why a reading that the file names is no number: ``"inf"``, ``null``, only a summary kept."""
    diagnostics: dict[str, Any] = {}
    """What else a reader should see: seed, version, commit."""
    machine: str | None = None
    failed: str | None = None
    """Why it came to nothing, if it did: it is kept as a task that failed, and never dropped."""
    failed_by: str | None = None
    """The reading that tells it, if there is one: where a metric reads it, it is data and no failure."""


def said_of(repeat: FoundRepeat) -> str:
    """Return what a message calls a repeat, and where in its document it is."""
    return f"{repeat.label} at {repeat.at}" if repeat.at else repeat.label


class FoundBenchmark(msgspec.Struct, kw_only=True, frozen=True):
    """What ``select`` picks: one benchmark, command or workload."""

    name: str
    aliases: tuple[str, ...] = ()
    """Shorter names, which several of a file may share."""
    repeats: tuple[FoundRepeat, ...]
    summaries: dict[str, float] = {}
    """What the file says of all repeats together, and of none of them: taken only where it is one repeat."""
    summary_units: dict[str, str] = {}
    refusal: str | None = None
    """Why the repeats are not independent by themselves, in one sentence; ``None`` if they are."""
    declared_by: tuple[str, ...] = ()
    """Values of an experiment's ``unit`` that declare them independent all the same."""


class Importer(Protocol):
    """Reads the files of one tool."""

    name: str
    """Of the format."""
    repeat: str
    """What one independent repeat is, in words: ``a process``."""

    def recognises(self, name: str, data: bytes) -> bool:
        """Whether a file so called, with these bytes, is of this format; cheap, and never raises."""

    def read(self, data: bytes, complaints: Complaints) -> list[FoundBenchmark]:
        """Return all benchmarks of a file, in its order.

        Raises:
            EvidenceError: through ``complaints``, with all that is wrong.
        """
