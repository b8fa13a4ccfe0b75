"""Comments in the prose of a Markdown file: those that a reader does not see, and a citation is made of.

What is code is no prose: fenced and indented blocks, spans between backticks, ``<pre>`` and ``<code>``. What
is code says a parser of CommonMark, with the tables of GitHub's dialect. It tells no places within a line, so
each that matters is signed with its offset in a copy of the text, and the parser says where the signs end up.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from markdown_it.token import Token

_SIGN = "\ufdd0"
"""No character at all, to Unicode: it means nothing in Markdown, and no entity can write it."""
_SIGNED = re.compile(rf"{_SIGN}([0-9]+){_SIGN}")
_COMMENT = re.compile(rf"<!--{_SIGNED.pattern}(.*)-->", re.DOTALL)
_HYPHENS = re.compile(r"<!--(?=(-?>)?)|(?<!<!)-(?=-->)")
"""The beginning of a comment; and a hyphen before its end, which the parser would miss for it."""
_WHOLE = {">": "--", "->": "-"}
"""What makes a comment with a beginning and an end of ``<!-->`` and ``<!--->``."""
_LITERAL = re.compile(r"<(/?(?:pre|code))(?=[\s/>])", re.IGNORECASE)


class Comment(NamedTuple):
    """A comment in prose: what it says, and where it begins and ends, its signs included."""

    text: str
    """Without the signs of the quotes that it stands in."""
    start: int
    end: int


class Prose(NamedTuple):
    """A Markdown text as its reader sees it."""

    comments: list[Comment]
    """In order."""
    code: set[int]
    """Those of the places asked for that are code."""


def prose_of(text: str, places: Iterable[int] = ()) -> Prose:
    """Return the comments of a Markdown text, and which places in it are code.

    Args:
        text: The whole file.
        places: Offsets, each behind a letter or a colon. What is there and in none of the comments and not in
            code is text or not shown: the target of a link, say, or what is in lists more than nine deep.
    """
    from markdown_it import MarkdownIt  # noqa: PLC0415

    parser = MarkdownIt("commonmark").enable("table")
    html = MarkdownIt("zero", {"html": True}).enable("html_inline")
    prose = Prose([], set())
    for token in parser.parse(_signed(text, places)):
        if token.type in ("fence", "code_block"):
            prose.code.update(_signs(token.info + token.content))
        elif token.type == "html_block":
            _look(text, html.parseInline(token.content), prose)
        else:
            _look(text, [token], prose)
    prose.comments.sort(key=lambda comment: comment.start)
    return prose


def _signed(text: str, places: Iterable[int]) -> str:
    """The text without its byte order mark, signed at every place, and behind every ``<!--``."""
    text = text.replace(_SIGN, "\N{REPLACEMENT CHARACTER}")
    signs = dict.fromkeys(places, "")
    signs.update((match.end(), _WHOLE.get(match[1], "")) for match in _HYPHENS.finditer(text))
    parts, at = [], int(text.startswith("\ufeff"))
    for place, hyphens in sorted(signs.items()):
        parts += [text[at:place], f"{_SIGN}{place}{_SIGN}{hyphens}"]
        at = place
    return "".join([*parts, text[at:]])


def _signs(signed: str) -> Iterable[int]:
    return map(int, _SIGNED.findall(signed))


def _look(text: str, parents: Iterable[Token], prose: Prose) -> None:
    """Add the comments and the code that are inside of these to what is known."""
    for parent in parents:
        children = parent.children or []
        names = [_literal(child) for child in children]
        last = {name: at for at, name in enumerate(names)}
        inside = ""
        for at, (child, name) in enumerate(zip(children, names, strict=True)):
            if inside or child.type == "code_inline":
                prose.code.update(_signs(child.content))
                inside = "" if name == f"/{inside}" else inside
            elif last.get(f"/{name}", -1) > at:
                inside = name
            elif child.type == "html_inline" and (comment := _COMMENT.match(child.content)):
                start = int(comment[1]) - len("<!--")
                end = text.index("-->", start + len("<!")) + len("-->")
                prose.comments.append(Comment(_SIGNED.sub("", comment[2]), start, end))
        _look(text, children, prose)


def _literal(token: Token) -> str:
    """The name of an element whose text stands as it is, behind a slash where it ends; else nothing."""
    name = _LITERAL.match(token.content) if token.type == "html_inline" else None
    return name[1].lower() if name else ""
