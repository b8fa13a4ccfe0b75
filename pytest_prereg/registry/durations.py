"""Durations: as a study states them (``"5 min"``, ``"500 ms"``, plain seconds), and as metrics have them."""

from __future__ import annotations

import math
import re

from pytest_prereg.registry.refusals import RefusedError, quoted

_SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|s|min|h)")

SECONDS_IN = {
    "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0,
    "nanosecond": 1e-9, "microsecond": 1e-6, "millisecond": 1e-3, "sec": 1.0, "second": 1.0,
    "minute": 60.0, "hr": 3600.0, "hour": 3600.0,
}  # fmt: skip
"""Length in seconds of the units of time that a timer can fill."""

EPOCH_SECONDS = 1e9
"""No duration lasts 31 years: a larger one is a clock's reading (10⁹ s after 1970 was in 2001)."""


def seconds_in(unit: str) -> float | None:
    """Return how many seconds one ``unit`` lasts, or ``None`` if it is no unit of time."""
    return SECONDS_IN.get(unit, SECONDS_IN.get(unit.removesuffix("s")))


def is_point_in_time(value: float, unit: str) -> bool:
    """Return whether a value in a unit of time is what a clock said, and no duration."""
    second = seconds_in(unit)
    return second is not None and abs(value) * second >= EPOCH_SECONDS


def parse_duration(text: object) -> float:
    """Seconds; raises a PR005 refusal for anything but a positive duration."""
    seconds = _seconds(text)
    if seconds is None or not 0 < seconds < math.inf:
        raise RefusedError(
            "PR005", f'{quoted(text)} is no duration; write a positive number with ms, s, min or h: "5 min"'
        )
    return seconds


def _seconds(text: object) -> float | None:
    try:
        if isinstance(text, int | float) and not isinstance(text, bool):
            return float(text)
        match = _DURATION.fullmatch(text.strip()) if isinstance(text, str) else None
        return float(match[1]) * _SECONDS[match[2]] if match else None
    except OverflowError:
        return None
