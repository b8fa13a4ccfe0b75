"""Answers read from bytes that a program nobody has read may have chosen.

An answer is JSON in the strict sense of RFC 8259: UTF-8 without a mark at its start, no ``NaN`` or
``Infinity``, no key twice. What can't equal the expected value, since it is nested deeper or a number is
longer, is refused before it costs anything.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from itertools import accumulate
from typing import Any, NoReturn

WORKLOAD_VERSION = "1"

_SPARE_DIGITS = 1000
"""Beyond those of the longest expected number; no tolerance, itself a float, bridges as many."""

_PLAIN_DIGITS = 640
"""Up to which ``int`` takes any text, however low its limit is set in this process."""

_TOKENS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[\[{]|[\]}]', re.DOTALL)
"""Strings, closed or not, and brackets; it never backtracks, so that a hostile answer costs linear time."""
_STEPS = {"[": 1, "{": 1, "]": -1, "}": -1}


class AnswerError(ValueError):
    """Bytes are no answer, or none that could equal what is expected; says why, printable."""


@dataclass(frozen=True, kw_only=True)
class Extent:
    """How far a value goes."""

    depth: int
    """0 for what is neither a list nor an object, else 1 more than the deepest of what it holds."""
    digits: int
    """At least as many as its longest whole number has."""


def extent(value: object) -> Extent:
    """Return how far a plain JSON value goes; tuples count as lists.

    Raises:
        RecursionError: It holds itself, or is nested as deeply as no answer can be.
    """
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        inner = [extent(each) for each in value]
        return Extent(
            depth=1 + max((each.depth for each in inner), default=0),
            digits=max((each.digits for each in inner), default=0),
        )
    return Extent(depth=0, digits=value.bit_length() // 3 + 1 if isinstance(value, int) else 0)


def read_answer(answer: bytes, reach: Extent) -> Any:
    """Return the value of an answer to which something that goes as far as ``reach`` is expected.

    Raises:
        AnswerError: It is no JSON, or goes farther.
    """
    try:
        text = answer.decode("utf-8")
    except UnicodeDecodeError as error:
        raise AnswerError(f"its byte {error.start} is no UTF-8") from None
    depth = max(accumulate(_STEPS.get(each, 0) for each in _TOKENS.findall(text)), default=0)
    if depth > reach.depth:
        raise AnswerError(f"it is nested {depth} deep, and the expected answer {reach.depth}")
    try:
        return json.loads(
            text,
            parse_constant=_refuse_constant,
            parse_int=partial(_whole, most=reach.digits + _SPARE_DIGITS),
            object_pairs_hook=without_repetition,
        )
    except json.JSONDecodeError as error:
        raise AnswerError(f"it is no JSON: {error.msg} at character {error.pos}") from None


def _refuse_constant(name: str) -> NoReturn:
    raise AnswerError(f"{name} is no number in JSON")


def _whole(text: str, *, most: int) -> int:
    if len(text) > most:
        raise AnswerError(f"a number has {len(text)} digits, far more than any of the expected answer's")
    # A decimal is converted whatever the limit of int: that is the process's, and no thread's to change.
    return int(text) if len(text) <= _PLAIN_DIGITS else int(Decimal(text))


def without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object's pairs by key, as ``object_pairs_hook`` of :func:`json.loads`.

    Raises:
        AnswerError: A key is there twice: readers differ in which of the two they take.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        raise AnswerError("an object has the same key twice")
    return found
