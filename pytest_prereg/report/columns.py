"""Text in columns: how wide it is, how it is cut and wrapped, and how it reads in plain ASCII."""

from __future__ import annotations

import textwrap
import unicodedata
from typing import TYPE_CHECKING

from pytest_prereg.errors import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

_ASCII = str.maketrans(
    {
        "≤": "<=",
        "≥": ">=",
        "±": "+/-",
        "→": "->",
        "·": "|",
        "…": "~",
        "\N{MINUS SIGN}": "-",
        "\N{EN DASH}": "-",
        "\N{EM DASH}": "-",
        "\N{MULTIPLICATION SIGN}": "x",
        "\N{GREEK SMALL LETTER SIGMA}": "sigma",
        "µ": "u",
        "μ": "u",
        "°": "deg ",
        "²": "^2",
        "∞": "inf",
        "▒": "=",
        "▓": "#",
        "░": ".",
        "├": "[",
        "┤": "]",
        "•": "o",
        "←": "<",
    },
)


def ascii_text(text: str) -> str:
    """Return ``text`` with every character that is not ASCII replaced by what it means, or ``?``."""
    return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")


def can_draw(encoding: str | None) -> bool:
    """Say whether a stream of this encoding can show the plot and the signs of a verdict line."""
    try:
        "▒▓░├•┤←→≤≥…·".encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def width_of(text: str) -> int:
    """Return the number of terminal cells that ``text`` takes."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def _cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut(text: str, width: int) -> str:
    """Return ``text``, its end replaced by ``…`` where it is wider than ``width`` cells."""
    if width_of(text) <= width:
        return text
    return _head(text, width - 1) + "…" if width > 0 else ""


def _head(text: str, width: int) -> str:
    """Return the longest start of ``text`` that fits ``width`` cells."""
    taken = 0
    for position, character in enumerate(text):
        taken += _cells(character)
        if taken > width:
            return text[:position]
    return text


def padded(text: str, width: int) -> str:
    """Return ``text`` cut or filled to exactly ``width`` cells."""
    text = cut(text, width)
    return text + " " * (width - width_of(text))


def wrapped(text: str, width: int) -> Iterator[str]:
    """Yield ``text`` in lines of at most ``width`` cells, broken between words; a longer word is cut."""
    line = ""
    for word in visible(" ".join(text.split())).split():
        longer = f"{line} {word}" if line else word
        if line and width_of(longer) > width:
            yield line
            longer = word
        line = cut(longer, width)
    if line:
        yield line


def hanging(text: str, width: int) -> list[str]:
    """Return ``text`` in lines of at most ``width`` characters, all but the first indented.

    A longer word stays whole, as a path has to that somebody may copy.
    """
    text = " ".join(text.split())
    return textwrap.wrap(
        text, width, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )


def broken(text: str, width: int) -> list[str]:
    """Return ``text`` in lines of at most ``width`` cells, a longer word broken: nothing is cut."""
    width = max(width, 2)  # cells of the widest character
    pieces = (piece for word in text.split() for piece in _pieces(word, width))
    return list(wrapped(" ".join(pieces), width))


def _pieces(word: str, width: int) -> Iterator[str]:
    while width_of(word) > width:
        head = _head(word, width)
        yield head
        word = word[len(head) :]
    yield word
