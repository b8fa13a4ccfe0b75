"""How registration and evidence lie to each other: the grades, and what one rests on."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

_KINDS = {"refs/heads/": "branch", "refs/remotes/": "remote branch", "refs/tags/": "tag"}
_NAMED = 3
"""So many refs are named."""


class Grade(StrEnum):
    """How registration and evidence follow each other, the worst first."""

    AFTER_EVIDENCE = "after-evidence"
    """The evidence was there first, or does not name the registration as what it was measured for."""
    MISMATCH = "mismatch"
    """Something else was registered."""
    UNREGISTERED = "unregistered"
    """Not in the committed lock."""
    SIMULTANEOUS = "simultaneous"
    """Both came in with one commit."""
    UNVERIFIABLE = "unverifiable"
    """No git, or the history is cut."""
    WITNESSED = "witnessed"
    """Simultaneous, but a tag of the lock holds a commit with the registration and without the evidence."""
    REGISTERED_ONE_SIDE = "registered-one-side"
    """The evidence came in with a merge, and only some of its sides had the registration."""
    REGISTERED = "registered"


RANK = {grade: rank for rank, grade in enumerate(Grade)}
"""The worst first."""

PRECEDING = frozenset({Grade.WITNESSED, Grade.REGISTERED_ONE_SIDE, Grade.REGISTERED})
"""Grades that the evidence's own words can still overturn."""


class Contest(msgspec.Struct, kw_only=True, frozen=True):
    """Another ref has evidence in a worse order than HEAD's ancestry, or written otherwise."""

    name: str
    """Of the file of evidence."""
    blob: str
    """Of what came in there."""
    grade: Grade | None
    """``None`` where that is the same session, and neither file begins with the other."""
    commit: str
    refs: tuple[str, ...]
    """In full, those that have the commit."""

    @property
    def detail(self) -> str:
        """One sentence, for people."""
        where = f"with {short(self.commit)} on {_listed(self.refs)}"
        if self.grade is None:
            return f"{self.name} came in {where} as another file of the same session"
        return f"{self.name} came in {where}: {self.grade} there"

    @property
    def about(self) -> str:
        """What it is, for as long as it is the same."""
        return f"{self.grade or 'rewritten'}: {self.blob[:8]}"


class Order(msgspec.Struct, kw_only=True, frozen=True):
    """The grade of a prediction, and what it rests on."""

    grade: Grade
    detail: str
    """One sentence, for people."""
    commit: str | None = None
    """The commit that decided."""
    flags: tuple[str, ...] = ()
    """``unbound``: measured at a commit that is not here; ``imported early``; ``contested``;
    ``evidence removed``."""
    removed: tuple[str, ...] = ()
    """Evidence of the experiment that was committed and is gone or altered: its path, and the commit."""
    contests: tuple[Contest, ...] = ()
    """What another ref says against the grade."""
    instead: frozenset[str] = frozenset()
    """Digests that were registered, or that evidence was taken for, where its own was not."""


CONTESTED = "contested"
REMOVED = "evidence removed"


class EvidenceRef(msgspec.Struct, kw_only=True, frozen=True):
    """A file of evidence, as far as one prediction is concerned."""

    path: Path
    blob: str
    """Git's name for its bytes as they are in the work tree."""
    head: str | None
    """The commit that its header says it was measured at."""
    origin: str
    """``measured`` or ``imported``."""
    bound: str | None
    """The digest that its header names for the prediction."""


def short(commit: str) -> str:
    """A commit, for people."""
    return commit[:8]


def _listed(refs: Sequence[str]) -> str:
    """``branch a, tag b and 4 more``; what a remote's HEAD stands for is named anyway."""
    kept = [ref for ref in refs if not (ref.startswith("refs/remotes/") and ref.endswith("/HEAD"))]
    named = [
        f"{kind} {ref.removeprefix(place)}"
        for ref in kept
        for place, kind in _KINDS.items()
        if ref.startswith(place)
    ]
    shown = named if len(named) <= _NAMED else [*named[:_NAMED], f"{len(named) - _NAMED} more"]
    return " and ".join(part for part in (", ".join(shown[:-1]), *shown[-1:]) if part)
