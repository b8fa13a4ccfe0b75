"""What counts as a reading: finite numbers, fine enough for their unit, and no points in time."""

from __future__ import annotations

import math
from collections.abc import Iterable

from pytest_prereg.registry.durations import is_point_in_time, seconds_in

COARSE = frozenset({"float32", "float16", "bfloat16"})
"""Types that lose time: float32 tells seconds since 1970 apart only when they are two minutes apart."""


LONGEST_NAME = 100
"""Characters of an instrument's name: evidence has it beside every value."""


class ReadingError(ValueError):
    """A value that breaks the contract of its metric; the repeat is invalid."""


def metric_name(name: object) -> str:
    """Return ``name``; raise ``TypeError`` if it is no text: no metric has such a name."""
    if not isinstance(name, str):
        raise TypeError(f"a metric has a text for its name, not {_shown(name)}")
    return str.__str__(name)


def instrument_name(name: object) -> str:
    """Return ``name``.

    Raises:
        TypeError: It is no text.
        ReadingError: It is empty, longer than 100 characters, or has one that can't be printed.
    """
    if not isinstance(name, str):
        raise TypeError(f"an instrument has a text for its name, not {_shown(name)}")
    if not name.strip() or not name.isprintable() or len(name) > LONGEST_NAME:
        raise ReadingError(f'no instrument has the name {_shown(name)}; write a word, such as "probe"')
    return str.__str__(name)


def reading(name: str, value: object, unit: str) -> float | list[float]:
    """Return ``value`` as a float, or as a list of floats if it is a sequence.

    Takes Python, numpy and torch numbers, arrays of none or one dimension, and booleans as 0 and 1.

    Raises:
        ReadingError: If it isn't a finite number in full precision, or (with a unit of time) is a point in
        time.
    """
    _refuse_coarse(name, value, unit)
    plain = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(plain, Iterable) and not isinstance(plain, str | bytes):
        return [_number(name, item, unit) for item in plain]
    return _number(name, plain, unit)


def _number(name: str, value: object, unit: str) -> float:
    _refuse_coarse(name, value, unit)
    number = _as_float(name, value)
    if not math.isfinite(number):
        raise ReadingError(f'metric "{name}": {number} is not a finite number')
    if is_point_in_time(number, unit):
        raise ReadingError(
            f'metric "{name}": {number:g} {unit} is a point in time, not a duration; subtract the start'
        )
    return number


def _as_float(name: str, value: object) -> float:
    if isinstance(value, str | bytes) or not hasattr(value, "__float__"):
        raise ReadingError(f'metric "{name}": {_shown(value)} is not a number')
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ReadingError(f'metric "{name}": {_shown(value)} is not a number') from error


def _refuse_coarse(name: str, value: object, unit: str) -> None:
    if seconds_in(unit) is None:
        return
    kind = str(getattr(value, "dtype", "")).rpartition(".")[2]
    if kind in COARSE or getattr(value, "typecode", "") == "f":
        raise ReadingError(f'metric "{name}": {kind or "float32"} is too coarse for a time; record a float64')


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."  # noqa: PLR2004
