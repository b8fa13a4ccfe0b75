"""Units as they are written: ``s/token``, ``GB/s``, ``token^2/(s*step)``; names are not looked up here.

A unit is held as the powers of the names in it, in the order written, so that ``s / token`` and ``s/token``
are one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

from pytest_prereg.registry.refusals import RefusedError, quoted

Powers = Mapping[str, Fraction]
"""Exponent by name; empty is dimensionless. No exponent is 0."""

LONGEST = 100
_TOKEN = re.compile(
    r"\s*(?:(?P<name>[^\W\d]\w*|%|°\w+)|(?P<power>(?:\*\*|\^)\s*(?P<exponent>-?[0-9]{1,3}(?:\.[0-9]{1,3})?))"
    r"|(?P<sign>[*/·()])|(?P<one>1)(?![\w.]))"
)


def parse_unit(text: str) -> dict[str, Fraction]:
    """The powers of the names in ``text``; raises a PR021 refusal when it can't be read."""
    tokens = _tokens(text)
    powers = _product(tokens, text, depth=0)
    if tokens:
        raise _unreadable(text)
    return powers


def normal_unit(text: str) -> str:
    """``text`` in its normal spelling: ``"s / token"`` gives ``"s/token"``."""
    return unit_text(parse_unit(text))


def unit_text(powers: Powers) -> str:
    """How a unit is written; ``"1"`` for dimensionless."""
    above = "*".join(_factor(name, power) for name, power in powers.items() if power > 0)
    below = "".join("/" + _factor(name, -power) for name, power in powers.items() if power < 0)
    return (above or "1") + below


def times(left: Powers, right: Powers, sign: int = 1) -> dict[str, Fraction]:
    """``left * right``, or ``left / right`` with ``sign=-1``."""
    product = dict(left)
    for name, power in right.items():
        product[name] = product.get(name, Fraction(0)) + sign * power
        if not product[name]:
            del product[name]
    return product


def raised(powers: Powers, exponent: Fraction) -> dict[str, Fraction]:
    """``powers`` to the power ``exponent``."""
    return {name: power * exponent for name, power in powers.items()} if exponent else {}


def _factor(name: str, power: Fraction) -> str:
    return name if power == 1 else f"{name}^{float(power):.6g}"


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    position, end = 0, len(text.rstrip())
    if not end or end > LONGEST:
        raise _unreadable(text)
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            raise _unreadable(text)
        kind = match.lastgroup or "" if match["exponent"] is None else "power"
        tokens.append((kind, match["exponent"] or match[kind]))
        position = match.end()
    return tokens[::-1]


def _product(tokens: list[tuple[str, str]], text: str, depth: int) -> dict[str, Fraction]:
    powers = _power(tokens, text, depth)
    while tokens and tokens[-1][1] in ("*", "/", "·"):
        sign = -1 if tokens.pop()[1] == "/" else 1
        powers = times(powers, _power(tokens, text, depth), sign)
    return powers


def _power(tokens: list[tuple[str, str]], text: str, depth: int) -> dict[str, Fraction]:
    kind, written = tokens.pop() if tokens else ("", "")
    if written == "(" and depth < 10:  # noqa: PLR2004
        powers = _product(tokens, text, depth + 1)
        if not tokens or tokens.pop()[1] != ")":
            raise _unreadable(text)
    elif kind in ("name", "one"):
        powers = {written: Fraction(1)} if kind == "name" else {}
    else:
        raise _unreadable(text)
    if tokens and tokens[-1][0] == "power":
        powers = raised(powers, Fraction(tokens.pop()[1]))
    return powers


def _unreadable(text: str) -> RefusedError:
    return RefusedError(
        "PR021", f'{quoted(text)} is no unit; write names with "*", "/" and "^", as in "s/token"'
    )
