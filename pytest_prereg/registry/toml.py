"""A study's text to a dict, with the line of every key; tells all that is wrong with the text itself."""

from __future__ import annotations

import datetime as dt
import math
import os
import re
import tomllib
import unicodedata
from typing import TYPE_CHECKING, Any

from pytest_prereg.errors import Problem, StudyError
from pytest_prereg.registry.plain_files import read_plain
from pytest_prereg.registry.positions import Path, Positions
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

LARGEST = 2**53
"""Whole numbers beyond this have no exact form in canonical JSON, which digests are built on."""

_CONFLICT = re.compile(r"^(<{7}|>{7})(?= |\r?$)", re.MULTILINE)
_LONG_NUMBER = re.compile(
    r"[0-9](?:[0-9_]{15}|[0-9]{3}-[0-9]{2}-|[0-9]:[0-9]{2}|[eE][+-]?[0-9_]{3}|x[0-9A-Fa-f_]{13})"
)
_SPECIAL = ("\\", "nan", "inf")
"""What text has where a value may be unsound; without it there is no need to walk all values."""

_PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
_GIVEN_TWICE = ("Cannot declare", "Cannot overwrite", "Cannot mutate", "Cannot redefine", "Duplicate")


def parse(text: str, path: str) -> tuple[dict[str, Any], Positions]:
    """The tables of ``text`` and the lines of their keys.

    Args:
        text: The whole file.
        path: How messages name it.

    Raises:
        StudyError: Syntax (PR001), keys given twice (PR002), text that is not NFC or numbers that are not
            finite (PR009), merge-conflict markers (PR010).
    """
    data, positions, problems = read(text, path)
    if problems:
        raise StudyError(problems)
    return data, positions


def read(text: str, path: str) -> tuple[dict[str, Any], Positions, list[Problem]]:
    """Like :func:`parse`, but returns what is wrong with single values, to be told with all the rest."""
    text = text.removeprefix("\ufeff")
    _refuse_conflicts(text, path)
    positions = Positions(text)
    try:
        data = tomllib.loads(text)
    except RecursionError:
        raise StudyError(
            Problem(code="PR001", path=path, message="is nested too deeply to be read")
        ) from None
    except ValueError as error:
        raise StudyError(_syntax(str(error), text, positions, path)) from None
    if text.isascii() and not any(sign in text for sign in _SPECIAL) and not _LONG_NUMBER.search(text):
        return data, positions, []
    problems = [
        Problem(code=code, path=path, line=positions.line(*keys), message=message)
        for keys, code, message in _unsound((), data)
    ]
    return data, positions, problems


def _refuse_conflicts(text: str, path: str) -> None:
    markers = list(_CONFLICT.finditer(text))
    if {marker[1][0] for marker in markers} >= {"<", ">"}:
        line = text.count("\n", 0, markers[0].start()) + 1
        message = f"merge-conflict marker {quoted(markers[0][1])}; decide between the two sides first"
        raise StudyError(Problem(code="PR010", path=path, line=line, message=message))


def _syntax(complaint: str, text: str, positions: Positions, path: str) -> list[Problem]:
    if complaint.startswith(_GIVEN_TWICE) and (twice := positions.duplicates()):
        return [
            Problem(code="PR002", path=path, line=again.line, message=_given_twice(again.keys, again.first))
            for again in twice
        ]
    place = _PLACE.search(complaint)
    line = int(place[1]) if place and place[1] else text.rstrip("\n").count("\n") + 1
    code = "PR002" if complaint.startswith(_GIVEN_TWICE) else "PR001"
    written = (text.splitlines() or [""])[min(line, len(text.splitlines()) or 1) - 1].strip()
    complaint = _PLACE.sub("", complaint)
    return [
        Problem(code=code, path=path, line=line, message=f"not valid TOML at {quoted(written)}: {complaint}")
    ]


def _given_twice(keys: Path, first: int) -> str:
    *table, key = (str(part) for part in keys)
    where = f" in {quoted('.'.join(table))}" if table else ""
    return f"{quoted(key)}{where} is given twice, first on line {first}; keep one"


def _unsound(keys: Path, value: Any) -> Iterator[tuple[Path, str, str]]:
    """Values without a stable digest: text that is not NFC, numbers that are not finite or exact, dates."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if not unicodedata.is_normalized("NFC", key):
                yield (
                    (*keys, key),
                    "PR009",
                    f"key {quoted(key)} is not in Unicode normal form NFC; type it again",
                )
            if not key.isprintable():
                yield (*keys, key), "PR006", f"key {quoted(key)} holds a sign that can't be shown"
            yield from _unsound((*keys, key), inner)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _unsound((*keys, index), inner)
    elif isinstance(value, str):
        if not unicodedata.is_normalized("NFC", value):
            yield keys, "PR009", f"{quoted(value)} is not in Unicode normal form NFC; type it again"
    elif complaint := _unsound_number(value):
        yield keys, complaint[0], f"{quoted(_name(keys))} is {complaint[1]}"


def _unsound_number(value: object) -> tuple[str, str] | None:
    if isinstance(value, float) and not math.isfinite(value):
        return "PR009", f"{quoted(value)}, which is not a finite number"
    if isinstance(value, int) and abs(value) > LARGEST:
        return "PR009", "too large to be kept exactly; write it as text"
    if isinstance(value, dt.date | dt.time):
        return "PR005", f"the date or time {quoted(value)}, which no key takes; write it as text"
    return None


def _name(keys: Path) -> str:
    return ".".join(str(key) for key in keys)


def shown(path: os.PathLike[str]) -> str:
    """``path`` as messages name it: relative to the current folder where it lies below, else as given."""
    try:
        relative = os.path.relpath(path)
    except (OSError, ValueError):
        return os.fspath(path)
    return os.fspath(path) if relative.startswith("..") else relative


def positions_of(path: os.PathLike[str]) -> Positions:
    """The positions of a file that was loaded before; every line is 1 where it is no longer there."""
    try:
        return Positions(read_plain(path).decode())
    except (OSError, ValueError):
        return Positions("")
