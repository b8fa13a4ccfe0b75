"""What stands directly beside a quoted number and would be read as part of it.

The text between the marks is held to the digit, so what is left to cheat with is beside them: a digit, a
sign, a power of ten, the name of another unit. Markup that a reader does not see is looked through.
"""

from __future__ import annotations

import html
import re
import unicodedata
from typing import TYPE_CHECKING

from pytest_prereg.registry.dimensions import PLAIN
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from pytest_prereg.audit.marks import Mark

_WINDOW = 240
"""Characters that are looked at on either side."""
_UNSEEN = re.compile(r"<!--.*?-->|</?[A-Za-z][^<>]*+>|[*_~`\\]", re.DOTALL)
_PARAGRAPH = re.compile(r"(?:\r\n|\r|\n)[ \t>]*+(?:\r\n|\r|\n)")
_BREAK = re.compile(r"[ \t]*+(?:\r\n|\r|\n)[ \t>]*+")
_END_OF_LINK = re.compile(r"\](?:\([^()\r\n]*+\)|\[[^\[\]\r\n]*+\])")

_MINUS = "\N{MINUS SIGN}"
_DASHES = "\N{HYPHEN}\N{NON-BREAKING HYPHEN}\N{FIGURE DASH}\N{EN DASH}"
_SIGN = re.compile(rf"(?:^|(?<=[\s(\[|=:<>≈]))[-+{_DASHES}]$|(?<![\d\s]){_MINUS}$|(?<!\d)\s{_MINUS}\s?$")
_LEFT = re.compile(r"[.,'\u2019^]$|\d\s?[/×·⋅]\s?$|\d\s+$")
_RIGHT = re.compile(r"[.,'\u2019:]\d|\s?[/^]\s?\d|\s?[×·⋅x]\s?\d|\s+\d")
_SCALE = re.compile(r"\s?(?:hundreds?|thousand|millions?|billions?|trillions?|dozens?)\b")
_TIMES = re.compile(r"x(?!\w)")
_PREFIXED = re.compile(r"\w[-\N{HYPHEN}\N{NON-BREAKING HYPHEN}]$")
_NAMED = re.compile(r"\s*(per\s?cent\b|percent\b|percentage\b|[^\W\d][^\s|,;:.()\[\]\"'\u2019!?]*|[%‰])")
_SPELT = {"percent": "%", "percentage": "%", "µs": "us", "μs": "us"}
_FIRST_NAME = re.compile(r"[^/*·^]+")

WHOLE = ""
"""As a unit: the text needs none, since it has it already or counts something."""


def beside(text: str, mark: Mark, unit: str | None) -> str:
    """Return what is wrong with the surroundings of a citation, or nothing.

    Args:
        text: The whole file.
        mark: The citation.
        unit: Of the number: ``1`` is a pure one, :data:`WHOLE` where none is to follow; ``None`` for a word.
    """
    after = _seen(_PARAGRAPH.split(text[mark.end : mark.closing + _WINDOW], maxsplit=1)[0])
    before = _seen(_PARAGRAPH.split(text[max(0, mark.opening - _WINDOW) : mark.start])[-1])
    if link := _END_OF_LINK.match(after):
        before, after = before.removesuffix("["), after[link.end() :]
    if left := _on_the_left(before, is_number=unit is not None, starts_with=mark.text[:1]):
        return f"{quoted(left.strip())} directly before it is read as part of it"
    return _on_the_right(after, unit)


def _seen(text: str) -> str:
    """The text as it is read, on one line."""
    bare = html.unescape(_UNSEEN.sub("", text))
    return "".join(c for c in _BREAK.sub(" ", bare) if unicodedata.category(c) != "Cf")


def _on_the_left(before: str, *, is_number: bool, starts_with: str) -> str:
    if before[-1:].isalnum():
        return before[-1:]
    if not is_number:
        found = _PREFIXED.search(before)
    else:
        found = _SIGN.search(before) or (_LEFT.search(before) if starts_with.isdigit() else None)
    return found[0] if found else ""


def _on_the_right(after: str, unit: str | None) -> str:
    named = _NAMED.match(after) if unit is not None else None
    if named and _means_unit(named[1]):
        own = _FIRST_NAME.match(unit or "")
        if own is not None and _unit_name(named[1]) == own[0]:
            return ""
        is_what = {"1": "it is a pure number", WHOLE: "it has none, or has it already"}.get(
            unit or "", f"it is in {quoted(unit)}"
        )
        return f"{quoted(named[1])} behind it is read as its unit, and {is_what}"
    if after[:1].isalnum() and not (unit is not None and _TIMES.match(after)):
        if named and unit and named[1] == unit:
            return ""
        return f"{quoted(after[:1])} directly behind it is read as part of it"
    part = (_RIGHT.match(after) or _SCALE.match(after)) if unit is not None else None
    return f"{quoted(part[0].strip())} directly behind it is read as part of it" if part else ""


def _means_unit(word: str) -> bool:
    return _unit_name(word) in PLAIN or word == "‰"


def _unit_name(word: str) -> str:
    """The name that decides what a word behind a number makes of it: ``ms`` of ``ms/token``."""
    spelt = _SPELT.get("".join(word.split()), word)
    first = _FIRST_NAME.match(spelt)
    return _SPELT.get(first[0], first[0]) if first else spelt
