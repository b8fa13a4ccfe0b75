"""Comments in the prose of a Markdown file: those that a reader does not see, and a citation is made of.

What is code is no prose: fenced and indented blocks, spans between backticks, ``<pre>`` and ``<code>``. It is
found as CommonMark does, since what is taken for code by mistake would never be checked.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

from pytest_prereg.audit.blocks import TAG, blocks_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_prereg.audit.blocks import Block

_TICKS = re.compile(r"`++")
_AUTOLINK = r"<[A-Za-z][A-Za-z0-9.+-]{1,31}:[^\s<>]*+>"
_INLINE = re.compile(
    rf"\\[!-/:-@\[-`{{-~]|(?P<ticks>`++)|(?P<tag>{TAG})|{_AUTOLINK}|(?P<open><(?:!--|\?|!\[CDATA\[|![A-Za-z]))"
)
_IN_HTML = re.compile(rf"(?P<tag>{TAG})|(?P<open><(?:!--|\?|!\[CDATA\[|![A-Za-z]))")
_CLOSERS = {"<!--": "-->", "<?": "?>", "<![CDATA[": "]]>"}
_LITERAL = re.compile(r"<(pre|code)\b", re.IGNORECASE)
_ENDS = {name: re.compile(rf"</{name}\s*+>", re.IGNORECASE) for name in ("pre", "code")}


class Comment(NamedTuple):
    """A comment in prose: what it says, and where it begins and ends, its signs included."""

    text: str
    start: int
    end: int


class Prose(NamedTuple):
    """A Markdown text as its reader sees it."""

    text: str
    """Of the same length, with spaces for all that is code, and for the signs of quotes and lists."""
    comments: list[Comment]


def prose_of(text: str) -> Prose:
    """Return the prose of a Markdown text with its comments, in time that grows with its length alone."""
    found, blanks = blocks_of(text)
    plain = _blanked(text, blanks)
    comments: list[Comment] = []
    code: list[tuple[int, int]] = []
    for block in found:
        for start, end in _parts(plain, block, comments):
            code.append((start, end))
    return Prose(_blanked(plain, code), comments)


def _blanked(text: str, stretches: Iterable[tuple[int, int]]) -> str:
    """The text with spaces in these stretches, which are in order; its lines stay."""
    parts, at = [], 0
    for start, end in stretches:
        parts += [text[at:start], re.sub(r"[^\r\n]", " ", text[start:end])]
        at = end
    return "".join([*parts, text[at:]])


def _parts(text: str, block: Block, comments: list[Comment]) -> Iterator[tuple[int, int]]:
    """Yield what is code in a block; add its comments to those that are known."""
    scanner = _Scanner(text, block)
    at, signs = block.start, _INLINE if block.kind == "text" else _IN_HTML
    while sign := signs.search(text, at, block.end):
        at = sign.end()
        if sign.lastgroup == "ticks":
            at = scanner.after_span(sign) or at
        elif sign.lastgroup == "tag":
            at = scanner.after_element(sign) or at
        elif sign.lastgroup == "open":
            at = scanner.after(sign[0], sign.start()) or at
            if sign[0] == "<!--" and at > sign.end():
                comments.append(Comment(text[sign.end() : at - 3], sign.start(), at))
            continue
        else:
            continue
        if at > sign.end():
            yield sign.start(), at


class _Scanner:
    """Finds the ends of what begins in a block; what has none is looked for once."""

    def __init__(self, text: str, block: Block) -> None:
        self.text = text
        self.block = block
        self.missing: set[str] = set()
        self._runs: dict[int, list[int]] | None = None

    def after_span(self, ticks: re.Match[str]) -> int | None:
        """Where a span of code ends: after the next run of as many backticks."""
        if self._runs is None:
            self._runs = {}
            for run in _TICKS.finditer(self.text, self.block.start, self.block.end):
                self._runs.setdefault(len(run[0]), []).append(run.start())
        starts = self._runs.get(len(ticks[0]), [])
        place = bisect_left(starts, ticks.end())
        return starts[place] + len(ticks[0]) if place < len(starts) else None

    def after_element(self, tag: re.Match[str]) -> int | None:
        """Where an element whose text stands as it is ends; ``None`` for any other tag."""
        name = _LITERAL.match(tag[0])
        if name is None or name[1].lower() in self.missing:
            return None
        end = _ENDS[name[1].lower()].search(self.text, tag.end(), self.block.end)
        if end is None:
            self.missing.add(name[1].lower())
            return None
        return end.end()

    def after(self, opener: str, start: int) -> int | None:
        """Where a comment, an instruction or a declaration ends that begins at ``start``."""
        if opener == "<!--" and (short := re.compile(r"-?>").match(self.text, start + 4, self.block.end)):
            return short.end()
        closer = _CLOSERS.get(opener, ">")
        if closer in self.missing:
            return None
        at = self.text.find(closer, start + len(opener), self.block.end)
        if at < 0:
            self.missing.add(closer)
            return None
        return at + len(closer)
