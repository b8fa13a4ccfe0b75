"""What a repeat that failed, or was cut off, answers to a question of yes or no: yes, no, or either."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from pytest_prereg.evidence.model import Outcome
from pytest_prereg.judge.durations import UNITS, is_duration
from pytest_prereg.registry.evaluation import evaluate
from pytest_prereg.registry.quantities import COMPARISONS, names_used

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_prereg.evidence.model import RecordedRepeat, Value
    from pytest_prereg.judge.question import Question
    from pytest_prereg.registry.model import Metric, Node

_CONDITIONS = frozenset(COMPARISONS.values())
_UNEVALUABLE = (ArithmeticError, LookupError, TypeError, ValueError)


class _Known(NamedTuple):
    """What is known of the values in a repeat: where each lies, from least to most."""

    least: dict[str, Value]
    most: dict[str, Value]
    unsure: frozenset[str]
    """Metrics that have no value, or none but a bound."""
    metrics: Mapping[str, Metric]
    constants: Mapping[str, float]


def answer_of_failed(question: Question, repeat: RecordedRepeat) -> float | None:
    """1 or 0, or ``None`` where it could be either; the times of a repeat that timed out are endless."""
    values: dict[str, Value] = {"completed": 0.0}
    if repeat.outcome is Outcome.TIMEOUT:
        values |= {metric.name: math.inf for metric in question.metrics if metric.unit in UNITS}
    unsure = frozenset(metric.name for metric in question.metrics)
    return _answer(question.node, _known(question, values, values, unsure))


def answer_of_capped(question: Question, values: dict[str, Value]) -> float | None:
    """1 or 0, or ``None`` where that hangs on how far above their metric's cap samples are."""
    most = opened(question, values)
    unsure = frozenset(name for name in question.caps if most[name] != values[name])
    return _answer(question.node, _known(question, values, most, unsure))


def opened(question: Question, values: dict[str, Value]) -> dict[str, Value]:
    """The values, with every sample at its metric's cap as far above it as can be."""
    return {**values, **{name: _opened(values[name], cap) for name, cap in question.caps.items()}}


def _known(
    question: Question, least: dict[str, Value], most: dict[str, Value], unsure: frozenset[str]
) -> _Known:
    metrics = {metric.name: metric for metric in question.metrics}
    return _Known(least, most, unsure, metrics, question.constants)


def _opened(value: Value, cap: float) -> Value:
    if isinstance(value, list):
        return [math.inf if one >= cap else one for one in value]
    return math.inf if value >= cap else value


def _answer(node: Node, known: _Known) -> float | None:
    if known.unsure.isdisjoint(names_used(node)):
        return _evaluated(node, known.least, known)
    if not isinstance(node, list):
        return None
    operator, *operands = node
    if operator in _CONDITIONS:
        return _compared(node, known)
    return _joined(operator, [_answer(operand, known) for operand in operands], known)


def _joined(operator: Node, answers: list[float | None], known: _Known) -> float | None:
    if operator in ("*", "min") and 0 in answers:
        return 0.0
    if operator == "max" and 1 in answers:
        return 1.0
    if operator not in ("*", "-", "min", "max") or None in answers:
        return None
    return _evaluated([operator, *answers], {}, known)


def _compared(node: list[Node], known: _Known) -> float | None:
    """One quantity that grows with what is unsure is compared with what is sure: both ends tell all."""
    grows = [operand for operand in node[1:] if not known.unsure.isdisjoint(names_used(operand))]
    if len(grows) != 1 or not (isinstance(grows[0], str) or is_duration(grows[0], known.metrics)):
        return None
    least, most = (_evaluated(node, values, known) for values in (known.least, known.most))
    return least if least == most and node[0] not in ("==", "!=") else None


def _evaluated(node: Node, values: dict[str, Value], known: _Known) -> float | None:
    try:
        return evaluate(node, values, known.constants)
    except _UNEVALUABLE:
        return None
