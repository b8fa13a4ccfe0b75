"""Derivatives of a parsed expression, exact: forward-mode differentiation by the chain rule."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, NamedTuple

from pytest_prereg.registry.evaluation import evaluate

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from pytest_prereg.registry.model import Node


class _Dual(NamedTuple):
    """A value, and how fast it rises with each name that it depends on."""

    value: float
    slopes: Mapping[str, float]


def gradient(
    node: Node, point: Mapping[str, float], names: Collection[str] | None = None
) -> dict[str, float]:
    """The derivative of ``node`` at ``point`` by each of ``names``, 0 for one that it does not use.

    Args:
        node: A parsed expression of numbers, names, arithmetic and elementwise functions.
        point: The value of each name.
        names: Those to differentiate by, all others being constant; all if ``None``.

    Raises:
        ValueError: A comparison or a reduction, which have no derivative; nor have ``min`` and ``max`` of
            equal values, ``abs`` of 0, or a power of a negative base whose exponent varies; or a logarithm
            or root outside its domain.
        ArithmeticError: Division by zero, or a derivative too large for a number.
        KeyError: A name that has no value.
    """
    wanted = list(point if names is None else names)
    slopes = _dual(node, point, frozenset(wanted)).slopes
    found = {name: slopes.get(name, 0.0) for name in wanted}
    if not all(map(math.isfinite, found.values())):
        raise OverflowError("node: a derivative is too large for a number")
    return found


def _dual(node: Node, point: Mapping[str, float], names: frozenset[str]) -> _Dual:
    if isinstance(node, str):
        return _Dual(point[node], {node: 1.0} if node in names else {})
    if not isinstance(node, list):
        return _Dual(node, {})
    function, *operands = node
    if (function, len(operands) > 1) not in _PARTIALS:
        raise ValueError(f"node: {function!r} of {len(operands)} has no derivative")
    duals = [_dual(operand, point, names) for operand in operands]
    if len(duals) == 1:
        return _applied(function, *duals)
    return functools.reduce(functools.partial(_applied, function), duals)


def _applied(function: str, *operands: _Dual) -> _Dual:
    values = [operand.value for operand in operands]
    value, slopes = evaluate([function, *values], {}), dict[str, float]()
    # A partial derivative is only asked for where something varies: x ** 2 needs no logarithm of x.
    for partial, operand in zip(_PARTIALS[function, len(operands) > 1], operands, strict=True):
        if operand.slopes:
            steepness = partial(*values)
            for name, slope in operand.slopes.items():
                slopes[name] = slopes.get(name, 0.0) + steepness * slope
    return _Dual(value, slopes)


def _sign(value: float) -> float:
    if value == 0:
        raise ValueError("node: abs has no derivative at 0")
    return math.copysign(1.0, value)


def _is_less(a: float, b: float) -> float:
    if a == b:
        raise ValueError(f"node: min and max have no derivative where both are {a:.10g}")
    return float(a < b)


def _by_base(base: float, exponent: float) -> float:
    return exponent * math.pow(base, exponent - 1) if exponent else 0.0


def _by_exponent(base: float, exponent: float) -> float:
    return math.pow(base, exponent) * math.log(base)


_PARTIALS: Mapping[tuple[str, bool], tuple[Callable[..., float], ...]] = {
    ("-", False): (lambda _: -1.0,),
    ("log", False): (lambda a: 1 / a,),
    ("exp", False): (math.exp,),
    ("sqrt", False): (lambda a: 0.5 / math.sqrt(a),),
    ("abs", False): (_sign,),
    ("+", True): (lambda _a, _b: 1.0, lambda _a, _b: 1.0),
    ("-", True): (lambda _a, _b: 1.0, lambda _a, _b: -1.0),
    ("*", True): (lambda _, b: b, lambda a, _: a),
    ("/", True): (lambda _, b: 1 / b, lambda a, b: -a / b / b),
    ("**", True): (_by_base, _by_exponent),
    ("min", True): (_is_less, lambda a, b: _is_less(b, a)),
    ("max", True): (lambda a, b: _is_less(b, a), _is_less),
}
"""Partial derivatives of each function by its operands; by whether it joins two."""
