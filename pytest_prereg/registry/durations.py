"""Durations as they are written in a study: ``"5 min"``, ``"500 ms"``, or plain seconds."""

from __future__ import annotations

import math
import re

from pytest_prereg.registry.refusals import RefusedError, quoted

_SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|s|min|h)")


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
