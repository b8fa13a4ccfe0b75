"""Evaluating a parsed quantity on the values of one repeat, in plain Python.

A metric that was sampled is a list; arithmetic between lists of one length, or between a list and a number,
is by element.
"""

from __future__ import annotations

import functools
import math
import operator
import statistics
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_prereg.registry.model import Node

Value = float | list[float]

_BINARY: Mapping[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": math.pow,  # a negative base with a broken exponent is an error here, not a complex number
    "<": lambda a, b: float(a < b),
    "<=": lambda a, b: float(a <= b),
    ">": lambda a, b: float(a > b),
    ">=": lambda a, b: float(a >= b),
    "==": lambda a, b: float(a == b),
    "!=": lambda a, b: float(a != b),
    "min": min,
    "max": max,
}
_ELEMENTWISE: Mapping[str, Callable[[float], float]] = {
    "-": operator.neg,
    "log": math.log,
    "exp": math.exp,
    "sqrt": math.sqrt,
    "abs": abs,
}


def evaluate(node: Node, values: Mapping[str, Value], constants: Mapping[str, float] | None = None) -> float:
    """The value of ``node`` where metrics (and ``completed``) have ``values``.

    Raises:
        ArithmeticError: Division by zero or overflow.
        ValueError: A logarithm or root outside its domain, lists of different lengths, an empty list, or a
            result that is still a list (PR022).
        KeyError: A metric that has no value.
    """
    value = evaluated(node, values, constants)
    if isinstance(value, list):
        raise ValueError(  # noqa: TRY004  # a wrong value, not a wrong type: PR022
            f"leaves {len(value)} samples where one number is needed; reduce them, as in mean(x)"
        )
    return value


def evaluated(node: Node, values: Mapping[str, Value], constants: Mapping[str, float] | None = None) -> Value:
    """Return the same, and a list where ``node`` leaves samples, which nothing can be judged by."""
    return values[node] if isinstance(node, str) else _value(node, values, constants or {})


def _value(node: Node, values: Mapping[str, Value], constants: Mapping[str, float]) -> Value:
    if isinstance(node, str):
        return values[node]
    if not isinstance(node, list):
        return node
    name = node[0]
    if name == "constant":
        return constants[node[1]]
    operands = [_value(operand, values, constants) for operand in node[1:]]
    if name in _REDUCTIONS and (len(operands) == 1 or name == "quantile"):
        return _REDUCTIONS[name](_sample(operands[0]), *operands[1:])
    if len(operands) == 1:
        return _each(_ELEMENTWISE[name], operands[0])
    return functools.reduce(functools.partial(_paired, _BINARY[name]), operands)


def _sample(value: Value) -> list[float]:
    sample = value if isinstance(value, list) else [value]
    if not sample:
        raise ValueError("has no sample to reduce")
    return sample


def _each(function: Callable[[float], float], value: Value) -> Value:
    return [function(item) for item in value] if isinstance(value, list) else function(value)


def _paired(function: Callable[[float, float], float], left: Value, right: Value) -> Value:
    if isinstance(left, list):
        if isinstance(right, list):
            if len(left) != len(right):
                raise ValueError(f"pairs {len(left)} samples with {len(right)}")
            return [function(a, b) for a, b in zip(left, right, strict=True)]
        return [function(a, right) for a in left]
    return [function(left, b) for b in right] if isinstance(right, list) else function(left, right)


def _mean(sample: Sequence[float]) -> float:
    return math.fsum(sample) / len(sample)


def _share(sample: Sequence[float]) -> float:
    if any(value not in (0, 1) for value in sample):
        raise ValueError(
            "takes the share of values that are not 0 or 1; write a condition, as in share(x < 2)"
        )
    return _mean(sample)


def _std(sample: Sequence[float]) -> float:
    if len(sample) < 2:  # noqa: PLR2004
        raise ValueError("takes the standard deviation of a single sample")
    return statistics.stdev(sample)


def _quantile(sample: Sequence[float], share: float) -> float:
    """Linear interpolation between order statistics (type 7 of Hyndman and Fan, 1996; numpy's default)."""
    ordered = sorted(sample)
    place = share * (len(ordered) - 1)
    below = min(int(place), len(ordered) - 1)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


_REDUCTIONS: Mapping[str, Callable[..., float]] = {
    "min": min,
    "max": max,
    "mean": _mean,
    "median": statistics.median,
    "sum": math.fsum,
    "count": lambda sample: float(len(sample)),
    "std": _std,
    "share": _share,
    "quantile": _quantile,
}
