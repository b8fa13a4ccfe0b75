"""What stands directly beside a quoted number and would be read as part of it.

The text between the marks is held to the digit, so what is left to cheat with is beside them: a digit, a
sign, a power of ten, the name of another unit. Markup that a reader does not see is looked through.
"""

from __future__ import annotations

import html
import re
import unicodedata
from typing import TYPE_CHECKING

from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from pytest_prereg.audit.citing.marks import Mark

_WINDOW = 240
"""Characters that are looked at on either side."""
_UNSEEN = re.compile(r"<!--.*?-->|</?[A-Za-z][^<>]*+>|[*_~`\\]", re.DOTALL)
_PARAGRAPH = re.compile(r"(?:\r\n|\r|\n)[ \t>]*+(?:\r\n|\r|\n)")
_BREAK = re.compile(r"[ \t]*+(?:\r\n|\r|\n)[ \t>]*+")
_END_OF_LINK = re.compile(r"\](?:\([^()\r\n]*+\)|\[[^\[\]\r\n]*+\])")

_MINUS = "\N{MINUS SIGN}"
_DASHES = "\N{HYPHEN}\N{NON-BREAKING HYPHEN}\N{FIGURE DASH}\N{EN DASH}"
_SIGN = re.compile(rf"(?:^|(?<=[\s(\[|=:<>≈]))[-+{_DASHES}]$|(?<![\d\s]){_MINUS}$|(?<!\d)\s{_MINUS}\s?$")
_LEFT = re.compile(r"[.,'\u2019^]$|[\d}]\$?\s?(?:[/×·⋅]|\$?(?:times|cdot))\$?\s?$|\d\s+$")
_RIGHT = re.compile(
    r"[.,'\u2019:]\d|\s?[/^]\s?\d|\s?[×·⋅x]\s?\d|\s+\d|\s?times\s?\d|\s?\$+\s?(?:times|cdot|[×·⋅/^]|\d)"
)
_SCALE = re.compile(r"\s?(?:hundreds?|thousand|millions?|billions?|trillions?|dozens?)\b")
_TIMES = re.compile(r"x(?!\w)")
_PREFIXED = re.compile(r"\w[-\N{HYPHEN}\N{NON-BREAKING HYPHEN}]$")
_NAMED = re.compile(r"\s*(per\s?cent\b|percent\b|percentage\b|[^\W\d][^\s|,;:.()\[\]\"'\u2019!?]*|[%‰])")
_SPELT = {"percent": "%", "percentage": "%", "hrs": "h", "hr": "h", "mins": "min"}
_PREFIXES = {
    "kilo": "k",
    "mega": "M",
    "giga": "G",
    "tera": "T",
    "peta": "P",
    "milli": "m",
    "micro": "u",
    "nano": "n",
    "pico": "p",
    "kibi": "Ki",
    "mebi": "Mi",
    "gibi": "Gi",
    "tebi": "Ti",
}
_BASES = {
    "second": "s",
    "sec": "s",
    "minute": "min",
    "hour": "h",
    "day": "day",
    "week": "week",
    "byte": "B",
    "bit": "bit",
    "watt": "W",
    "joule": "J",
    "hertz": "Hz",
    "meter": "m",
    "metre": "m",
    "gram": "g",
    "volt": "V",
    "kelvin": "K",
    "flop": "FLOP",
}
_IN_WORDS = re.compile(rf"({'|'.join(_PREFIXES)}|[mun](?=sec))?({'|'.join(_BASES)})s?", re.IGNORECASE)
_SYMBOL = re.compile(
    r"(?:[PTGMkmunp]|[KMGT]i)?(?:s|B|bits?|W|Wh|J|Hz|V|K|g|m|FLOPS?|flops?)|[kKMGT]b(?:ps)?|days?|weeks?|KB|min|h|%|‰"
)
_OVERRIDE = re.compile(r"[\u202d\u202e]|&#(?:0*823[78]|x0*202[de]);|<bdo\b", re.IGNORECASE)
"""What shows text in another order than it is written in, digits as well."""
_LINK = re.compile(r"(?<!!)\[([^\[\]\r\n]*+)\](?:\([^()\r\n]*+\)|\[[^\[\]\r\n]*+\])")
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
    if override := _OVERRIDE.search(text):
        return f"{quoted(override[0])} on this page turns text round"
    after = _seen(_PARAGRAPH.split(text[mark.end : mark.closing + _WINDOW], maxsplit=1)[0])
    before = _seen(_PARAGRAPH.split(text[max(0, mark.opening - _WINDOW) : mark.start])[-1])
    if link := _END_OF_LINK.match(after):
        before, after = before.removesuffix("["), after[link.end() :]
    after = _LINK.sub(r"\1", after)
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
        if unit and _is_unit(named[1], unit):
            return ""
        is_what = {"1": "it is a pure number", WHOLE: "it has none, or has it already"}.get(
            unit or "", f"it is in {quoted(unit)}"
        )
        return f"{quoted(named[1])} behind it is read as its unit, and {is_what}"
    if unicodedata.category(after[:1] or " ").startswith("M"):
        return "a mark that combines with its last digit is directly behind it"
    if after[:1].isalnum() and not (unit is not None and _TIMES.match(after)):
        if named and unit and named[1] == unit:
            return ""
        return f"{quoted(after[:1])} directly behind it is read as part of it"
    part = (_RIGHT.match(after) or _SCALE.match(after)) if unit is not None else None
    return f"{quoted(part[0].strip())} directly behind it is read as part of it" if part else ""


def _means_unit(word: str) -> bool:
    return _SYMBOL.fullmatch(_unit_name(word)) is not None


def _is_unit(word: str, unit: str) -> bool:
    """Whether a word behind a number names its unit, or what that begins with: ``MB`` of ``MB/s``."""
    if _unit_name(word) != _unit_name(unit):
        return False
    return "/" not in word or _rest(word) == _rest(unit)


def _rest(unit: str) -> list[str]:
    return [_unit_name(part) for part in unit.split("/")[1:]]


def _unit_name(word: str) -> str:
    """The name that decides what a word behind a number makes of it: ``ms`` of ``ms/token``."""
    spelt = _SPELT.get("".join(word.split()), word)
    first = _FIRST_NAME.match(spelt)
    name = _SPELT.get(first[0], first[0]) if first else spelt
    if words := _IN_WORDS.fullmatch(name):
        prefix = (words[1] or "").lower()
        return _PREFIXES.get(prefix, prefix) + _BASES[words[2].lower()]
    return name.replace("µ", "u").replace("μ", "u")
