"""From the text of a CSV or JSON file to records that know their lines; their meaning comes later.

CSV has a header row, commas, any order of columns; a byte-order mark, either line ending and blank lines do
no harm. JSON is a list of objects, or one object after the other.
"""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.evidence.importers.complaints import Complaints


class Record(NamedTuple):
    """One row: its line in the file, and its cells by column."""

    line: int
    cells: dict[str, Any]
    """Text from CSV; from JSON whatever the object holds. Empty cells and nulls are left out."""


def read_records(data: bytes, *, is_json: bool, complaints: Complaints) -> list[Record]:
    """Return the rows of a file.

    Raises:
        EvidenceError: it is not the text, CSV or JSON that it should be.

    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        complaints.fail("PR110", "the file is not UTF-8 text", line=line, advice="Save it as UTF-8.")
    records = list((_json_records if is_json else _csv_records)(text, complaints))
    if not records:
        complaints.raise_if_any()
        complaints.fail("PR110", "the file has no rows")
    return records


def _csv_records(text: str, complaints: Complaints) -> Iterator[Record]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    columns: list[str] | None = None
    for line, cells in _csv_rows(reader, complaints):
        if columns is None:
            columns = cells
            _check_columns(columns, line, complaints)
        elif len(cells) != len(columns):
            message = f"{len(cells)} cells where the header has {len(columns)}: {','.join(cells)!r}"
            complaints.add("PR111", message, line=line)
        else:
            yield Record(line, {column: cell for column, cell in zip(columns, cells, strict=True) if cell})


def _csv_rows(reader: Any, complaints: Complaints) -> Iterator[tuple[int, list[str]]]:
    """Yield first line and stripped cells of every row that is not blank."""
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            complaints.fail("PR110", f"the file is not CSV: {error}", line=line)
        if row is None:
            return
        cells = [cell.strip() for cell in row]
        if any(cells):
            yield line, cells


def _check_columns(columns: list[str], line: int, complaints: Complaints) -> None:
    if len(columns) == 1 and any(mark in columns[0] for mark in ";\t|"):
        complaints.fail("PR110", f"the columns are not separated by commas: {columns[0]!r}", line=line)
    for column in sorted({column for column in columns if columns.count(column) > 1}):
        complaints.fail("PR111", f'two columns are called "{column}"', line=line)


def _json_records(text: str, complaints: Complaints) -> Iterator[Record]:
    lines = _LineCounter(text)
    for position, value in _json_values(text, complaints):
        line = lines.at(position)
        if isinstance(value, dict):
            yield Record(line, {key: cell for key, cell in value.items() if cell is not None and cell != ""})
        else:
            complaints.add("PR110", f"a row must be an object, this is {json.dumps(value)[:60]}", line=line)


def _json_values(text: str, complaints: Complaints) -> Iterator[tuple[int, Any]]:
    """Yield position and value of the elements of a list, or of values that follow each other."""
    decoder = json.JSONDecoder(object_pairs_hook=_no_duplicates)
    position = _skip(text, 0)
    in_list = text.startswith("[", position)
    position = _skip(text, position + in_list)
    while position < len(text) and not (in_list and text.startswith("]", position)):
        value, end = _decode(decoder, text, position, complaints)
        yield position, value
        position = _skip(text, end)
        if in_list and not text.startswith("]", position):
            position = _comma(text, position, complaints)
    if in_list:
        _check_end(text, position, complaints)


def _decode(decoder: json.JSONDecoder, text: str, position: int, complaints: Complaints) -> tuple[Any, int]:
    try:
        return decoder.raw_decode(text, position)
    except RecursionError:
        _not_json("it is nested too deep", text, 0, complaints)
    except json.JSONDecodeError as error:
        _not_json(error.msg, text, error.pos, complaints)
    except ValueError as error:
        _not_json(str(error), text, position, complaints)


def _comma(text: str, position: int, complaints: Complaints) -> int:
    if not text.startswith(",", position):
        _not_json("a comma or the end of the list is missing", text, position, complaints)
    return _skip(text, position + 1)


def _check_end(text: str, position: int, complaints: Complaints) -> None:
    if position == len(text):
        _not_json("the end of the list is missing", text, position, complaints)
    position = _skip(text, position + 1)
    if position < len(text):
        _not_json("text follows the list", text, position, complaints)


def _not_json(reason: str, text: str, position: int, complaints: Complaints) -> NoReturn:
    line = text.count("\n", 0, position) + 1
    complaints.fail("PR110", f"the file is not JSON: {reason}", line=line)


def _skip(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return position


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) != len(pairs):
        keys = [key for key, _ in pairs]
        message = f"the key {next(key for key in keys if keys.count(key) > 1)!r} is there twice"
        raise ValueError(message)
    return row


class _LineCounter:
    """Line numbers of ascending positions, counted once over the text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._line = 1

    def at(self, position: int) -> int:
        self._line += self._text.count("\n", self._position, position)
        self._position = position
        return self._line
