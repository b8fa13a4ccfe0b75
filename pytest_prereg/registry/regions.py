"""Regions of values: what a prediction predicts, and what falsifies it.

A region is a union of at most two spans of the real line, held in a normal form, so that two ways of writing
one region are one region (``within 5% of 100`` is ``[95, 105]``). Its edges have 15 significant digits.
"""

from __future__ import annotations

import functools
import math
import re
from decimal import Context, Decimal

import msgspec

from pytest_prereg.registry.refusals import RefusedError, quoted
from pytest_prereg.registry.unit_text import normal_unit


class Span(msgspec.Struct, kw_only=True, frozen=True):
    """``low`` to ``high``; an infinite end is open."""

    low: float = -math.inf
    high: float = math.inf
    low_closed: bool = False
    high_closed: bool = False


class Region(msgspec.Struct, kw_only=True, frozen=True):
    """Disjoint spans in ascending order, and the unit that the text named (``None``: none named)."""

    spans: tuple[Span, ...]
    unit: str | None = None


EVERYTHING = Span()
FORMS = '"<= x", "< x", ">= x", "> x", "[a, b]", "outside [a, b]", "within x of y" or "within 5% of y"'

_NUMBER = r"([+-]?(?:[0-9][0-9_]*\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
_UNIT = r"(?:\s*((?:1\s*/|[^\s\d\[\],.])[^\[\],]*?))?"
_BOUND = re.compile(rf"(<=|>=|<|>|≤|≥)\s*{_NUMBER}{_UNIT}")
_INTERVAL = re.compile(rf"(outside\s*)?\[\s*{_NUMBER}{_UNIT}\s*,\s*{_NUMBER}{_UNIT}\s*\]{_UNIT}")
_WITHIN = re.compile(rf"within\s+{_NUMBER}{_UNIT}\s+of\s+{_NUMBER}{_UNIT}")

# Sums of what was typed are taken in decimal: "within 0.1 of 0.3" is [0.2, 0.4], not [0.19999999999999998 …
_DECIMAL = Context(prec=40)


@functools.lru_cache(maxsize=4096)
def parse_region(text: str) -> Region:
    """The region that ``text`` describes, in normal form.

    Raises:
        RefusedError: PR032 (a :class:`ValueError`) when it can't be read or holds a number that isn't finite.
    """
    stripped = text.strip()
    if stripped == "otherwise":
        raise RefusedError("PR032", '"otherwise" is for "falsifier" only: it is all that "predicts" leaves')
    if match := _BOUND.fullmatch(stripped):
        return _bound(match)
    if match := _INTERVAL.fullmatch(stripped):
        return _interval(match, text)
    if match := _WITHIN.fullmatch(stripped):
        return _within(match, text)
    if re.search(r"\b(nan|inf|infinity)\b", stripped, re.IGNORECASE):
        raise RefusedError(
            "PR032", f"{quoted(text)} holds a number that is not finite; leave that side open instead"
        )
    raise RefusedError("PR032", f"{quoted(text)} is no region; write {FORMS}, each with a unit if need be")


def complement(region: Region) -> Region:
    """All values that ``region`` leaves: what ``otherwise`` stands for."""
    spans, low, closed = [], -math.inf, False
    for span in region.spans:
        if span.low > -math.inf:
            spans.append(Span(low=low, low_closed=closed, high=span.low, high_closed=not span.low_closed))
        low, closed = span.high, not span.high_closed
    if low < math.inf:
        spans.append(Span(low=low, low_closed=closed))
    return Region(spans=tuple(spans), unit=region.unit)


def overlaps(left: Region, right: Region) -> bool:
    """Whether some value lies in both; their units are taken to be one."""
    return any(_meet(a, b) for a in left.spans for b in right.spans)


def contains(region: Region, low: float, high: float) -> bool:
    """Whether one span of ``region`` holds the whole closed interval; infinite ends are allowed."""
    for span in region.spans:
        if (span.low < low or _above(span, low)) and (high < span.high or _below(span, high)):
            return True
    return False


def covers(region: Region, span: Span) -> bool:
    """Whether one span of ``region`` holds all of ``span``, whose open ends need not be in it."""
    return any(
        (part.low < span.low or (part.low == span.low and part.low_closed >= span.low_closed))
        and (part.high > span.high or (part.high == span.high and part.high_closed >= span.high_closed))
        for part in region.spans
    )


def edges(region: Region) -> tuple[float, ...]:
    """The finite ends of the region, ascending."""
    ends = {end for span in region.spans for end in (span.low, span.high) if math.isfinite(end)}
    return tuple(sorted(ends))


def parsed(region: Region) -> list[list[float | bool | None]]:
    """``[[low, low_closed, high, high_closed], …]``, an infinite end as ``None``: what a digest holds."""
    return [
        [
            span.low if math.isfinite(span.low) else None,
            span.low_closed,
            span.high if math.isfinite(span.high) else None,
            span.high_closed,
        ]
        for span in region.spans
    ]


def scaled(region: Region, factor: float, unit: str | None = None) -> Region:
    """Every end times ``factor`` (positive), at 15 significant digits, and named in ``unit``."""
    spans = tuple(
        Span(
            low=float(f"{span.low * factor:.15g}"),
            high=float(f"{span.high * factor:.15g}"),
            low_closed=span.low_closed,
            high_closed=span.high_closed,
        )
        for span in region.spans
    )
    return Region(spans=spans, unit=unit or region.unit)


def describe(region: Region) -> str:
    """The region for people: ``≤ 0.25``, ``[-5, 5]``, ``outside [-10, 10] s``; empty if it has no spans."""
    if not region.spans:
        return ""
    unit = "" if region.unit in (None, "1") else f" {region.unit}"
    if len(region.spans) > 1:
        low, high = region.spans[0].high, region.spans[-1].low
        return f"outside [{_short(low)}, {_short(high)}]{unit}"
    span = region.spans[0]
    if math.isinf(span.low):
        return f"{'≤' if span.high_closed else '<'} {_short(span.high)}{unit}"
    if math.isinf(span.high):
        return f"{'≥' if span.low_closed else '>'} {_short(span.low)}{unit}"
    return f"[{_short(span.low)}, {_short(span.high)}]{unit}"


def _bound(match: re.Match[str]) -> Region:
    sign, value = match[1], _number(match[2])
    closed = sign in ("<=", ">=", "≤", "≥")
    below = sign in ("<=", "<", "≤")
    span = Span(high=value, high_closed=closed) if below else Span(low=value, low_closed=closed)
    return Region(spans=(span,), unit=_unit(match[3]))


def _interval(match: re.Match[str], text: str) -> Region:
    inside = _closed(_number(match[2]), _number(match[4]), _unit(match[3], match[5], match[6]), text)
    return complement(inside) if match[1] else inside


def _within(match: re.Match[str], text: str) -> Region:
    if _number(match[1]) < 0 or not math.isfinite(_number(match[3])):
        raise RefusedError("PR032", f"{quoted(text)} has a negative distance")
    distance, centre = _DECIMAL.create_decimal(match[1]), _DECIMAL.create_decimal(match[3])
    unit = _unit(match[4])
    if (match[2] or "").strip() != "%":
        unit = _unit(match[2], match[4])
    elif unit == "%":
        raise RefusedError(
            "PR032", f'{quoted(text)} could be a share of it or so many points; write "[a, b] %"'
        )
    else:
        distance = _DECIMAL.multiply(_DECIMAL.divide(distance, Decimal(100)), abs(centre))
    low, high = float(_DECIMAL.subtract(centre, distance)), float(_DECIMAL.add(centre, distance))
    return _closed(_settled(low), _settled(high), unit, text)


def _closed(low: float, high: float, unit: str | None, text: str) -> Region:
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RefusedError("PR032", f"{quoted(text)} has an end that is not a finite number")
    if low > high:
        raise RefusedError("PR032", f"{quoted(text)} is empty: its low end is above its high end")
    return Region(spans=(Span(low=low, high=high, low_closed=True, high_closed=True),), unit=unit)


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise RefusedError("PR032", f"{quoted(text)} is not a finite number")
    return _settled(value)


def _settled(value: float) -> float:
    """An edge at 15 significant digits, as the interval that is held against it."""
    near = float(f"{value:.15g}")
    return (near if math.isfinite(near) else value) + 0.0  # -0.0 and 0.0 are one edge


def _unit(*texts: str | None) -> str | None:
    named = {normal_unit(text) for text in texts if text}
    if len(named) > 1:
        raise RefusedError("PR032", "one region names two units; write both numbers in one")
    return named.pop() if named else None


def _meet(a: Span, b: Span) -> bool:
    low, high = max(a.low, b.low), min(a.high, b.high)
    touching = all(_above(span, low) and _below(span, low) for span in (a, b))
    return low < high or (low == high and math.isfinite(low) and touching)


def _above(span: Span, value: float) -> bool:
    return value > span.low or (value == span.low and (span.low_closed or math.isinf(value)))


def _below(span: Span, value: float) -> bool:
    return value < span.high or (value == span.high and (span.high_closed or math.isinf(value)))


def _short(value: float) -> str:
    return f"{value:.15g}"
