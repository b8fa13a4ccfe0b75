"""Versions of one TOML file, each much like the one before: tables that they share are parsed once."""

from __future__ import annotations

import re
import tomllib
from contextlib import suppress
from functools import lru_cache
from typing import Any

_HEADER = re.compile(r"^(?=\[)", re.MULTILINE)
_KEPT = 4096
"""Tables, with their text."""


def tables(text: str) -> dict[str, Any]:
    """Return what ``tomllib.loads`` does; lists in it are shared, and not to be changed.

    It is taken apart before each line that begins with a bracket. Where that is no header but the inside of
    a string or an array, the part before it is no TOML by itself, and all is parsed in one. What is not found
    out is a table that is there twice, in two ways of writing it.

    Raises:
        ValueError: It is no TOML.
        RecursionError: It is nested too deeply.
    """
    parts = _HEADER.split(text)
    if len({part.partition("\n")[0] for part in parts}) == len(parts):
        with suppress(ValueError):
            return _merged(parts)
    return tomllib.loads(text)


def _merged(parts: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in parts:
        _merge(found, _parsed(part))
    return found


@lru_cache(maxsize=_KEPT)
def _parsed(part: str) -> dict[str, Any]:
    return tomllib.loads(part)


def _merge(into: dict[str, Any], more: dict[str, Any]) -> None:
    """Add tables to those that are there.

    Raises:
        ValueError: Something is there already that is no table.
    """
    for key, value in more.items():
        if isinstance(value, dict):
            below = into.setdefault(key, {})
            if not isinstance(below, dict):
                raise ValueError("more: a table in place of a value")  # noqa: TRY004 - it is no TOML
            _merge(below, value)
        elif key in into:
            raise ValueError("more: a key twice")
        else:
            into[key] = value
