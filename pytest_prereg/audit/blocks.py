"""The blocks of a Markdown text: which of its lines are code, and which belong together.

The first phase of CommonMark 0.31 (https://spec.commonmark.org/0.31.2/#phase-1-block-structure), with the
tables of GitHub's dialect: quotes and list items hold other blocks, fences and indentation make code, HTML
ends by rules of its own. Nothing is rendered, so all that is neither code nor HTML is text.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

_DEEPEST = 32
"""Nesting beyond this is text: a line of thousands of markers would be walked through by every later one."""
_CODE_INDENT = 4
_QUOTE = 0
"""A quote among the containers; a list item is there with the columns that its content is indented by."""

_LINE = re.compile(r"[^\r\n]*+(?:\r\n|\r|\n)?")
_FENCE = re.compile(r"(?:(`{3,})[^`]*+|(~{3,}).*+)$")
_HEADING = re.compile(r"#{1,6}(?: |$)")
_UNDERLINE = re.compile(r"(?:=++|-++) *+$")
_RULE = re.compile(r"(?:(?:\* *+){3,}+|(?:- *+){3,}+|(?:_ *+){3,}+)$")
_MARKER = re.compile(r"(?:[-+*]|([0-9]{1,9})[.)])(?= |$)")
_DELIMITERS = re.compile(r"[ \t]*+\|?(?:[ \t]*+:?-++:?[ \t]*+\|)*+(?:[ \t]*+:?-++:?)?+[ \t]*+$")
_CELL = re.compile(r"(?:[^|\\]|\\.?)++")

_NAMES = """address article aside base basefont blockquote body caption center col colgroup dd details
dialog dir div dl dt fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hr
html iframe legend li link main menu menuitem nav noframes ol optgroup option p param search section summary
table tbody td tfoot th thead title tr track ul""".split()  # noqa: SIM905 - a list of quoted names would take thirty lines
_VALUE = r"""(?:[^\s"'=<>`]++|'[^']*+'|"[^"]*+")"""
_ATTRIBUTE = rf"\s++[A-Za-z_:][A-Za-z0-9_.:-]*+(?:\s*+=\s*+{_VALUE})?+"
TAG = rf"<(?:[A-Za-z][A-Za-z0-9-]*+(?:{_ATTRIBUTE})*+\s*+/?|/[A-Za-z][A-Za-z0-9-]*+\s*+)>"
"""An opening or closing tag of HTML, as CommonMark reads it."""

_RAW = re.compile(r"<(?:script|pre|style|textarea)(?:[ >]|$)", re.IGNORECASE)
_END_OF_RAW = re.compile(r"</(?:script|pre|style|textarea)>", re.IGNORECASE)
_ELEMENT = re.compile(rf"</?(?:{'|'.join(_NAMES)})(?: |/?>|$)", re.IGNORECASE)
_LONE_TAG = re.compile(rf"{TAG} *+$")
_HTML: tuple[tuple[re.Pattern[str], re.Pattern[str] | None], ...] = (
    (_RAW, _END_OF_RAW),
    (re.compile(r"<!--"), re.compile(r"-->")),
    (re.compile(r"<\?"), re.compile(r"\?>")),
    (re.compile(r"<!\[CDATA\["), re.compile(r"\]\]>")),
    (re.compile(r"<![A-Za-z]"), re.compile(r">")),
    (_ELEMENT, None),
    (_LONE_TAG, None),
)
"""How a block of HTML begins, and ends: ``None`` at an empty line. The last kind interrupts no paragraph."""


class Block(NamedTuple):
    """A stretch of a text whose inline parts belong together, from ``start`` up to ``end``."""

    kind: Literal["text", "html"]
    start: int
    end: int


class Blocks(NamedTuple):
    """What a text is made of."""

    found: list[Block]
    """Text and HTML, in order; of a table each cell."""
    blanks: list[tuple[int, int]]
    """Stretches that are code, or the signs of quotes and lists, in order."""


def blocks_of(text: str) -> Blocks:
    """Return the blocks of a text, in time that grows with its length alone."""
    reader = _Reader(text)
    for match in _LINE.finditer(text):
        content = match[0].rstrip("\r\n")
        if not content and not reader.containers and reader.leaf in (None, "text"):
            reader.close()
        elif match[0]:
            reader.read(_Line(match.start(), content, content.expandtabs(_CODE_INDENT)))
    reader.close()
    return Blocks(reader.found, reader.blanks)


class _Line(NamedTuple):
    """One line: where it starts, what it says, and that with its tabs as spaces."""

    start: int
    content: str
    columns: str

    @property
    def end(self) -> int:
        return self.start + len(self.content)

    def offset(self, column: int) -> int:
        """Where in the text a column of the line is."""
        if len(self.content) == len(self.columns):
            return self.start + column
        at = 0
        for index, character in enumerate(self.content):
            if at >= column:
                return self.start + index
            at += _CODE_INDENT - at % _CODE_INDENT if character == "\t" else 1
        return self.end


class _Place(NamedTuple):
    """How far a line has been read: inside how many containers, and up to which column."""

    depth: int
    column: int
    indent: int
    """Spaces from there on."""
    is_blank: bool
    """Whether nothing but spaces follows."""

    @property
    def start(self) -> int:
        return self.column + self.indent

    @property
    def is_indented(self) -> bool:
        return self.indent >= _CODE_INDENT


class _Fence(NamedTuple):
    sign: str
    length: int


class _Html(NamedTuple):
    end: re.Pattern[str] | None


def _place(columns: str, depth: int, column: int) -> _Place:
    start = column
    while columns.startswith(" ", start):
        start += 1
    return _Place(depth, column, start - column, start >= len(columns))


class _Reader:
    """Reads line after line; what is open is a row of containers with one leaf inside the last."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.found: list[Block] = []
        self.blanks: list[tuple[int, int]] = []
        self.containers: list[int] = []
        self.leaf: _Fence | _Html | Literal["text", "table", "code"] | None = None
        self.lines: list[tuple[int, int]] = []
        """Of the text, the table or the HTML that is open."""
        self.is_lazy = False
        """Whether the last line of the paragraph left out signs of a container: no table begins with it."""
        self.bare: int | None = None
        """Depth of a list item that has nothing but its marker so far."""

    def read(self, line: _Line) -> None:
        place = self._continued(line)
        self.bare = None
        if self.leaf not in (None, "text", "table"):
            if place.depth == len(self.containers) and self._goes_on(line, place):
                return
            self.close()
        self._begin(line, place)

    def close(self) -> None:
        """End the leaf that is open."""
        if self.lines and isinstance(self.leaf, _Html):
            self.found.append(Block("html", self.lines[0][0], self.lines[-1][1]))
        elif self.leaf == "table":
            cells = (cell.span() for line in self.lines for cell in _CELL.finditer(self.text, *line))
            self.found += (Block("text", *span) for span in cells)
        elif self.lines:
            self.found.append(Block("text", self.lines[0][0], self.lines[-1][1]))
        self.leaf, self.lines = None, []

    def _continued(self, line: _Line) -> _Place:
        """How far the line goes on with the containers that are open."""
        place = _place(line.columns, 0, 0)
        for depth, width in enumerate(self.containers):
            if width == _QUOTE:
                if place.is_indented or not line.columns.startswith(">", place.start):
                    break
                column = self._past_quote(line, place)
            elif place.indent >= width:
                column = place.column + width
            elif place.is_blank and self.bare != depth:
                column = place.start
            else:
                break
            place = _place(line.columns, depth + 1, column)
        return place

    def _past_quote(self, line: _Line, place: _Place) -> int:
        sign = line.offset(place.start)
        self.blanks.append((sign, sign + 1))
        return place.start + 1 + line.columns.startswith(" ", place.start + 1)

    def _goes_on(self, line: _Line, place: _Place) -> bool:
        """Take a line that belongs to the code or the HTML that is open; return whether it does."""
        if isinstance(self.leaf, _Html):
            return self._html_goes_on(self.leaf, line, place)
        if self.leaf == "code" and not place.is_indented and not place.is_blank:
            return False
        self.blanks.append((line.offset(place.column), line.end))
        if isinstance(self.leaf, _Fence) and not place.is_indented:
            rest = line.columns[place.start :].rstrip(" ")
            if len(rest) >= self.leaf.length and not rest.strip(self.leaf.sign):
                self.close()
        return True

    def _html_goes_on(self, html: _Html, line: _Line, place: _Place) -> bool:
        if html.end is None and place.is_blank:
            return False
        self.lines.append((line.offset(place.column), line.end))
        if html.end is not None and html.end.search(line.columns, place.column):
            self.close()
        return True

    def _begin(self, line: _Line, place: _Place) -> None:
        """Open what the line begins, container by container, or add it to the paragraph that is open."""
        inside = self._container(line, place)
        while inside is not None:
            place = inside
            inside = self._container(line, place)
        if place.is_blank:
            self._leave(place.depth)
        elif place.is_indented and self.leaf != "text":
            self._leave(place.depth)
            self.leaf = "code"
            self.blanks.append((line.offset(place.column), line.end))
        elif place.is_indented or not self._leaf(line, place):
            self._add(line, place)

    def _add(self, line: _Line, place: _Place) -> None:
        """Add a line to the table or the paragraph that is open, however lazily, or else begin one."""
        is_row = self.leaf == "table" and place.depth == len(self.containers)
        if not is_row and self.leaf != "text":
            self._leave(place.depth)
            self.leaf, self.is_lazy = "text", False
        was_lazy, self.is_lazy = self.is_lazy, place.depth < len(self.containers)
        self.lines.append((line.offset(place.start), line.end))
        if not is_row and not was_lazy and not self.is_lazy and _is_head(self.text, self.lines[-2:]):
            *above, head, below = self.lines
            self.lines = above
            self.close()
            self.leaf, self.lines = "table", [head, below]

    def _leave(self, depth: int) -> None:
        """End whatever is open deeper than that."""
        self.close()
        del self.containers[depth:]

    def _in_paragraph(self, place: _Place) -> bool:
        """Whether the line goes on with a paragraph by its indentation, not just by being lazy."""
        return self.leaf == "text" and place.depth == len(self.containers)

    def _container(self, line: _Line, place: _Place) -> _Place | None:
        """Open the quote or the list item that begins here; return what is inside of it."""
        if place.is_blank or place.is_indented or place.depth >= _DEEPEST:
            return None
        if line.columns.startswith(">", place.start):
            self._leave(place.depth)
            self.containers.append(_QUOTE)
            return _place(line.columns, place.depth + 1, self._past_quote(line, place))
        return self._item(line, place)

    def _item(self, line: _Line, place: _Place) -> _Place | None:
        marker = _MARKER.match(line.columns, place.start)
        if marker is None or self._is_other(line, place):
            return None
        after = _place(line.columns, place.depth + 1, marker.end())
        if self._in_paragraph(place) and (after.is_blank or marker[1] not in (None, "1")):
            return None
        self._leave(place.depth)
        column = marker.end() + 1 if after.is_blank or after.indent > _CODE_INDENT else after.start
        self.containers.append(column - place.column)
        self.blanks.append((line.offset(place.start), line.offset(marker.end())))
        self.bare = place.depth if after.is_blank else None
        return _place(line.columns, place.depth + 1, min(column, len(line.columns)))

    def _is_other(self, line: _Line, place: _Place) -> bool:
        """Whether what could be the marker of a list is a rule, or underlines a heading."""
        if _RULE.match(line.columns, place.start):
            return True
        return self._in_paragraph(place) and _UNDERLINE.match(line.columns, place.start) is not None

    def _leaf(self, line: _Line, place: _Place) -> bool:
        """Open the leaf that begins here, a paragraph apart; return whether there is one."""
        if _HEADING.match(line.columns, place.start):
            self._leave(place.depth)
            self.found.append(Block("text", line.offset(place.start), line.end))
        elif fence := _FENCE.match(line.columns, place.start):
            self._leave(place.depth)
            signs = fence[1] or fence[2]
            self.leaf = _Fence(signs[0], len(signs))
            self.blanks.append((line.offset(place.start), line.end))
        elif not self._html(line, place):
            return self._ends_paragraph(line, place)
        return True

    def _html(self, line: _Line, place: _Place) -> bool:
        if not line.columns.startswith("<", place.start):
            return False
        for start, end in _HTML:
            if start.match(line.columns, place.start) and not (self.leaf == "text" and start is _LONE_TAG):
                self._leave(place.depth)
                self.leaf = _Html(end)
                return self._html_goes_on(self.leaf, line, place)
        return False

    def _ends_paragraph(self, line: _Line, place: _Place) -> bool:
        """Whether the line is a rule, or underlines the heading that the paragraph is."""
        if not self._is_other(line, place):
            return False
        self._leave(place.depth)
        return True


def _is_head(text: str, lines: list[tuple[int, int]]) -> bool:
    """Whether a table begins: two lines, the first with as many cells as the other has delimiters."""
    line, below = (text[start:end] for start, end in lines) if len(lines) > 1 else ("", "")
    return "-" in below and _DELIMITERS.match(below) is not None and _cells(line) == _cells(below)


def _cells(row: str) -> int:
    inner = row.strip().removeprefix("|")
    parts = _CELL.sub("x", inner)
    return parts.removesuffix("|").count("|") + 1
