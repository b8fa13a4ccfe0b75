"""Yes or no, and shares of it: what lies between 0 and 1, and what no interval for a mean is honest about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.registry.quantities import COMPARISONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_prereg.judge.question import Question
    from pytest_prereg.judge.samples import Reading
    from pytest_prereg.registry.model import Node, Prediction

_CONDITIONS = frozenset(COMPARISONS.values())
_YES_OR_NO = _CONDITIONS | {"share", "completed"}
_PICKS = frozenset({"min", "max", "mean", "median"})


def limits_of(prediction: Prediction, scale: float) -> tuple[float, float] | None:
    """Least and greatest mean of shares, or difference of two, times ``scale``; ``None`` for all else."""
    if prediction.statistic not in ("mean", "geometric-mean") or not is_share(prediction.quantity.node):
        return None
    if prediction.contrast is None:
        return 0.0, scale
    return (-scale, scale) if prediction.contrast.operator == "-" else None


def asks_yes_or_no(node: Node) -> bool:
    """Whether a condition or a share is in ``node``: equal readings may come from different values."""
    if isinstance(node, list):
        return node[0] in _YES_OR_NO or any(map(asks_yes_or_no, node[1:]))
    return node in _YES_OR_NO


def is_share(node: Node) -> bool:
    """Whether ``node`` is between 0 and 1 by how it is written: a share, 1 less a share, a mean of shares."""
    if isinstance(node, str):
        return node == "completed"
    if not isinstance(node, list):
        return 0 <= node <= 1
    operator, *operands = node
    if operator == "share" or operator in _CONDITIONS:
        return True
    if operator == "quantile":
        return is_share(operands[0])
    if operator == "-":
        return len(operands) == 2 and operands[0] == 1 and is_share(operands[1])  # noqa: PLR2004
    return (operator == "*" or operator in _PICKS) and all(map(is_share, operands))


def are_yes_or_no(question: Question, columns: Sequence[Sequence[Reading]]) -> bool:
    """Whether readings are those of a yes or no, whose t interval is too narrow: all alike, it has no width.

    Counts that are 0 or 1 throughout an arm are none, if it is only asked on which side of a whole number
    they lie.
    """
    either = (0.0, question.scale)
    for column in columns:
        for reading in column:
            if (reading.low if reading.divisor == 1 else _quotient(reading)) not in either:
                return False
    if any(len({reading.low for reading in column}) > 1 for column in columns):
        return question.divisor is None
    if question.operator in ("/", "exponent"):
        return any(end % 1 for end in question.edges)
    return any(0 < abs(end) < question.scale for end in question.edges)


def _quotient(reading: Reading) -> float | None:
    return reading.low / reading.divisor if reading.divisor else None
