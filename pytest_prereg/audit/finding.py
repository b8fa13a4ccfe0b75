"""What an audit, or the gate, has to say: one type for every finder and every form of report."""

from __future__ import annotations

import unicodedata
from enum import StrEnum

import msgspec


class Level(StrEnum):
    """How a finding bears on the outcome, the worst first."""

    ERROR = "error"
    REVIEW = "review"
    """Fails until a person has acknowledged it."""
    NOTICE = "notice"


class Finding(msgspec.Struct, kw_only=True, frozen=True):
    """One thing that the history, the evidence or the lock says, where, and what to do about it."""

    code: str
    """``PR201`` to ``PR216``, or the code of what the lock would refuse."""
    id: str
    """Of the prediction; of the experiment where it is about a series; empty where it is about the study."""
    level: Level
    message: str
    """One sentence, for people."""
    path: str | None = None
    """As it is seen from the current folder."""
    line: int | None = None
    """Of the prediction in its file, if it is still there."""
    commit: str | None = None
    """Where it came about, if that is committed."""
    advice: str | None = None
    about: str = ""
    """What exactly it is about (a digest, a repeat, a series, ``supported -> refuted``), the same whatever
    commit it arrives by: an acknowledgement is of this, and not of the next finding under the same id."""
    acknowledged: str | None = None
    """The reason that a person gave in the lock, or how the lock itself records it."""
    unapproved: bool = False
    """A review that the lock answers, where nobody has to approve what that says."""
    untold: bool = False
    """Not that something is wrong, but that it could not be told whether anything is."""

    @property
    def fails(self) -> bool:
        """Whether it is an error, or needs a person's eyes still."""
        return self.level is Level.ERROR or (self.level is Level.REVIEW and self.acknowledged is None)


def sound(text: str) -> str:
    """Return ``text`` as it can be written everywhere: what no line of text can hold is spelled out.

    Bytes of a file name that are not UTF-8, and characters that would act on a terminal.
    """
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if text.isprintable() else "".join(map(_sound, text))


def _sound(character: str) -> str:
    is_kept = character.isprintable() or character == "\n" or unicodedata.category(character) == "Zs"
    return character if is_kept else ascii(character)[1:-1]


_RANK = {level: rank for rank, level in enumerate(Level)}


_IN_TIME = frozenset({"PR201", "PR202"})
"""Codes whose findings are left in the order in which they come, which is that of the history."""


def by_weight(finding: Finding) -> tuple[bool, int, str, str, str, str]:
    """Sort key: what fails first, the worst level first, then code, prediction and place."""
    return (
        not finding.fails,
        _RANK[finding.level],
        finding.code,
        finding.id,
        *(("", "") if finding.code in _IN_TIME else (finding.about, finding.commit or "")),
    )
