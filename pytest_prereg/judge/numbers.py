"""Numbers printed at what their interval supports: two significant digits of its half-width."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_SIGNIFICANT = 2
"""Digits of the half-width that are printed (GUM, JCGM 100:2008, 7.2.6: one or two)."""
_EXACT = 6
"""Significant digits of a number without uncertainty."""
_EXTRA = 13
"""Digits that may be added to keep a printed end off an edge; a double has no more."""
_LARGE, _SMALL = 1e7, 1e-4
"""Outside these a number is printed with an exponent."""


def number_text(
    estimate: float | None,
    interval: Sequence[float | None] | None,
    unit: str | None = None,
    edges: Iterable[float] = (),
) -> str:
    """Return ``0.98 [0.95, 1.01] s``: the estimate and its interval, both to the interval's precision.

    An infinite side of the interval (``None`` or ``±inf``) is printed as ``..``. More digits are printed
    where fewer would move an end of the interval onto or across one of the ``edges`` of the regions that it
    is held against, so that what is printed never contradicts the verdict.
    """
    texts = number_texts(estimate, interval, edges)
    return f"{_bracketed(texts)}{suffix(unit)}" if any(texts) else "no value"


def number_texts(
    estimate: float | None,
    interval: Sequence[float | None] | None,
    edges: Iterable[float] = (),
    place: int | None = None,
) -> tuple[str, ...]:
    """Return the texts of an estimate and of the ends of its interval; empty for what is none, or infinite.

    Args:
        estimate: In the unit of the text, as all that follows.
        interval: Its two ends, or ``None``.
        edges: Of the regions that it is held against, as in :func:`number_text`.
        place: Decimals, where they are not those that the interval supports.
    """
    ends = [_finite(end) for end in interval or ()]
    known = [value for value in (estimate, *ends) if value is not None]
    if place is None:
        place = decimals(estimate, ends, edges)
    large = max(map(abs, known), default=0.0)
    scientific = large >= _LARGE or 0 < large < _SMALL
    return tuple(
        "" if each is None else plain(each, place, scientific=scientific) for each in (estimate, *ends)
    )


def _bracketed(texts: Sequence[str]) -> str:
    estimate, *ends = texts
    interval = f"[{', '.join(end or '..' for end in ends)}]" if ends else ""
    return " ".join(part for part in (estimate, interval) if part)


def suffix(unit: str | None) -> str:
    """Return what follows a number in ``unit``: nothing where it is dimensionless."""
    return "" if unit in (None, "", "1") else f" {unit}"


def decimals(estimate: float | None, ends: Sequence[float | None], edges: Iterable[float] = ()) -> int:
    """Return the number of decimals (negative: tens, hundreds) that the interval supports."""
    finite = [end for end in ends if end is not None]
    place = _significant(_half_width(estimate, finite), estimate, finite)
    held = tuple(edges)
    for closer in range(place, place + _EXTRA):
        if not any(is_moved(end, round(end, closer), held) for end in finite):
            return closer
    return place + _EXTRA


def _half_width(estimate: float | None, finite: Sequence[float]) -> float:
    """Half the interval, or from its one finite end to the estimate; 0 where neither is known."""
    match finite:
        case [low, high]:
            return high / 2 - low / 2
        case [end] if estimate is not None:
            return abs(estimate - end)
        case _:
            return 0.0


def _significant(half_width: float, estimate: float | None, finite: Sequence[float]) -> int:
    """Decimals for the half-width's leading digits; without one, for six digits of the largest number."""
    if half_width > 0:
        return place_of(half_width, _SIGNIFICANT)
    largest = max((abs(value) for value in (estimate, *finite) if value is not None), default=0.0)
    if largest == 0:
        return 0
    return _without_trailing_zeros(place_of(largest, _EXACT), largest)


def _without_trailing_zeros(place: int, value: float) -> int:
    """Fewest decimals that print ``value`` as exactly as ``place`` does."""
    while place > 0 and round(value, place - 1) == round(value, place):
        place -= 1
    return place


def is_moved(value: float, rounded: float, edges: Iterable[float]) -> bool:
    """Say whether rounding moves a value onto or across an edge."""
    return value != rounded and any((value < edge) != (rounded < edge) or rounded == edge for edge in edges)


def place_of(value: float, digits: int) -> int:
    """Return the decimals that print so many significant digits of a finite number."""
    return digits - 1 - math.floor(math.log10(abs(value))) if value else digits - 1


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def plain(value: float, place: int, *, scientific: bool = False) -> str:
    """Return ``value`` rounded to ``place`` decimals, never ``-0``."""
    rounded = round(value, place) + 0.0
    if not scientific:
        return f"{rounded:.{max(0, place)}f}"
    if not rounded:
        return "0"
    digits = max(0, place + math.floor(math.log10(abs(rounded))))
    mantissa, exponent = f"{rounded:.{digits}e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def short(value: float) -> str:
    """Return a number that somebody wrote, as short as it can be told: ``0.25``, ``1e-09``."""
    return f"{value + 0.0:.6g}"
