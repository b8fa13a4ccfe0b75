"""Everything that pytest-prereg raises, in one tree.

PreregError
├── StudyError       the prediction file, its experiments or its lock are wrong
├── EvidenceError    evidence is unreadable, altered, or does not fit the study
├── HistoryError     git could not tell
├── AnchorError      a time-stamp can't be had, or can't be verified
├── JudgeError       a recorded value that no verdict can be built on
├── MeasureError     nothing could be launched
└── UsageError       a command or option that makes no sense as typed

Each carries one or more problems, so that all errors of a file are told at once.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def visible(text: str) -> str:
    """Return ``text`` with each character that could not be seen spelled out: none acts on a terminal."""
    return text if text.isprintable() else "".join(map(_seen, text))


def one_line(text: str) -> str:
    """Return ``text`` as it is shown inside a sentence, whatever somebody wrote into a lock or a file."""
    return visible(" ".join(text.split()))


def _seen(character: str) -> str:
    if character.isprintable():
        return character
    return " " if unicodedata.category(character) == "Zs" else ascii(character)[1:-1]


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing that is wrong, where, and what to do about it.

    Renders as ``path:line: PRnnn: message``; ``advice`` follows on lines of its own.
    """

    code: str
    message: str
    path: str | None = None
    line: int | None = None
    advice: str | None = None

    def __str__(self) -> str:
        place = ":".join(visible(str(part)) for part in (self.path, self.line) if part is not None)
        head = f"{place}: " if place else ""
        message = "\n".join(visible(line.expandtabs(4)) for line in self.message.split("\n"))
        tail = "".join(f"\n    {visible(line)}" for line in (self.advice or "").splitlines())
        return f"{head}{self.code}: {message}{tail}"


class PreregError(Exception):
    """Base of all errors; ``problems`` is never empty."""

    def __init__(self, problems: Problem | Sequence[Problem]) -> None:
        self.problems: tuple[Problem, ...] = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class StudyError(PreregError):
    """The prediction file, its experiments or its lock are wrong."""


class EvidenceError(PreregError):
    """Evidence is unreadable, altered, or does not fit the study."""


class HistoryError(PreregError):
    """Git could not tell."""


class AnchorError(PreregError):
    """A time-stamp can't be had, or can't be verified."""


class JudgeError(PreregError):
    """A recorded value that no verdict can be built on."""


class MeasureError(PreregError):
    """Nothing could be launched."""


class UsageError(PreregError):
    """A command or option that makes no sense as typed."""
