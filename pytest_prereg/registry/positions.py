"""The line of any key of a TOML text; ``tomllib`` keeps none.

The scanner takes the text to be valid TOML, or valid up to a key that is given twice. One fast pass finds the
table headers; the body of a table is read only when a line inside it is asked for, so a file without errors
pays little.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Path = tuple[str | int, ...]

_STRING = (
    r'"""(?:[^"\\]++|\\.|"{1,2}+(?!"))*+"{3,5}'
    r"|'''(?:[^']++|'{1,2}+(?!'))*+'{3,5}"
    r'|"(?:[^"\\\n]++|\\.)*+"'
    r"|'[^'\n]*+'"
)
_MARK = re.compile(rf"{_STRING}|#[^\n]*+|[\[\]{{}}]", re.DOTALL)
_BLANK = re.compile(r"(?:[ \t\r\n]++|#[^\n]*+)*+")
_KEY = re.compile(
    r"[ \t]*(?:([A-Za-z0-9_-]+)|(\"(?:[^\"\\\n]++|\\.)*+\")|'([^'\n]*+)')[ \t]*(\.?)", re.DOTALL
)
_VALUE = re.compile(rf"{_STRING}|[^,\]}}\n#]++", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_ESCAPED = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", "e": "\x1b"}


class Duplicate(NamedTuple):
    """A key or table that is given again."""

    keys: Path
    line: int
    first: int


@dataclass(frozen=True, kw_only=True)
class _Body:
    path: Path
    start: int
    end: int
    line: int


class Positions:
    """Lines of the keys of one TOML text, found when asked for."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines: dict[Path, int] = {}
        self._bodies: dict[Path, list[_Body]] | None = None
        self._read: set[Path] = set()
        self._duplicates: list[Duplicate] = []

    def line(self, *keys: str | int) -> int:
        """The 1-based line of ``keys``, or of the nearest table around them that the text has."""
        self._find_bodies()
        if keys not in self._lines:
            for size in range(len(keys), -1, -1):
                self._read_bodies(keys[:size])
        return next(
            (self._lines[keys[:size]] for size in range(len(keys), 0, -1) if keys[:size] in self._lines), 1
        )

    def duplicates(self) -> list[Duplicate]:
        """Every key that its table already had, and every table that is opened again."""
        for path in self._find_bodies():
            self._read_bodies(path)
        return sorted(self._duplicates, key=lambda duplicate: duplicate.line)

    def _find_bodies(self) -> dict[Path, list[_Body]]:
        if self._bodies is None:
            self._bodies = {}
            for body in _bodies(self._text, self._note_header):
                self._bodies.setdefault(body.path, []).append(body)
        return self._bodies

    def _note_header(self, path: Path, line: int) -> None:
        if path in self._lines and path in (self._bodies or {}):
            self._duplicates.append(Duplicate(path, line, self._lines[path]))
        for size in range(len(path), 0, -1):
            if self._lines.setdefault(path[:size], line) != line:
                break

    def _read_bodies(self, path: Path) -> None:
        if path not in self._read:
            self._read.add(path)
            for body in self._find_bodies().get(path, ()):
                _read_body(self._text, body, self._note_key)

    def _note_key(self, path: Path, depth: int, line: int) -> None:
        if path in self._lines:
            self._duplicates.append(Duplicate(path, line, self._lines[path]))
        for size in range(len(path), depth, -1):
            self._lines.setdefault(path[:size], line)


class _LostError(Exception):
    """The text is not what valid TOML has here."""


class _Cursor:
    """A place in the text that knows its line."""

    def __init__(self, text: str, position: int, line: int) -> None:
        self.text = text
        self.position = position
        self.line = line

    def move(self, position: int) -> None:
        self.line += self.text.count("\n", self.position, position)
        self.position = position

    def skip_blank(self) -> str:
        """The next sign that counts, which is not consumed."""
        if blank := _BLANK.match(self.text, self.position):
            self.move(blank.end())
        return self.text[self.position : self.position + 1]

    def take(self, sign: str) -> None:
        if self.text[self.position : self.position + 1] != sign:
            raise _LostError
        self.position += 1


def _bodies(text: str, note: Callable[[Path, int], None]) -> Iterator[_Body]:
    """The root's body and that of each header, in order; each header is noted with its line."""
    cursor, arrays = _Cursor(text, 0, 1), dict[Path, int]()
    path: Path = ()
    start, start_line = 0, 1
    for place in _header_places(text):
        yield _Body(path=path, start=start, end=place, line=start_line)
        cursor.move(place)
        try:
            path = _header(cursor, arrays)
        except _LostError:
            return
        note(path, cursor.line)
        start, start_line = cursor.position, cursor.line
    yield _Body(path=path, start=start, end=len(text), line=start_line)


def _header_places(text: str) -> Iterator[int]:
    depth = 0
    for mark in _MARK.finditer(text):
        place = mark.start()
        sign = text[place]
        if sign == "[" and not depth and not text[text.rfind("\n", 0, place) + 1 : place].strip():
            yield place
        elif sign in "[{":
            depth += 1
        elif sign in "]}":
            depth = max(depth - 1, 0)


def _header(cursor: _Cursor, arrays: dict[Path, int]) -> Path:
    cursor.take("[")
    array = cursor.text[cursor.position : cursor.position + 1] == "["
    if array:
        cursor.take("[")
    path: Path = ()
    for key in _dotted_key(cursor):
        path = (*path, arrays[path]) if path in arrays else path
        path = (*path, key)
    if array:
        arrays[path] = arrays.get(path, -1) + 1
        cursor.take("]")
    cursor.take("]")
    return (*path, arrays[path]) if path in arrays else path


def _read_body(text: str, body: _Body, note: Callable[[Path, int, int], None]) -> None:
    cursor = _Cursor(text, body.start, body.line)
    try:
        while cursor.skip_blank() and cursor.position < body.end:
            _assignment(cursor, body.path, note)
    except (_LostError, RecursionError):  # what was read so far is still right
        return


def _assignment(cursor: _Cursor, parent: Path, note: Callable[[Path, int, int], None]) -> None:
    path = (*parent, *_dotted_key(cursor))
    note(path, len(parent), cursor.line)
    cursor.take("=")
    _value(cursor, path, note)


def _value(cursor: _Cursor, path: Path, note: Callable[[Path, int, int], None]) -> None:
    sign = cursor.skip_blank()
    if sign == "[":
        _items(cursor, "]", lambda index: _element(cursor, (*path, index), note))
    elif sign == "{":
        _items(cursor, "}", lambda _: _assignment(cursor, path, note))
    elif scalar := _VALUE.match(cursor.text, cursor.position):
        cursor.move(scalar.end())
    else:
        raise _LostError


def _element(cursor: _Cursor, path: Path, note: Callable[[Path, int, int], None]) -> None:
    note(path, len(path) - 1, cursor.line)
    _value(cursor, path, note)


def _items(cursor: _Cursor, end: str, read: Callable[[int], None]) -> None:
    cursor.position += 1
    index = 0
    while cursor.skip_blank() != end:
        read(index)
        index += 1
        if cursor.skip_blank() == ",":
            cursor.take(",")
    cursor.take(end)


def _dotted_key(cursor: _Cursor) -> list[str]:
    keys = []
    while match := _KEY.match(cursor.text, cursor.position):
        cursor.move(match.end())
        bare, basic, literal, dot = match.groups()
        keys.append(bare or (_ESCAPE.sub(_unescaped, basic[1:-1]) if basic else literal))
        if not dot:
            return keys
    raise _LostError


def _unescaped(match: re.Match[str]) -> str:
    code = match[1] or match[2]
    if code:
        return chr(min(int(code, 16), 0x10FFFF))
    return _ESCAPED.get(match[3], match[3])
