"""Patterns of paths as CODEOWNERS files have them, and whether a path follows one.

No regular expression is made of a pattern, so that none takes long: a name is searched for what lies between
asterisks, from the left, and only the last ``**`` is ever tried again.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

Name = tuple[str, ...]
"""A name as a pattern has it: what stands between its asterisks."""

ANYTHING: Name = ("", "")
BELOW = None
"""In the place of a name: any number of folders, none as well."""

_ONE, _MANY = "\0", "\1"
"""Any one character, and any number of them: in no pattern, as the file that has these is not read."""

_RANGE = re.compile(r"\[[^][\\/]+\]")
_PIECES = re.compile(r"\*+|\?|\\.|[^\\*?]+|\\", re.DOTALL)


class Pattern(msgspec.Struct, frozen=True):
    """Which paths are meant."""

    names: tuple[Name | None, ...]
    is_sure: bool
    """Whether it is sure to be read so; else it is the widest reading, and may take in too much."""


def pattern(parts: Sequence[str]) -> Pattern:
    """The pattern of what stands between slashes; ``**`` is any number of folders, wherever it stands.

    Ranges of characters are never sure: GitHub has none, and how they end is told in several ways.
    """
    text = "/".join(parts)
    if "[" not in text and "]" not in text:
        return Pattern(tuple(_name(part) for part in parts), is_sure=not text.endswith("\\"))
    plain = _RANGE.sub("?", text)
    if "]" in plain or "\\" in plain:  # within one another, escaped, over a slash: anybody's guess
        return Pattern((BELOW,), is_sure=False)
    return Pattern(tuple(_name(part) for part in plain.split("/")), is_sure=False)


def follows(place: Sequence[str], names: Sequence[Name | None]) -> bool:
    """Whether a path, as the names between its slashes, is one of those that are meant, all of it."""
    here = at = 0
    retry: tuple[int, int] | None = None
    while here < len(place) or at < len(names):
        wanted = names[at] if at < len(names) else ()
        if wanted is BELOW:
            at += 1
            retry = (here, at)
        elif wanted and here < len(place) and _fits(place[here], wanted):
            here, at = here + 1, at + 1
        elif retry is not None and retry[0] < len(place):
            here, at = retry[0] + 1, retry[1]
            retry = (here, at)
        else:
            return False
    return True


def _name(part: str) -> Name | None:
    if part == "**":
        return BELOW
    if not any(each in part for each in "*?\\"):
        return (part,)
    return tuple("".join(map(_plain, _PIECES.findall(part))).split(_MANY))


def _plain(piece: str) -> str:
    if piece[0] == "*":
        return _MANY
    return _ONE if piece == "?" else piece.removeprefix("\\") or piece


def _fits(name: str, pieces: Name) -> bool:
    if len(pieces) == 1:
        return _is(pieces[0], name)
    first, *middle, last = pieces
    at, end = len(first), len(name) - len(last)
    if end < at or not (_is(first, name[:at]) and _is(last, name[end:])):
        return False
    for piece in middle:
        found = _find(piece, name, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True


def _find(piece: str, name: str, start: int, end: int) -> int:
    """Where the first thing that a piece stands for begins; -1 where there is none."""
    if _ONE not in piece:
        return name.find(piece, start, end)
    starts = range(start, end - len(piece) + 1)
    return next((at for at in starts if _is(piece, name[at : at + len(piece)])), -1)


def _is(piece: str, text: str) -> bool:
    if _ONE not in piece:
        return piece == text
    return len(piece) == len(text) and all(
        one in (_ONE, other) for one, other in zip(piece, text, strict=True)
    )
