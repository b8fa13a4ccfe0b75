"""Hundreds of versions of a lock, read quickly: text that several of them share is parsed once.

A lock in the form in which this package writes it is taken apart into its tables. One that looks in any way
different is parsed whole, so that the result is always that of :func:`parse_lock`.
"""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any

import msgspec

from pytest_prereg.registry.lock_file import (
    ID,
    VERSION,
    Acknowledgement,
    Exclusion,
    Lock,
    LockEntry,
    Void,
    parse_lock,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.registry.lock_file import Entry

_NAME = r'(?:[A-Za-z0-9_-]+|"[^"\\\n]*")'
_SPLIT = re.compile(rf"\n\n(?=\[(?:predictions\.{_NAME}|\[(?:exclusion|voided|acknowledged)\])\]\n)")
_HEADER = re.compile(r"^[ \t]*\[.*$", re.MULTILINE)
_KNOWN = re.compile(
    rf"\[predictions\.{_NAME}(?:\.withdrawal)?\]"
    rf"|\[\[(?:predictions\.{_NAME}\.amendment|exclusion|voided|acknowledged)\]\]"
)
_STUDY = re.compile(
    rb"""^(?:\xef\xbb\xbf)?[ \t]*["']?study["']?[ \t]*=[ \t]*["']([^"'\n]*)["']""", re.MULTILINE
)
_KEY = re.compile(
    rb"""^(?:\xef\xbb\xbf)?[ \t]*(?:study|'study'|"(?:study|[^"\n]*\\[uUx][^"\n]*)")[ \t]*=""", re.MULTILINE
)
"""The key that every lock has, in whatever way TOML lets it be spelled: it begins a line."""

_LISTS: dict[str, type[Entry]] = {"exclusion": Exclusion, "voided": Void, "acknowledged": Acknowledgement}

_Table = tuple[str, str, Any]
"""Of one table of the lock: ``predictions`` or a list's key, the prediction's id, and what it holds."""


class LockReader:
    """Reads versions of locks; what two of them have in common is the same object in both."""

    def __init__(self) -> None:
        self._tables: dict[str, _Table | None] = {}
        self._heads: dict[str, str | None] = {}

    def read(self, data: bytes, path: str) -> Lock:
        """Return the lock that ``data`` holds.

        Args:
            data: The whole file, as git has it.
            path: The file, for messages.

        Raises:
            StudyError: As :func:`parse_lock`.
        """
        lock = self._assembled(data)
        return parse_lock(data, path) if lock is None else lock

    def _assembled(self, data: bytes) -> Lock | None:
        """The lock of tables read one by one; ``None`` where that may not give what parsing gives."""
        try:
            text = data.decode("utf-8").removeprefix("\ufeff").replace("\r\n", "\n")
        except UnicodeDecodeError:
            return None
        head, *parts = _SPLIT.split(text.removesuffix("\n"))
        study = self._study_in(head)
        tables = [self._table(part) for part in parts]
        if study is None or None in tables:
            return None
        predictions = {name: table for kind, name, table in filter(None, tables) if kind == "predictions"}
        lists = {kind: tuple(each for one, _, each in filter(None, tables) if one == kind) for kind in _LISTS}
        if len(predictions) + sum(map(len, lists.values())) < len(tables):
            return None  # an id twice
        return Lock(
            study=study,
            predictions=predictions,
            exclusions=lists["exclusion"],
            voided=lists["voided"],
            acknowledged=lists["acknowledged"],
        )

    def _study_in(self, head: str) -> str | None:
        """The study's id, where the text before the first table says that and the format's version only."""
        if head not in self._heads:
            self._heads[head] = _study_of(head)
        return self._heads[head]

    def _table(self, text: str) -> _Table | None:
        if text not in self._tables:
            self._tables[text] = next(_tables(text), None)
        return self._tables[text]


def study_named(data: bytes) -> str | None:
    """Return the study that a file names which can't be read as a lock; ``None`` where it is none of one."""
    named = _STUDY.search(data)
    return named[1].decode("utf-8", "replace") if named else None


def may_be_lock(data: bytes) -> bool:
    """Whether a file can have the key that every lock has; the long ones of package managers lack it."""
    return _KEY.search(data) is not None


def _study_of(head: str) -> str | None:
    try:
        data = tomllib.loads(head)
    except (ValueError, RecursionError):
        return None
    version, study = data.pop("version", None), data.pop("study", None)
    known = type(version) is int and version == VERSION and not data
    return study if known and isinstance(study, str) else None


def _tables(text: str) -> Iterator[_Table]:
    """Yield the one table, with all below it, that a part of a lock is; nothing where it is anything else.

    A part that is TOML by itself, begins with a header, and has no header of anything but its own table,
    means the same wherever it stands.
    """
    if not all(_KNOWN.fullmatch(header) for header in _HEADER.findall(text)):
        return
    try:
        ((kind, content),) = tomllib.loads(text).items()
        ((name, table),) = content.items() if kind == "predictions" else [("", *content)]
        if kind == "predictions" and not ID.fullmatch(name):
            return
        yield kind, name, msgspec.convert(table, _LISTS.get(kind, LockEntry))
    except (ValueError, RecursionError):
        return
