"""What is estimated across repeats: a statistic of one arm, or a contrast of two."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from pytest_prereg.registry.model import Contrast, Quantity
from pytest_prereg.registry.quantities import is_binary
from pytest_prereg.registry.refusals import RefusedError, listed, quoted, suggestion

if TYPE_CHECKING:
    from pytest_prereg.registry.tables import PredictionTable

BUILT = {
    ("mean", None),
    ("mean", "-"),
    ("geometric-mean", None),
    ("geometric-mean", "/"),
    ("median", None),
    ("proportion", None),
}
"""Statistic and contrast that the judge has an interval for."""

LATER = {
    ("mean", "/"),
    ("quantile", None),
    ("sd", None),
    ("ratio-of-sums", None),
    ("ratio-of-sums", "/"),
}
"""Those that it will have."""

STATISTICS = ("mean", "geometric-mean", "median", "proportion", "quantile(q)", "sd", "ratio-of-sums")

_CONTRAST = re.compile(r"(\S+)\s+([-/])\s+(\S+)")
_CALLED = re.compile(r"(plateau|increasing|exponent)\s*\(.*\)")


def is_later_contrast(text: str) -> bool:
    """Whether ``text`` is a contrast of more than two arms: ``plateau``, ``increasing``, ``exponent``."""
    return _CALLED.fullmatch(text.strip()) is not None


def contrast_of(table: PredictionTable) -> Contrast | None:
    """The contrast that a prediction writes; ``None`` where it writes none.

    Raises:
        RefusedError: PR005, for anything but two different arms with an operator between spaces.
    """
    if table.contrast is None:
        return None
    match = _CONTRAST.fullmatch(table.contrast.strip())
    if match is None:
        message = f'"contrast" is {quoted(table.contrast)}; write "a - b" or "a / b", with the spaces'
        raise RefusedError("PR005", message)
    left, sign, right = match.groups()
    if left == right:
        raise RefusedError("PR005", f'"contrast" is {quoted(table.contrast)}, an arm against itself')
    operator: Literal["-", "/"] = "-" if sign == "-" else "/"
    return Contrast(operator=operator, arms=(left, right))


def estimand_of(table: PredictionTable, contrast: Contrast | None) -> tuple[str, str | None]:
    """Statistic, without its argument, and contrast operator; defaults filled in, unchecked."""
    operator = contrast.operator if contrast else None
    written = table.statistic or ("geometric-mean" if operator == "/" else "mean")
    return re.sub(r"\(.*\)$", "", written.strip()), operator


def statistic_of(table: PredictionTable, contrast: Contrast | None) -> str:
    """The statistic that a prediction is judged by.

    Raises:
        RefusedError: PR005 for an unknown one, PR023 for one that has no interval with this contrast.
    """
    statistic, operator = estimand_of(table, contrast)
    names = {re.sub(r"\(.*", "", name): name for name in STATISTICS}
    if statistic not in names:
        hint = suggestion(statistic, names, "known")
        raise RefusedError("PR005", f'"statistic" is {quoted(table.statistic)}{hint}')
    if (statistic, operator) not in BUILT:
        offered = listed(sorted(name for name, contrasted in BUILT if contrasted == operator), "or")
        what = f'statistic {quoted(statistic)} has no interval for "a {operator} b"'
        raise RefusedError("PR023", f"{what}; use {offered}, or judge one arm")
    return statistic


def check_binary(quantity: Quantity, statistic: str, operator: str | None) -> None:
    """Refuse (PR033) to take the mean of what is only ever 0 or 1."""
    if is_binary(quantity.node) and statistic != "proportion":
        remedy = 'write statistic = "proportion"'
        if operator is not None:
            remedy += ", one arm at a time"
        what = f"quantity {quoted(quantity.text)} is 0 or 1, and its {statistic} has no honest interval"
        raise RefusedError("PR033", f"{what}; {remedy}")
