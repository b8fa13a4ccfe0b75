"""What was seen: the lines of a session file, and the series they add up to.

A session file holds one JSON object a line: a header, for every attempt a ``started`` and a ``finished``
line, and a footer. Its field names are a public format.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

import msgspec


class Outcome(StrEnum):
    """How one attempt at a slot ended; the values are never merged."""

    OK = "ok"
    TIMEOUT = "timeout"
    TASK_FAILED = "task-failed"
    INFRASTRUCTURE = "infrastructure"
    LOST = "lost"
    """A ``started`` without its ``finished``; never written, only concluded."""
    INVALID = "invalid"
    EXCLUDED = "excluded"
    PILOT = "pilot"
    WARMUP = "warmup"


RERUN = frozenset({Outcome.INFRASTRUCTURE, Outcome.LOST})
"""Outcomes after which the slot is run again in place."""

HERE = frozenset({"local", "import"})
"""What a header calls the executor of repeats that ran on the machine that it describes, or of none."""

Value = float | list[float]


class Line(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True, tag_field="type"):
    """One line of a session file."""


class Version(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """What an arm that is a version of the code was when its series began."""

    ref: str
    """As the arm's table has it."""
    commit: str
    tree: str
    """What was checked out: the commit's, unless it is a work tree that differed from it."""
    dirty: bool = False
    """Whether the tree is of a work tree and of no commit."""


class Header(Line, kw_only=True, frozen=True, tag="header"):
    """First line: what this session measures, with what, and what it knows of other files."""

    version: int
    study: str
    experiment: str
    series: int
    origin: Literal["measured", "imported", "pilot"]
    planned: dict[str, int] | None
    """Repeats per arm; ``None`` for an import whose n was not registered."""
    pairing: Literal["block", "none"]
    seed: str
    """What block order and seeds are derived from (``sha256:…``)."""
    source: str | None
    """Source digest of the experiment; ``None`` for an import."""
    predictions: dict[str, str]
    """Registration digest by prediction id."""
    head: str | None
    """Commit at HEAD when the session began, or ``None`` without git."""
    dirty: bool | None
    session: str
    """Random hex name, shared by the files of one session."""
    created: str
    """UTC, ISO 8601; for people, never for order."""
    executor: str
    environment: dict[str, Any]
    """The machine; of a service what its executor says of itself, such as ``backend`` and ``image_id``."""
    versions: dict[str, str]
    known: dict[str, str] = {}
    """Digests of session files of the study that were there, up to their last whole line, by path: of all
    that no other file of their experiment names as they are."""
    subject: str | None = None
    """Digest of the experiment's subject; ``None`` where it declares none, and for an import."""
    data: str | None = None
    """Digest of the experiment's data; ``None`` where it declares none, and for an import."""
    instruments: dict[str, list[str]] = {}
    """What the study said of its instruments: names of what calibrates each; none where it is trusted."""
    rates: dict[str, Annotated[float, msgspec.Meta(ge=0)]] = {}
    """USD an hour of each arm, as it was when bought; arms that cost nothing are left out."""
    imported: dict[str, Any] | None = None
    """For imports: name, format and digest of the file they came from."""
    trees: dict[str, Version] = {}
    """The version that each arm was, by its name in the study's file; empty where arms are none."""
    built: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """Seconds that it took to have these versions, before the file was begun."""

    @property
    def elsewhere(self) -> bool:
        """Whether each repeat says for itself where it ran, and is paid for by itself."""
        return self.executor not in HERE


class Started(Line, kw_only=True, frozen=True, tag="started"):
    """Written and synced before the repeat is launched."""

    repeat: str
    """Id: ``experiment/series/arm/index``, without ``arm`` where there is only one unnamed."""
    arm: str
    index: int
    """1-based, within the arm."""
    attempt: int
    """1-based."""
    block: int | None = None
    seed: int | None = None
    at: str | None = None
    warmup: bool = False
    """Run before the planned repeats, and never counted."""
    attached: bool = False
    """An earlier session had begun it, and this one took it up: it ran still, had ended meanwhile, or had
    never reached the service, and was sent off now."""
    mark: str | None = None
    """What its service knows it by before it has a call: of one attempt with this no body begins twice."""


class Launched(Line, kw_only=True, frozen=True, tag="launched"):
    """Written and synced once a service runs the repeat, before anybody waits for it."""

    repeat: str
    attempt: int
    call: str
    """What finds it again: the executor's own name for it."""


class Finished(Line, kw_only=True, frozen=True, tag="finished"):
    """Written and synced after the repeat ended."""

    repeat: str
    attempt: int
    outcome: Outcome
    values: dict[str, Value] = {}
    """Declared metrics."""
    diagnostics: dict[str, Any] = {}
    """Undeclared metrics and notes: kept, never judged."""
    instruments: dict[str, str] = {}
    """Instrument by metric, where one took the reading."""
    cause: str | None = None
    """``exception``, ``exit``, ``oom``, ``deadline``, or why the repeat is invalid"""
    error: str | None = None
    """The tail of what the body printed or raised, bounded."""
    machine: str | None = None
    environment: dict[str, Any] = {}
    """What differs from repeat to repeat: load average, clocks, pid."""
    seconds: dict[str, float] = {}
    """``launch`` (until the body starts), ``body``, ``total``; of a service ``queue`` (until its machine
    began), which no other is part of, and ``total`` from there."""
    at: str | None = None
    samples: dict[str, int] = {}
    """How many samples a value was reduced from, where more than one."""
    outside: str | None = None
    """Which of the registered conditions did not hold when it ran."""
    resumed: bool = False
    """Whether it found a checkpoint that an earlier attempt had left."""
    unreadable: dict[str, str] = {}
    """By metric without a value, the instrument that could not be read; empty where the body declared the
    repeat invalid itself."""


class Footer(Line, kw_only=True, frozen=True, tag="footer"):
    """Last line of a file that was closed: ``digest`` is over all bytes before it."""

    lines: int
    digest: str
    ended: Literal["finished", "interrupted", "failed", "stopped"]
    """``stopped``: by the budget or the time that the user gave."""
    at: str | None = None
    seconds: float | None = None
    """How long the session lasted, repeats and what was between them."""


SessionLine = Header | Started | Launched | Finished | Footer


class RecordedRepeat(msgspec.Struct, kw_only=True, frozen=True, gc=False):
    """The attempt that settled a slot, as the judge sees it."""

    id: str
    arm: str
    index: int
    block: int | None
    outcome: Outcome
    values: dict[str, Value]
    position: int
    """Run order within the series, from 0."""
    machine: str | None
    cause: str | None = None
    instruments: dict[str, str] = {}
    by_author: bool = False
    """Excluded by an entry of the lock, made when its values could be seen; else by a registered rule."""
    outside: str | None = None
    """Which of the registered conditions did not hold."""
    resumed: bool = False
    """Went on from what an earlier attempt had left."""
    unreadable: dict[str, str] = {}
    """By metric without a value, the instrument that could not be read."""


class Series(msgspec.Struct, kw_only=True, frozen=True):
    """The registered set of repeats of an experiment, numbered for life."""

    experiment: str
    number: int
    origin: Literal["measured", "imported"]
    pairing: Literal["block", "none"]
    planned: dict[str, int] | None
    repeats: tuple[RecordedRepeat, ...]
    """Settled slots, in run order."""
    faults: tuple[str, ...]
    """Ids of the repeats of all infrastructure faults and lost attempts before their slots were settled, one
    entry each."""
    surplus: int = 0
    """Repeats beyond the planned ones: kept, and left out."""
    disputed: tuple[str, ...] = ()
    """Sessions with another result than the one that settled a slot: two branches used the number."""
    complete: bool
    source: str | None
    seed: str
    predictions: dict[str, str]
    """Registration digests that every file of the series binds."""
    sessions: tuple[str, ...]
    """File names, in order of creation."""
    subject: str | None = None
    """Digest of what was measured, where the experiment declares it."""
    data: str | None = None
    """Digest of the files that were read, where the experiment declares them."""
    outside: str | None = None
    """Which of the registered conditions did not hold where a session of it ran."""
    mixed_versions: bool = False
    """Sessions ran with different versions of Python or of a library."""
    voided: str | None = None
    """Why its author declared it broken."""
    mixed_subject: bool = False
    """Sessions measured different subjects or versions, or read different data: what they have is no one
    series."""
    trees: dict[str, Version] = {}
    """The version that each arm was, by its name in the study's file; empty where arms are none."""
