"""Whom GitHub asks to approve a change of a path, after "About code owners" in its documentation.

The last pattern that matches decides, and one without owners asks nobody. GitHub skips lines that it can't
read. It doesn't say what all of them are, so such a line gives no owners here, and may take them away.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.audit.gating.owner_patterns import ANYTHING, BELOW, Pattern, follows, pattern

if TYPE_CHECKING:
    from collections.abc import Iterator

_GAP = re.compile(r"(?<!\\)[ \t]+")
"""Space that is not escaped."""

_COMMENT = re.compile(r"(?:^|[ \t])#")
_WORD = re.compile(r"[^ \t]+")
_OWNER = re.compile(
    r"@[A-Za-z0-9][A-Za-z0-9_-]*(?:/[A-Za-z0-9_][A-Za-z0-9._-]*)?"
    r"|[A-Za-z0-9._%+-]+@(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}"
)
"""A user, a team of an organization, an address."""


class _Rule(msgspec.Struct, frozen=True):
    pattern: Pattern
    owners: tuple[str, ...]
    is_sure: bool
    """Whether GitHub is sure to read the line, and to read it so."""


def asked_on_github(text: str, place: str) -> tuple[str, ...]:
    """Owners of a path, from the root of the repository; nobody where that is not sure."""
    names = place.split("/")
    for line in reversed(text.split("\n")):
        for rule in _rules(line.strip(" \t\r")):
            if (rule.is_sure or not rule.owners) and follows(names, rule.pattern.names):
                return rule.owners
    return ()


def _rules(line: str) -> Iterator[_Rule]:
    """What a line may be read as; none of them where it says nothing."""
    if not line or line.startswith("#"):
        return
    path, *said = _GAP.split(line, maxsplit=1)
    words = _WORD.findall(_COMMENT.split(said[0], maxsplit=1)[0]) if said else []
    owners = tuple(word for word in words if _OWNER.fullmatch(word))
    unknown = path.startswith(("!", "\\#")) or "***" in path or "#" in path
    for text in _readings(path):
        meant = _meant(text)
        if meant is not None:
            is_sure = meant.is_sure and not unknown and len(owners) == len(words)
            yield _Rule(meant, owners if text == path else (), is_sure)


def _readings(path: str) -> Iterator[str]:
    """A pattern as it stands; as what ``!`` would take away; as what stands before ``#``."""
    yield path
    if path.startswith("!"):
        yield path[1:]
    elif "#" in path and not path.startswith("\\#"):
        yield path.split("#", 1)[0]


def _meant(path: str) -> Pattern | None:
    """The pattern by gitignore's rules, and GitHub's exception that ``docs/*`` goes no deeper.

    One with a slash before its end begins at the root. What it matches may be a folder, and then all that is
    below is meant; with a slash at its end it has to be one.
    """
    text = path.replace("\\/", "/")
    parts = text.removeprefix("/").removesuffix("/").split("/")
    named = [part for part in parts if part]
    if not named:
        return None
    is_odd = text != path or len(named) < len(parts) or (named[-1] == "**" and text.endswith("/"))
    inner = pattern(named[:-1] if named[-1] == "**" else named)
    begin = () if "/" in text[:-1] else (BELOW,)
    return Pattern((*begin, *inner.names, *_end(text, named[-1])), is_sure=inner.is_sure and not is_odd)


def _end(text: str, last: str) -> tuple[tuple[str, ...] | None, ...]:
    """What follows the names of a pattern."""
    if text.endswith("/") or last == "**":
        return (BELOW, ANYTHING)
    return () if last == "*" else (BELOW,)
