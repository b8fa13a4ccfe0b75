"""Numbers as tools write them: as JSON's, as text, as ``NaN`` or ``null``; only finite ones are taken."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from pytest_prereg.evidence.model import Value

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def finite_number(value: Any) -> float | None:
    """Return what is a finite number, or text that is nothing but one; ``None`` for all else."""
    if isinstance(value, str):
        number = float(value) if _NUMBER.fullmatch(value.strip()) else math.nan
    elif isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            return None
    else:
        return None
    return number if math.isfinite(number) else None


class Readings:
    """Sorts what a tool wrote into readings, and why the others are none."""

    def __init__(self) -> None:
        self.readings: dict[str, Value] = {}
        self.unreadable: dict[str, str] = {}

    def add(self, name: str, value: Any) -> None:
        """Take a number, or a list of them, under the tool's name for it."""
        read = value_of(value)
        if isinstance(read, str):
            self.unreadable[name] = read
        else:
            self.readings[name] = read


def value_of(value: Any) -> Value | str:
    """Return a number or a list of numbers; else why it is none, in words that follow its name."""
    if not isinstance(value, list):
        number = finite_number(value)
        return f"is {written(value)}, no finite number" if number is None else number
    if not value:
        return "is an empty list"
    numbers = [finite_number(each) for each in value]
    if None in numbers:
        position = numbers.index(None)
        return f"has {written(value[position])} as its entry {position + 1}, no finite number"
    return [number for number in numbers if number is not None]


def written(value: Any) -> str:
    """Return a value as a message shows it: text in quotes, all else as JSON has it, and not all of it."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return json.dumps(value) if isinstance(value, bool | float) or value is None else f"{quoted(value)[1:-1]}"
