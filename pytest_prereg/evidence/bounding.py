"""What a body says beside its metrics is kept within bounds: it must cost neither the repeat nor the file."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from pytest_prereg.evidence.lines import encode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_prereg.evidence.model import Finished

DIAGNOSTICS = 1 << 16
"""Bytes that the diagnostics of a repeat may take."""
ERROR = 1 << 14
CAUSE = 1 << 10
"""Characters of an error, whose end tells most, and of a cause, whose beginning does."""

_DEPTH = 64
_NOTES = 64
"""As many keys are told that were left out; of more only the number."""
_KEY = 100
_RESERVE = 1 << 14
"""Bytes for what is said of the keys that were left out."""


def bounded_line(line: Finished) -> Finished:
    """Return the line as it may be written, whatever the body put into it; its values are untouched."""
    return replace(
        line,
        diagnostics=bounded(line.diagnostics),
        error=line.error and _end(line.error, ERROR),
        cause=line.cause and _beginning(line.cause, CAUSE),
        seconds={name: _duration(value) for name, value in line.seconds.items()},
    )


def bounded(diagnostics: Mapping[str, Any]) -> dict[str, Any]:
    """Return the diagnostics in at most 64 KiB of JSON, nested no deeper than can be read back.

    What does not fit is replaced, key by key and the largest first, by a text with its size; so is what can't
    be written at all.
    """
    sizes = {key: _size(key, value) for key, value in diagnostics.items()}
    written = {key: size for key, size in sizes.items() if size is not None}
    kept = set(written)
    if len(kept) < len(sizes) or sum(written.values()) > DIAGNOSTICS - len("{}"):
        kept = _smallest(written, DIAGNOSTICS - _RESERVE)
    left_out = [key for key in diagnostics if key not in kept]
    if not left_out:
        return dict(diagnostics)
    notes = {_beginning(str(key), _KEY): _note(sizes[key]) for key in left_out[:_NOTES]}
    if len(left_out) > _NOTES:
        notes["…"] = f"{len(left_out) - _NOTES} more were left out"
    return {key: diagnostics[key] for key in diagnostics if key in kept} | notes


def _smallest(sizes: Mapping[str, int], room: int) -> set[str]:
    """Return the keys of the smallest, as many as there is room for."""
    fitting = set()
    for key in sorted(sizes, key=lambda key: sizes[key]):
        room -= sizes[key]
        if room < 0:
            break
        fitting.add(key)
    return fitting


def _size(key: str, value: Any) -> int | None:
    """Return how many bytes an entry takes; ``None`` if it can't be written, or could not be read back."""
    try:
        size = len(encode({key: value}))
    except Exception:  # noqa: BLE001  (whatever objects a body left there, and whatever they raise)
        return None
    return None if size <= DIAGNOSTICS and _is_deep(value, _DEPTH) else size


def _is_deep(value: Any, room: int) -> bool:
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple | set | frozenset):
        return False
    return room == 0 or any(_is_deep(item, room - 1) for item in value)


def _note(size: int | None) -> str:
    return "left out: it could not be written" if size is None else f"left out: {size} bytes"


def _beginning(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _end(text: str, most: int) -> str:
    return text if len(text) <= most else f"…{text[1 - most :]}"


def _duration(seconds: float) -> float:
    """Return the duration; 0 where a body's clock made it negative or none: it can't be read back so."""
    return seconds if math.isfinite(seconds) and seconds > 0 else 0.0
