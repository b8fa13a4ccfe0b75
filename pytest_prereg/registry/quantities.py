"""Quantities: expressions over the metrics of one repeat, parsed with ``ast`` into nested lists, never run.

``t_train / t_gen`` becomes ``["/", "t_train", "t_gen"]``, ``constants.N`` becomes ``["constant", "N"]``. A
name that stands for samples is a vector; reductions make a number of it.
"""

from __future__ import annotations

import ast
import re
import warnings
from typing import TYPE_CHECKING

from pytest_prereg.registry.evaluation import evaluate as evaluate  # noqa: PLC0414  # one place to import from
from pytest_prereg.registry.model import Node, Quantity
from pytest_prereg.registry.refusals import RefusedError, listed, quoted, suggestion

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

LONGEST = 1000
DEEPEST = 40
RESERVED = frozenset({"completed", "constants"})
"""Names that no metric may have: ``completed`` is 1 for a repeat that is ok, 0 for a failure or timeout."""

ARITHMETIC: Mapping[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.Pow: "**",
}
COMPARISONS: Mapping[type[ast.AST], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
REDUCTIONS = frozenset({"min", "max", "mean", "median", "sum", "count", "std", "share", "quantile"})
ELEMENTWISE = frozenset({"log", "exp", "sqrt", "abs"})
FUNCTIONS = REDUCTIONS | ELEMENTWISE

_ALLOWED = re.compile(r"[\w\s.+\-*/()<>=!,]*+")


def parse_quantity(text: str, metrics: Collection[str], constants: Collection[str] = ()) -> Quantity:
    """The quantity that ``text`` writes, over the given metric and constant names.

    Raises:
        RefusedError: PR020 for what is no quantity, PR007 for an unknown metric or constant.
    """
    node = parse_expression(text)
    used = sorted(set(names_used(node)))
    if unknown := [name for name in used if name not in metrics and name != "completed"]:
        hint = suggestion(unknown[0], [*metrics, "completed"], "declared")
        kind = "metric" if len(unknown) == 1 else "metrics"
        raise RefusedError("PR007", f"quantity {quoted(text)} uses unknown {kind} {listed(unknown)}{hint}")
    for name in constants_used(node):
        if name not in constants:
            hint = suggestion(name, constants, "known")
            raise RefusedError("PR007", f"quantity {quoted(text)} uses unknown constant {quoted(name)}{hint}")
    if not used:
        raise RefusedError(
            "PR020", f"quantity {quoted(text)} names no metric, so there is nothing to measure"
        )
    return Quantity(text=text, node=node, metrics=tuple(name for name in used if name != "completed"))


def parse_expression(text: str) -> Node:
    """What ``text`` writes, whatever its names may stand for; raises a PR020 refusal where it is nothing."""
    return _node(_syntax_tree(text), text, 0)


def names_used(node: Node) -> Iterator[str]:
    """Names in ``node``, other than those of constants, as often as they occur."""
    if isinstance(node, str):
        yield node
    elif isinstance(node, list) and node[0] != "constant":
        for operand in node[1:]:
            yield from names_used(operand)


def constants_used(node: Node) -> Iterator[str]:
    """Names of the constants in ``node``, as often as they occur."""
    if isinstance(node, list):
        if node[0] == "constant":
            yield node[1]
        else:
            for operand in node[1:]:
                yield from constants_used(operand)


def node_text(node: Node) -> str:
    """``node`` as a person would write it, with all its brackets."""
    if not isinstance(node, list):
        return f"{node:.15g}" if isinstance(node, float) else node
    name, operands = node[0], [node_text(operand) for operand in node[1:]]
    if name == "constant":
        return f"constants.{operands[0]}"
    if name.isalpha():
        return f"{name}({', '.join(operands)})"
    inner = [
        f"({text})"
        if text.startswith("-") or (isinstance(operand, list) and not operand[0].isalpha())
        else text
        for operand, text in zip(node[1:], operands, strict=True)
    ]
    return f"{name}{inner[0]}" if len(inner) == 1 else f" {name} ".join(inner)


def is_binary(node: Node) -> bool:
    """Whether ``node`` can only be 0 or 1, so that its mean over repeats is a proportion."""
    if not isinstance(node, list):
        return node in ("completed", 0.0, 1.0)
    operator, operands = node[0], node[1:]
    if operator in COMPARISONS.values():
        return True
    if operator == "-" and len(operands) == 2:  # noqa: PLR2004
        return operands[0] == 1.0 and is_binary(operands[1])
    return operator in ("*", "min", "max") and all(is_binary(operand) for operand in operands)


def _syntax_tree(text: str) -> ast.expr:
    if len(text) > LONGEST:
        raise RefusedError("PR020", f"quantity {quoted(text)} is longer than {LONGEST} characters")
    end = _ALLOWED.match(text).end()  # type: ignore[union-attr]  # the empty match always exists
    if end < len(text):
        raise RefusedError(
            "PR020", f"quantity {quoted(text)} has {quoted(text[end])}, which means nothing here"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "1if" and the like are refused below in any case
        try:
            return ast.parse(" ".join(text.split()), mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            message = f'quantity {quoted(text)} is not an expression; write one such as "t_train / t_gen"'
            raise RefusedError("PR020", message) from None


def _node(tree: ast.expr, text: str, depth: int) -> Node:  # noqa: PLR0911  # one case, one return
    if depth > DEEPEST:
        raise RefusedError("PR020", f"quantity {quoted(text)} is nested more than {DEEPEST} deep")
    match tree:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return _number(value, text)
        case ast.Name(id=name) if name != "constants":
            return name
        case ast.Attribute(value=ast.Name(id="constants"), attr=name):
            return ["constant", name]
        case ast.UnaryOp(op=ast.USub() | ast.UAdd()):
            return _signed(tree, text, depth)
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in ARITHMETIC:
            return _arithmetic(ARITHMETIC[type(operator)], left, right, text, depth)
        case ast.Compare():
            return _comparison(tree, text, depth)
        case ast.Call(func=ast.Name(id=name), keywords=[]):
            return _call(name, tree.args, text, depth)
    raise RefusedError("PR020", f"quantity {quoted(text)} has {quoted(ast.unparse(tree))}, {_advice(tree)}")


def _number(value: float, text: str) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    if number == float("inf"):
        raise RefusedError("PR020", f"quantity {quoted(text)} has a number that is not finite")
    return number


def _signed(tree: ast.UnaryOp, text: str, depth: int) -> Node:
    operand = _node(tree.operand, text, depth + 1)
    if isinstance(tree.op, ast.UAdd):
        return operand
    return -operand if isinstance(operand, float) else ["-", operand]


def _arithmetic(operator: str, left: ast.expr, right: ast.expr, text: str, depth: int) -> Node:
    node = [operator, _node(left, text, depth + 1), _node(right, text, depth + 1)]
    if operator == "/" and node[2] == 0:
        raise RefusedError("PR020", f"quantity {quoted(text)} divides by zero, so it never has a value")
    return node


def _comparison(tree: ast.Compare, text: str, depth: int) -> Node:
    """``a < b < c`` is 1 where both hold: the product of the two."""
    if not all(type(operator) in COMPARISONS for operator in tree.ops):
        raise RefusedError(
            "PR020", f"quantity {quoted(text)} has {quoted(ast.unparse(tree))}, {_advice(tree)}"
        )
    sides = [_node(side, text, depth + 1) for side in (tree.left, *tree.comparators)]
    links: list[Node] = [
        [COMPARISONS[type(operator)], sides[index], sides[index + 1]]
        for index, operator in enumerate(tree.ops)
    ]
    chain = links[0]
    for link in links[1:]:
        chain = ["*", chain, link]
    return chain


def _call(name: str, arguments: list[ast.expr], text: str, depth: int) -> Node:
    if name not in FUNCTIONS:
        hint = suggestion(name, sorted(FUNCTIONS), "known")
        raise RefusedError("PR020", f"quantity {quoted(text)} calls unknown function {quoted(name)}{hint}")
    operands = [_node(argument, text, depth + 1) for argument in arguments]
    wanted = 2 if name == "quantile" else 1
    if len(operands) != wanted and not (name in ("min", "max") and operands):
        raise RefusedError(
            "PR020",
            f"quantity {quoted(text)}: {quoted(name)} takes {wanted} argument(s), not {len(operands)}",
        )
    if name == "quantile" and not (isinstance(operands[1], float) and 0 <= operands[1] <= 1):
        raise RefusedError(
            "PR020", f"quantity {quoted(text)}: the second argument of quantile is a number from 0 to 1"
        )
    return [name, *operands]


def _advice(tree: ast.expr) -> str:
    if isinstance(tree, ast.BoolOp | ast.UnaryOp):
        return 'which is not offered; multiply comparisons for "and", write "1 - x" for "not"'
    functions = ", ".join(sorted(FUNCTIONS))
    return f"which is not offered; use numbers, metrics, constants.N, + - * / **, comparisons, {functions}"
