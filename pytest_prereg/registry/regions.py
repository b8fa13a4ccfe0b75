"""Regions of values: what a prediction predicts, and what falsifies it.

A region is a union of at most two spans of the real line, held in a normal form, so that two ways of writing
one region are one region (``within 5% of 100`` is ``[95, 105]``).
"""

from __future__ import annotations

import math

import msgspec


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
