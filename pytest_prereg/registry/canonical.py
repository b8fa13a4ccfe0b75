"""Canonical JSON (RFC 8785): one sequence of bytes for one value, whoever writes it."""

from __future__ import annotations

import math
from json.encoder import encode_basestring
from typing import Any

_LITERALS = {None: "null", True: "true", False: "false"}

_PLAIN_LOW, _PLAIN_HIGH = -6, 21
"""Decimal exponents between which ECMAScript writes a number without an exponent."""


def canonical_json(value: Any) -> bytes:
    """``value`` as RFC 8785 has it: sorted members, no white space, shortest numbers, UTF-8.

    Args:
        value: Dicts with string keys, lists, tuples, strings, booleans, ``None``, finite numbers.

    Raises:
        ValueError: A number is not finite or not exact, or a string is not valid Unicode.
        TypeError: Something that JSON can't hold.
    """
    return _text(value).encode("utf-8")


def _text(value: Any) -> str:
    if isinstance(value, str):
        return encode_basestring(value)
    if value is None or isinstance(value, bool):
        return _LITERALS[value]
    if isinstance(value, int | float):
        return number(value)
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_text, value))}]"
    if isinstance(value, dict):
        members = (f"{encode_basestring(key)}:{_text(value[key])}" for key in sorted(value, key=_utf_16))
        return f"{{{','.join(members)}}}"
    raise TypeError(f"{type(value).__name__} has no place in JSON")


def _utf_16(key: str) -> bytes:
    """Members are sorted by UTF-16 code units, which differs from code points above U+FFFF."""
    return key.encode("utf-16-be")


def number(value: float) -> str:
    """A number as ECMAScript's ``String(value)`` writes it: the shortest digits that read back the same.

    Raises:
        ValueError: It is not finite, or an integer that no double equals.
    """
    double = float(value)
    if not math.isfinite(double):
        raise ValueError(f"{value} has no place in JSON")
    if double != value:
        raise ValueError(f"{value} is not exact as a double")
    if double == 0:
        return "0"
    sign = "-" if double < 0 else ""
    return sign + _digits(*_decimal(abs(double)))


def _decimal(value: float) -> tuple[str, int]:
    """Significant digits, and where the point stands: 0.012 is ``("12", -1)``."""
    mantissa, _, exponent = repr(value).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    leading = len(whole + fraction) - len(digits)
    return digits.rstrip("0"), len(whole) - leading + int(exponent or 0)


def _digits(digits: str, point: int) -> str:
    count = len(digits)
    if count <= point <= _PLAIN_HIGH:
        return digits + "0" * (point - count)
    if 0 < point <= _PLAIN_HIGH:
        return f"{digits[:point]}.{digits[point:]}"
    if _PLAIN_LOW < point <= 0:
        return "0." + "0" * -point + digits
    mantissa = digits[0] + (f".{digits[1:]}" if count > 1 else "")
    return f"{mantissa}e{point - 1:+d}"
