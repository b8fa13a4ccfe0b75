"""Sketches of files: few short digests, by which a file is known again although a number of it is another.

A digest of all numbers is another one as soon as one digit is. A sketch has digests of single readings, to
six digits, and of those the smallest, so that two sketches are of the same readings (Broder 1997, On the
resemblance and containment of documents). Only fine readings tell: whole numbers, such as counts of rounds
or of tokens, come again in any other run.
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_prereg.evidence.importers.found import FoundRepeat

_SIZE = 16
_DIGITS = 6
_FINE = 5
"""So many digits that are not all a reading must have to tell anything."""
_ENOUGH = 32
"""Of the numbers of a vector, to compare it by."""
_TELLING = 3
_MOSTLY = 0.75
"""So many fine readings, and this share of them, must be the same in two files of the same numbers."""


def sketch_of(repeats: Iterable[FoundRepeat]) -> list[str]:
    """Return the sketch of a benchmark's repeats; an empty one of too few fine readings to tell."""
    fine = {_short(text) for repeat in repeats for text in _fine(repeat)}
    return sorted(fine)[:_SIZE] if len(fine) >= _TELLING else []


def are_alike(one: Any, other: Any) -> bool:
    """Whether two sketches are of files with the same numbers but for some; what is none is like nothing."""
    if not isinstance(one, list) or not isinstance(other, list):
        return False
    shared = len({*map(str, one)} & {*map(str, other)})
    return shared >= max(_TELLING, _MOSTLY * min(len(one), len(other)))


def _fine(repeat: FoundRepeat) -> Iterator[str]:
    for name, value in repeat.readings.items():
        number = math.fsum(value) if isinstance(value, list) else value
        if is_fine(number):
            yield f"{name} {number:.{_DIGITS - 1}e}"


def copies_in(repeats: Iterable[FoundRepeat]) -> Iterator[tuple[FoundRepeat, FoundRepeat]]:
    """Yield each repeat with the fine numbers of an earlier one, and that; few may come again."""
    first: dict[tuple[float, ...], FoundRepeat] = {}
    for repeat in repeats:
        every = (
            number
            for _, value in sorted(repeat.readings.items())
            for number in (value[:_ENOUGH] if isinstance(value, list) else [value])
        )
        key = tuple(number for number in every if is_fine(number))
        if len(set(key)) < _TELLING:
            continue
        if key in first:
            yield repeat, first[key]
        first.setdefault(key, repeat)


def is_fine(number: float) -> bool:
    """Whether a number has enough digits not to come again by chance."""
    mantissa = f"{number:.{_DIGITS - 1}e}".partition("e")[0]
    return not number.is_integer() and len(mantissa.strip("-0").replace(".", "")) >= _FINE


def _short(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]
