"""Where a prediction stands, beside the findings about it: order, standing, what locks record of it."""

from __future__ import annotations

from typing import Literal

import msgspec

from pytest_prereg.audit.standing import Standing

Status = Literal["registered", "unregistered", "withdrawn", "removed"]
"""Whether a prediction is in the committed lock, was withdrawn, or is gone from the study without that."""


class Recorded(msgspec.Struct, kw_only=True, frozen=True):
    """A verdict as a lock records it."""

    verdict: str
    reason: str | None = None
    estimate: float | None = None
    interval: tuple[float, float] | None = None
    unit: str
    n: int | None = None
    series: int | None = None


What = Literal[
    "registered",
    "registered again",
    "amended",
    "amended back",
    "changed",
    "edited",
    "measured",
    "last measured",
    "imported",
    "last imported",
    "tagged",
]
"""What a commit did to a prediction. *Changed* is amended without saying so, *edited* its text alone."""
MEASURING: frozenset[What] = frozenset({"measured", "last measured", "imported", "last imported"})
REGISTERING: frozenset[What] = frozenset(
    {"registered", "registered again", "amended", "amended back", "changed"}
)


class Came(msgspec.Struct, kw_only=True, frozen=True):
    """What a commit did to a prediction, and where it stands among others that did something."""

    what: What
    commit: str | None = None
    """``None`` where none was found."""
    on: str | None = None
    """The day that it says, for people: nothing follows from it."""
    is_at_base: bool = False
    """Whether the merge base comes from it."""
    follows: bool = False
    """Whether it comes from the one that is told before it."""


class Audited(msgspec.Struct, kw_only=True, frozen=True):
    """Where a prediction stands: its order, its standing and its record on both sides of a comparison."""

    id: str
    status: Status
    order: str | None
    """``None`` for one that is gone from the study and was never withdrawn."""
    standing: Standing | None
    base: Recorded | None
    """In the lock that is compared with; an audit compares with HEAD's."""
    head: Recorded | None
    """In the lock as it is."""
    withdrawal: str | None = None
    """The reason on its tombstone."""
    is_counted: bool = False
    """Whether it was withdrawn and stays counted as refuted."""
    claim: str = ""
    """Its words, as far as its text is there."""
    wants: str = ""
    """The region that it predicts, as a verdict's line shows it: ``≥ 1.25``; empty where it can't be told."""
    wanted: str = ""
    """The same as it was in what is compared with; empty where nothing can be said, or it was not there."""
    claimed: str = ""
    """Its words there."""
    registered: str | None = None
    """The commit of the registration that its evidence was taken for; without evidence, of it as it is."""
    measured: str | None = None
    """The commit by which the last of the evidence that decides it came in."""
    came: tuple[Came, ...] = ()
    """What became of it up to now, so that nothing stands before a commit that it comes from."""
    is_at_base: bool | None = None
    """Whether the lock that is compared with registers it just as it is now; ``None`` for an audit."""
    given: Recorded | None = None
    """What evidence that a pull request brings gives, where the lock has no verdict."""
    flags: tuple[str, ...] = ()
    """What else is to be known of its verdict, a word each: ``subject-changed``."""
