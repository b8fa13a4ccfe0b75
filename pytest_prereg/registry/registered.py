"""What a lock registers, and nothing else of it: for reading hundreds of old versions of one.

A lock as this package writes it is scanned, many times faster than TOML is parsed; one that looks in any way
different is parsed.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any

import msgspec

_NAME = r'(?:[A-Za-z0-9_-]+|"[^"\\\n]*")'
_STUDY = re.compile(r'^study = "([^"\\\n]*)"$', re.MULTILINE)
_ENTRY = re.compile(rf'^\[predictions\.({_NAME})\]\ndigest = "(sha256:[0-9a-f]{{64}})"$', re.MULTILINE)
_PART = re.compile(
    rf"^\[(?:\[predictions\.{_NAME}\.amendment\]|predictions\.{_NAME}\.withdrawal)\]$", re.MULTILINE
)
_ANY = re.compile(r"""^[\s\["']*predictions""", re.MULTILINE)
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
    """From a lock in the one form in which it is written, else ``None``.

    Without multi-line strings a line that reads like a table's header is one, in any text that is TOML.
    """
    if '"""' in text or "'''" in text:
        return None
    study = _STUDY.search(text.partition("\n[")[0])
    entries = _ENTRY.findall(text)
    if study is None or len(_ANY.findall(text)) != len(entries) + len(_PART.findall(text)):
        return None
    return Registered(study=study[1], digests={name.strip('"'): digest for name, digest in entries})


def _parsed(text: str) -> Registered | None:
    try:
        data: dict[str, Any] = tomllib.loads(text)
    except (ValueError, RecursionError):
        return None
    study, entries = data.get("study"), data.get("predictions", {})
    if not isinstance(study, str) or not isinstance(entries, dict):
        return None
    digests = {name: entry.get("digest") for name, entry in entries.items() if isinstance(entry, dict)}
    return Registered(study=study, digests={name: d for name, d in digests.items() if isinstance(d, str)})
