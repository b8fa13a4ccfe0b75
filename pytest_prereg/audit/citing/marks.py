"""The marks of citations in a text, and what looks like one and is none.

``<!-- prereg: REFERENCE -->TEXT<!-- /prereg -->``: the two comments are the marks, and the text between them
is the tool's, a number and nothing else. Whatever comes near to a mark is either read as one or refused, so
that nobody takes a number for checked that isn't.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from difflib import SequenceMatcher
from typing import NamedTuple

from pytest_prereg.audit.citing.markdown import Comment, prose_of
from pytest_prereg.audit.citing.references import FIELDS, TOTALS
from pytest_prereg.registry.refusals import quoted

_OPENING = re.compile(r"\s*+prereg\s*+:(?P<reference>.*+)", re.DOTALL)
_CLOSING = re.compile(r"\s*+/\s*+prereg\s*+")
_ANYWHERE = re.compile(r"<!--\s*+prereg\s*+:")
_NEAR = re.compile(
    rf"{_ANYWHERE.pattern}|<[^\w<`\r\n]{{0,9}}[!?/\u2010-\u2015-][^\w<`\r\n]{{0,9}}pre[-_ ]?reg(?![^\W_])",
    re.IGNORECASE,
)
_OURS = re.compile(r"[\W_]*+pre[-_ ]?reg(?![^\W_])", re.IGNORECASE)
_FIELD = "|".join((*FIELDS, *TOTALS))
_QUOTED_FIELD = re.compile(rf"\W*+(?:\w++\W++)??[\w-]++(?:\[[^\[\]]*+\])?\.(?:{_FIELD})(?:\s[\s\w=-]*+)?\W*+")
_FOREIGN = re.compile(r"[<>`|*_]|[\r\n][ \t>]*+[\r\n]")
_WORD = re.compile(r"[^\W_]+")
_LONGEST = 200
"""Characters of a text between marks that is written anew; what is longer is somebody's prose."""
_ALIKE = 0.75
"""From here on a word is a misspelt one (``difflib``): ``prefer`` and ``preview`` are not."""
_BREAK = re.compile(r"[\r\n][ \t>]*+")

FORM = "<!-- prereg: ID.FIELD -->text<!-- /prereg -->"


class Mark(NamedTuple):
    """A citation as it stands in a file."""

    line: int
    reference: str
    text: str
    """Between its marks, on one line and without the spaces around it."""
    start: int
    """Where the text begins in the file's; ``end`` is where it ends."""
    end: int
    opening: int
    """Where the mark before the text begins."""
    closing: int
    """Where the mark after the text ends."""
    is_plain: bool
    """Whether the text could be a number, or a word, without signs of Markdown or HTML."""


class Flaw(NamedTuple):
    """Something that is no citation and looks like one."""

    line: int
    message: str
    advice: str


class Marks(NamedTuple):
    """What a file cites."""

    found: list[Mark]
    flaws: list[Flaw]
    in_code: int
    """How many more there are in code, where they are left alone."""


def marks_of(text: str) -> Marks:
    """Return the citations of a Markdown text, in order, with everything that is nearly one."""
    near = list(_NEAR.finditer(text))
    if not near and "<!--" not in text:
        return Marks([], [], 0)
    reader = _Reader(text)
    prose = prose_of(text, [match.end() for match in near])
    for comment in prose.comments:
        reader.take(comment)
    reader.end()
    starts, in_code = [comment.start for comment in prose.comments], 0
    for match in near:
        place = bisect_right(starts, match.start()) - 1
        if match.end() in prose.code:
            in_code += _ANYWHERE.match(match[0]) is not None
        elif place < 0 or prose.comments[place].end < match.end():
            reader.refuse(match.start(), match.start() + 60, "looks like a citation and is no comment")
    return Marks(reader.found, sorted(reader.flaws), in_code)


class _Reader:
    """Pairs the marks of one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.found: list[Mark] = []
        self.flaws: list[Flaw] = []
        self.open: tuple[Comment, str] | None = None
        self._breaks = [match.end() for match in re.finditer(r"\r\n|\r|\n", text)]

    def line(self, at: int) -> int:
        return bisect_right(self._breaks, at) + 1

    def take(self, comment: Comment) -> None:
        if opening := _OPENING.fullmatch(comment.text):
            self.end()
            self.open = comment, " ".join(opening["reference"].split())
        elif _CLOSING.fullmatch(comment.text):
            self._close(comment)
        elif wrong := _nearly(comment.text):
            self.refuse(comment.start, comment.end, wrong)

    def end(self) -> None:
        """Refuse the citation that is open: another one begins, or the text ends."""
        if self.open is not None:
            comment, _ = self.open
            self.refuse(comment.start, comment.end, 'has no end: the mark "<!-- /prereg -->" is missing')
            self.open = None

    def refuse(self, start: int, end: int, wrong: str) -> None:
        self.flaws.append(Flaw(self.line(start), f"{quoted(self.text[start:end])} {wrong}", f"Write {FORM}"))

    def _close(self, comment: Comment) -> None:
        if self.open is None:
            self.refuse(comment.start, comment.end, "ends a citation that has no beginning")
            return
        (opening, reference), self.open = self.open, None
        inner = self.text[opening.end : comment.start]
        start = opening.end + len(inner) - len(inner.lstrip(" \t\r\n"))
        text = inner.strip(" \t\r\n")
        whole = " ".join(_BREAK.sub(" ", text).split(" "))
        self.found.append(
            Mark(
                line=self.line(opening.start),
                reference=reference,
                text=whole,
                start=start,
                end=start + len(text),
                opening=opening.start,
                closing=comment.end,
                is_plain=len(inner) <= _LONGEST and not _FOREIGN.search(inner),
            )
        )


def _nearly(comment: str) -> str:
    """What is wrong with a comment that is no mark and could be taken for one; else nothing."""
    plain = "".join(c for c in unicodedata.normalize("NFKC", comment) if unicodedata.category(c) != "Cf")
    if "<!--" in plain and "prereg" in plain.casefold():
        return "has a citation inside of a comment"
    if _OURS.match(plain) or _QUOTED_FIELD.fullmatch(plain):
        return "looks like a citation and is none"
    first = _WORD.search(plain)
    is_alike = first is not None and "." in plain and _is_alike(first[0].casefold(), "prereg")
    return "looks like a citation and is none" if is_alike else ""


def _is_alike(word: str, other: str) -> bool:
    return len(word) <= 2 * len(other) and SequenceMatcher(None, word, other).ratio() >= _ALIKE
