"""What an instrument hands over: a reading, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What one instrument read over one window."""

    value: float
    """In the unit of its :class:`~pytest_prereg.registry.instruments.InstrumentKind`."""
    instrument: str
    """What took it: one that falls back to another says so here."""
    details: dict[str, Any] = field(default_factory=dict)
    """What else it saw, in JSON's types; kept as a diagnostic, never judged."""


class Reached(NamedTuple):
    """How far a peak had come at a moment of the window."""

    value: float = 0.0
    growth: float = 0.0
    """Above what there was when the window began."""

    def highest(self, other: Reached) -> Reached:
        """Return what is higher of two windows, each by itself."""
        return Reached(max(self.value, other.value), max(self.growth, other.growth))


NOWHERE = Reached()


class UnreadableError(Exception):
    """There is no reading, for the reason that the message says: a clause, such as ``the driver says …``.

    Not supported, or not to be trusted: in either case a repeat that needs it is invalid, never 0.
    """


class Reader(Protocol):
    """Takes one reading over one window; made anew for each.

    ``start`` and ``stop`` enclose the window and are called once each, ``stop`` also where the body raised;
    ``reading`` comes after ``stop``, and not where the body raised. Each may raise :class:`UnreadableError`,
    and nothing else; where ``start`` does, neither of the others is called.
    """

    def start(self) -> None:
        """Begin the window, the accelerator being idle."""

    def stop(self) -> None:
        """End the window, and all that was started for it."""

    def reading(self) -> Reading:
        """Return what was read."""
