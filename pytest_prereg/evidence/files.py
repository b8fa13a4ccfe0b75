"""A session file as it was read: header, what judging needs of every attempt, and what is wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.evidence.lines import decode_lines
from pytest_prereg.evidence.model import Outcome, Value
from pytest_prereg.evidence.sidecars import beside

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_prereg.errors import Problem
    from pytest_prereg.evidence.model import Footer, Header, SessionLine


class Attempt(msgspec.Struct, kw_only=True, frozen=True, gc=False):
    """One attempt at a slot, as far as judging needs it; ``lost`` if it was started and never finished."""

    repeat: str
    arm: str
    index: int
    number: int
    """1-based: the first attempt at the slot, the second …"""
    block: int | None
    outcome: Outcome
    values: dict[str, Value] = {}
    instruments: dict[str, str] = {}
    machine: str | None = None
    cause: str | None = None
    outside: str | None = None
    """Which of the registered conditions did not hold."""
    resumed: bool = False
    unreadable: dict[str, str] = {}
    """By metric without a value, the instrument that could not be read."""
    call: str | None = None
    """What finds it again where it runs, or ran."""
    attached: bool = False
    """An earlier session had begun it."""
    mark: str | None = None
    """What its service knows it by before it has a call."""


class Spent(msgspec.Struct, kw_only=True, frozen=True):
    """What the attempts at one arm took in one session, whatever became of them; warm-ups are among them."""

    busy: float = 0.0
    """Seconds in bodies."""
    total: float = 0.0
    """Seconds from launch to end."""
    unfinished: int = 0
    """Attempts that were started and have no end: what they took is not known."""


@dataclass(frozen=True, kw_only=True)
class SessionFile:
    """What one session file says.

    ``header`` is ``None`` where the first line can't be read, or was not yet whole: the file then has no
    attempts.
    """

    path: Path
    header: Header | None
    attempts: list[Attempt]
    """In the order in which they were launched."""
    footer: Footer | None
    torn: bool
    """The last line is not whole, and was ignored."""
    digest: str
    """Over all whole lines."""
    problems: tuple[Problem, ...]
    spent: dict[str, Spent] = field(default_factory=dict)
    """By arm, of those that were launched."""

    @property
    def name(self) -> str:
        """``experiment/file``: the path below the evidence folder."""
        return f"{self.path.parent.name}/{self.path.name}"

    @property
    def lines(self) -> list[SessionLine]:
        """All whole lines with all that they hold, read from the file anew.

        Raises:
            msgspec.MsgspecError: a line can't be read; ``problems`` says which.
            SidecarError: a vector is gone or altered; ``problems`` says which.

        """
        with self.path.open("rb") as stream:
            return list(decode_lines(stream, beside(self.path)))
