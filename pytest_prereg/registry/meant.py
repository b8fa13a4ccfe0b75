"""What was most likely meant by a value of the wrong kind, as it would be written."""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from pytest_prereg.registry.command_lines import split_command
from pytest_prereg.registry.refusals import RefusedError

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS = ("command", "build")
"""Keys that take the arguments that a program is started with."""
_TABLES = (".csv",)


def command_meant(value: Any) -> list[str] | None:
    """Return the arguments that a text stands for, or a list in which numbers are no text."""
    if isinstance(value, str):
        try:
            return list(split_command(value).arguments)
        except RefusedError:
            return None
    if isinstance(value, list) and all(isinstance(item, str | int | float) for item in value):
        return [item if isinstance(item, str) else json.dumps(item) for item in value]
    return None


def as_it_would_be_written(key: str, value: Any) -> str | None:
    """Return ``command = ["sleep", "1"]`` for ``command`` and ``"sleep 1"``; ``None`` if nobody can tell."""
    if key in COMMANDS and (command := command_meant(value)):
        return f"{key} = {_texts(command)}"
    if key == "service" and (command := command_meant(value)):
        return f"service = {{ command = {_texts(command)} }}"
    if key == "read" and isinstance(file := value[0] if isinstance(value, list) and value else value, str):
        form = "csv" if PurePath(file).suffix in _TABLES else "json"
        return f"read = {{ file = {_texts([file])[1:-1]}, format = {_texts([form])[1:-1]} }}"
    return None


def _texts(values: Sequence[str]) -> str:
    return json.dumps(list(values), ensure_ascii=False).replace("\x7f", "\\u007F")
