"""Which quantities lie between 0 and 1 whatever is measured: the interval of their mean ends there too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.registry.quantities import COMPARISONS

if TYPE_CHECKING:
    from pytest_prereg.registry.model import Node, Prediction

_CONDITIONS = frozenset(COMPARISONS.values())
_PICKS = frozenset({"min", "max", "mean", "median"})


def limits_of(prediction: Prediction, scale: float) -> tuple[float, float] | None:
    """Least and greatest mean of shares, or difference of two, times ``scale``; ``None`` for all else."""
    if prediction.statistic not in ("mean", "geometric-mean") or not is_share(prediction.quantity.node):
        return None
    if prediction.contrast is None:
        return 0.0, scale
    return (-scale, scale) if prediction.contrast.operator == "-" else None


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
