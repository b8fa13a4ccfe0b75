"""Whom GitLab asks to approve a change of a path, after "Syntax of CODEOWNERS file" in its documentation.

Every section decides for itself, by its last entry that matches, and each of them has to approve. What the
documentation leaves open is as GitLab's own code has it (``ee/lib/gitlab/code_owners``). Where that differs
from what is documented, somebody is asked only if both say so.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.audit.gating.owner_patterns import Pattern, follows, pattern

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_UNNAMED = "codeowners"
"""The section before the first heading; GitLab lets another one of this name join it."""

_HEADING = re.compile(r"(\^?)\[(.*?)\](?:\[\d*\])?(\s+[@\w.\-/\s+]*)?", re.ASCII)
"""As GitLab has it: what follows is not looked at."""

_TITLE = re.compile(r"\^?\[[^\[\]]+\](?:\[\d*\])?(?=[ \t]|$)")
_GAP = re.compile(r"(?<!\\)[ \t]+")
_COMMENT = re.compile(r"(?:^|[ \t])#")
_WORD = re.compile(r"[^ \t]+")
_NAME = r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?"
_OWNER = re.compile(
    rf"@{_NAME}(?:/{_NAME})*|@@(?:developer|maintainer|owner)s?"
    r"|[A-Za-z0-9._%+-]+@(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}"
)
"""A user, a group or one of its groups, a role, an address."""


class _Section(msgspec.Struct, frozen=True):
    name: str
    is_optional: bool = False
    owners: tuple[str, ...] = ()
    """Of entries that name nobody."""


class _Entry(msgspec.Struct, frozen=True):
    section: _Section
    path: str
    pattern: Pattern
    owners: tuple[str, ...]
    is_exclusion: bool


def asked_on_gitlab(text: str, place: str) -> tuple[str, ...]:
    """Owners of a path, from the root of the repository, by every section that has to approve."""
    sections: dict[str, list[_Entry]] = {}
    for entry in _entries(text):
        sections.setdefault(entry.section.name, []).append(entry)
    names = place.split("/")
    asked = (owner for entries in sections.values() for owner in _deciding(entries, names))
    return tuple(dict.fromkeys(asked))


def has_sections(text: str) -> bool:
    """Whether a file has a heading, as only GitLab's have."""
    lines = (line.strip(" \t\r") for line in text.split("\n"))
    return any(_is_heading(line) for line in lines if line.startswith(("[", "^")))


def _is_heading(line: str) -> bool:
    title = _TITLE.match(line)
    return title is not None and all("@" in word for word in _words(line[title.end() :]))


def _entries(text: str) -> Iterator[_Entry]:
    section = _Section(_UNNAMED)
    for line in (line.strip(" \t\r") for line in text.split("\n")):
        if not line or line.startswith("#"):
            continue
        heading = _HEADING.match(line)
        if heading is None:
            yield _entry(line, section)
        else:
            section = _Section(heading[2].casefold(), bool(heading[1]), _owners(heading[3] or ""))


def _entry(line: str, section: _Section) -> _Entry:
    path, *said = _GAP.split(line, maxsplit=1)
    owners = _owners(said[0]) if said else section.owners
    whole = _whole(path.removeprefix("!"))
    return _Entry(section, whole, _meant(whole), owners, path.startswith("!"))


def _words(said: str) -> list[str]:
    """What stands before a comment; GitLab reads on, and says that it has none."""
    return _WORD.findall(_COMMENT.split(said, maxsplit=1)[0])


def _owners(said: str) -> tuple[str, ...]:
    return tuple(word for word in _words(said) if _OWNER.fullmatch(word))


def _deciding(entries: Sequence[_Entry], names: Sequence[str]) -> tuple[str, ...]:
    """Owners by a section: of its last entry that matches, unless any excludes the path.

    Where a pattern is there twice the second one counts, which is the last by what is documented; GitLab's
    code has it in the place of the first.
    """
    kept = {entry.path: entry for entry in entries}
    if all(entry.section.is_optional for entry in kept.values()):
        return ()
    matching = [entry for entry in entries if follows(names, entry.pattern.names)]
    sure = [entry for entry in matching if entry.pattern.is_sure or not entry.owners]
    if not sure or any(entry.is_exclusion for entry in matching):
        return ()
    *_, last = {entry.path: entry for entry in sure}.values()
    return sure[-1].owners if last.owners else ()


def _whole(path: str) -> str:
    """A pattern from the root on, as GitLab's code has it: by this one is the same as another.

    It begins anywhere unless with a slash; a folder is meant with all below only where a slash ends it.
    """
    if path == "*":
        return "/**/*"
    text = re.sub(r"\\[ \t]", " ", path.removeprefix("\\") if path.startswith("\\#") else path)
    whole = text if text.startswith("/") else f"/**/{text}"
    return f"{whole}**/*" if whole.endswith("/") else whole


def _meant(whole: str) -> Pattern:
    """The pattern as Ruby's ``fnmatch`` reads it."""
    text = whole.replace("\\/", "/")
    *above, last = text.removeprefix("/").split("/")
    inner = pattern([*above, "*" if last == "**" else last])
    return Pattern(inner.names, is_sure=inner.is_sure and text == whole)
