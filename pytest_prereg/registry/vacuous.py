"""Quantities that are the same whatever is measured, such as ``t - t``: a prediction of one tests nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pytest_prereg.registry.quantities import COMPARISONS

if TYPE_CHECKING:
    from pytest_prereg.registry.model import Input, Node, Prediction

_SAME = frozenset({"-", "/", *COMPARISONS.values()})
"""Of two equal operands these are 0 or 1, whatever the operands are."""
_COMMUTES = frozenset({"+", "*", "min", "max"})


def is_vacuous(prediction: Prediction) -> bool:
    """Whether what a prediction estimates can be told by algebra alone, without measuring anything.

    Only equal operands and factors and powers of zero are seen through, with sums and products in any order.
    """
    if prediction.formula is not None:
        sources = {each.name: _source(each) for each in prediction.formula.inputs}
        return not _varies(_named(prediction.formula.node, sources))
    if prediction.members:
        return False
    top, bottom = prediction.quantity.node, prediction.divisor and prediction.divisor.node
    return not _varies(top if bottom is None else ["/", top, bottom])


def _source(source: Input) -> Node:
    """What an input stands for, under one name for all that are the same."""
    if source.quantity is None:
        return ["constant", source.constant]
    return _text([source.experiment, source.arm, _ordered(source.quantity.node)])


def _named(node: Node, sources: dict[str, Node]) -> Node:
    if isinstance(node, str):
        return sources[node]
    return [node[0], *(_named(operand, sources) for operand in node[1:])] if isinstance(node, list) else node


def _varies(node: Node) -> bool:
    """Whether an expression may differ from repeat to repeat."""
    if not isinstance(node, list):
        return isinstance(node, str)
    name, *operands = node
    if name == "constant":
        return False
    if name in _SAME and len(operands) == 2 and _ordered(operands[0]) == _ordered(operands[1]):  # noqa: PLR2004
        return False
    if (name == "*" and 0.0 in operands) or (name == "**" and operands[1] == 0.0):
        return False
    return any(map(_varies, operands))


def _ordered(node: Node) -> Node:
    """An expression with the operands of what commutes in an order of their own."""
    if not isinstance(node, list) or node[0] == "constant":
        return node
    operands = [_ordered(operand) for operand in node[1:]]
    return [node[0], *(sorted(operands, key=_text) if node[0] in _COMMUTES else operands)]


def _text(node: Node) -> str:
    return json.dumps(node)
