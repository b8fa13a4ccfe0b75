"""Which quantities are durations: there a repeat that was cut off counts as longer than anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_prereg.registry.model import Metric, Node

UNITS = frozenset(
    f"{prefix}{unit}"
    for prefix in ("", "n", "u", "µ", "μ", "m", "nano", "micro", "milli")
    for unit in ("s", "sec", "second", "seconds")
) | {"min", "minute", "minutes", "h", "hr", "hour", "hours", "d", "day", "days"}
"""Units of time as they are usually written; a unit that is not here only makes the judge more careful."""

_PICKS = frozenset({"+", "min", "max", "mean", "median", "sum", "quantile"})


def is_duration(node: Node, metrics: Mapping[str, Metric]) -> bool:
    """Whether ``node`` grows with times alone: a time, a sum, mean, quantile or positive multiple of times.

    A difference or ratio of times is none: where one of them is cut off, the whole could lie on either side.
    """
    if isinstance(node, str):
        return node in metrics and metrics[node].unit in UNITS
    if not isinstance(node, list) or not node:
        return False
    operator, *operands = node
    if operator == "quantile":
        operands = operands[:1]
    if operator in _PICKS:
        return all(is_duration(operand, metrics) for operand in operands)
    if operator == "*":
        return any(_is_multiple(a, b, metrics) for a, b in (operands, operands[::-1]))
    return operator == "/" and _is_multiple(operands[0], operands[1], metrics)


def _is_multiple(time: Node, factor: Node, metrics: Mapping[str, Metric]) -> bool:
    return isinstance(factor, float | int) and factor > 0 and is_duration(time, metrics)
