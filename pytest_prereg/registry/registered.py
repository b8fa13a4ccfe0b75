"""What a lock registers, and nothing else of it: for reading hundreds of old versions of one.

A lock as this package writes it is scanned, many times faster than TOML is parsed; one that looks in any way
different is parsed.
"""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from typing import Any

import msgspec

_NAME = r'(?:[A-Za-z0-9_-]++|"[^"\\\n]*+")'
_VALUE = r'(?:"(?:[^"\\\n]|\\.)*+"|[-+]?\d[\w.+-]*+|[-+]?(?:inf|nan)|true|false)'
_LINES = rf"(?:[A-Za-z0-9_-]++ = (?:{_VALUE}|\[)\n|    {_VALUE},\n|\]\n)*+"
_HEAD = re.compile(r'(?:#[^\n]*+\n)*+(?:version = 1\n)?+study = "([^"\\\n]*+)"\n')
_ENTRY = re.compile(rf'\[predictions\.({_NAME})\]\ndigest = "(sha256:[0-9a-f]{{64}})"\n{_LINES}')
_OTHER = re.compile(
    rf"(?:\[predictions\.{_NAME}\.[a-z]++\]|\[\[(?:predictions\.{_NAME}\.)?[a-z]++\]\])\n{_LINES}"
)
_MENTIONS_STUDY = re.compile(r"study|\\[uUx]")
"""In every text with a key ``study``, which may be written with escapes."""


class Registered(msgspec.Struct, kw_only=True, frozen=True):
    """Registration digests of one study, by prediction id."""

    study: str
    digests: dict[str, str]


def registered(data: bytes) -> Registered | None:
    """What a lock's bytes register; ``None`` where they are no lock of a study, whatever they are."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    if not _MENTIONS_STUDY.search(text):  # of a package manager: large, and changed all the time
        return None
    return _scanned(text) or _parsed(text)


def _scanned(text: str) -> Registered | None:
    """From a lock in the one form in which it is written, else ``None``."""
    head, *tables = text.removesuffix("\n").split("\n\n")
    study = _HEAD.fullmatch(f"{head}\n")
    entries = [_entry(table) for table in tables]
    if study is None or None in entries:
        return None
    named = [entry for entry in entries if entry]
    digests = dict(named)
    return Registered(study=study[1], digests=digests) if len(digests) == len(named) else None


@lru_cache(maxsize=8192)  # most tables are the same in the next version
def _entry(table: str) -> tuple[str, str] | tuple[()] | None:
    """Id and digest, nothing from a table that registers none, ``None`` where it has another form."""
    if found := _ENTRY.fullmatch(f"{table}\n"):
        return found[1].strip('"'), found[2]
    return () if _OTHER.fullmatch(f"{table}\n") else None


def _parsed(text: str) -> Registered | None:
    try:
        data: dict[str, Any] = tomllib.loads(text)
    except (ValueError, RecursionError):
        return None
    study, entries = data.get("study"), data.get("predictions", {})
    if not isinstance(study, str) or not isinstance(entries, dict) or data.get("version", 1) != 1:
        return None
    digests = {name: entry.get("digest") for name, entry in entries.items() if isinstance(entry, dict)}
    return Registered(study=study, digests={name: d for name, d in digests.items() if isinstance(d, str)})
