"""From recorded repeats to one reading each: the value of the quantity, or the range where it could lie."""

from __future__ import annotations

import math
from math import isfinite
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.errors import JudgeError, Problem
from pytest_prereg.evidence.model import Outcome, RecordedRepeat
from pytest_prereg.judge.answers import answer_of_capped, answer_of_failed, opened
from pytest_prereg.judge.resolution import grain
from pytest_prereg.judge.valueless import unjudgeable
from pytest_prereg.registry.quantities import evaluate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_prereg.evidence.model import Value
    from pytest_prereg.judge.question import Question

_UNEVALUABLE = (ArithmeticError, LookupError, TypeError, ValueError)
_OK = Outcome.OK
SET_ASIDE = frozenset({Outcome.INVALID, Outcome.EXCLUDED})
_RANKED = frozenset({"median", "quantile"})


class Reading(msgspec.Struct, frozen=True, gc=False):
    """One repeat: its quantity lies from ``low`` to ``high``, one value unless something was cut off."""

    repeat: RecordedRepeat
    low: float
    high: float
    cut: int = 0
    """Timeouts and samples at a metric's cap that it holds."""
    grain: float = 0.0
    """Resolution of the quantity; 0 where no metric declares one."""
    divisor: float = 1.0
    """Value of the denominator, or number of trials, where there is one."""
    divisor_grain: float = 0.0


class Sample(msgspec.Struct, kw_only=True, frozen=True):
    """The readings of the arms that a prediction uses, in run order."""

    kept: list[Reading]
    set_aside: list[Reading]
    """Invalid or excluded repeats whose quantity can be computed, or weighed wherever it could lie."""
    without_value: list[RecordedRepeat]
    """Invalid or excluded repeats whose quantity cannot."""


def read_sample(question: Question, repeats: Iterable[RecordedRepeat]) -> Sample:
    """Evaluate the quantity in every repeat of the arms used.

    Raises:
        JudgeError: PR140 where a repeat that counts has no finite value, naming the repeat.
    """
    sample = Sample(kept=[], set_aside=[], without_value=[])
    kept, metric, scale = sample.kept, question.metric, question.scale
    for repeat in repeats:
        if repeat.outcome is not _OK:
            _read_other(question, repeat, sample)
            continue
        value = repeat.values.get(metric)
        if type(value) is float and isfinite(value := value * scale):
            kept.append(Reading(repeat, value, value))
        else:
            kept.append(_measured(question, repeat))
    return sample


def in_blocks(readings: Sequence[Reading], arms: Sequence[str]) -> list[tuple[Reading, ...]]:
    """The readings of all arms, block by block in run order; a block that misses an arm is dropped whole."""
    first, *others = (
        {block_of(reading.repeat): reading for reading in readings if reading.repeat.arm == arm}
        for arm in arms
    )
    if len(first) + sum(map(len, others)) < len(readings):
        _refuse_double_blocks(readings)
    return [
        (reading, *[other[block] for other in others])
        for block, reading in first.items()
        if all(block in other for other in others)
    ]


def block_of(repeat: RecordedRepeat) -> int:
    """The block of a repeat: its index where none was recorded."""
    return repeat.index if repeat.block is None else repeat.block


def _read_other(question: Question, repeat: RecordedRepeat, sample: Sample) -> None:
    """Add what a repeat that is not ok is worth, if anything."""
    if repeat.outcome in SET_ASIDE:
        _set_aside(question, repeat, sample)
    elif question.counts_failures and repeat.outcome in (Outcome.TIMEOUT, Outcome.TASK_FAILED):
        sample.kept.append(_failed(question, repeat))
    elif repeat.outcome is Outcome.TIMEOUT:
        low = math.inf if question.duration else -math.inf
        sample.kept.append(Reading(repeat, low, math.inf, 1))


def _measured(question: Question, repeat: RecordedRepeat) -> Reading:
    try:
        return _reading(question, repeat, 1.0)
    except _UNEVALUABLE as error:
        what = f'"{question.text}" of prediction "{question.prediction}"'
        message = f"{what} has no value in repeat {repeat.id}: {error}"
        raise unjudgeable(question.prediction, message, _instead(question, repeat)) from error


def _instead(question: Question, repeat: RecordedRepeat) -> str:
    """What has a value where the quantity has none."""
    is_vector = isinstance(repeat.values.get(question.text), list)
    such = f", such as mean({question.text})" if is_vector else ""
    return f"a quantity that is one number in each repeat{such}"


def _set_aside(question: Question, repeat: RecordedRepeat, sample: Sample) -> None:
    """Only what ended well is excluded; whether an invalid repeat was completed, nobody knows."""
    try:
        reading = _reading(question, repeat, 1.0)
        if repeat.outcome is Outcome.INVALID and reading != _reading(question, repeat, 0.0):
            raise ValueError("it may have been completed or not")
    except _UNEVALUABLE:
        anywhere = _anywhere(question, repeat)
        if anywhere is None:
            sample.without_value.append(repeat)
            return
        reading = anywhere
    sample.set_aside.append(reading)


def _anywhere(question: Question, repeat: RecordedRepeat) -> Reading | None:
    """A repeat without a value wherever it could lie, where ranks or counts hold either end."""
    if question.counts_failures:
        return Reading(repeat, 0.0, 1.0, 1)
    if question.statistic in _RANKED:
        return Reading(repeat, -math.inf, math.inf, 1)
    return None


def _reading(question: Question, repeat: RecordedRepeat, completed: float) -> Reading:
    values = {**repeat.values, "completed": completed}
    value = evaluate(question.node, values, question.constants)
    if question.statistic == "proportion":
        return _counted(question, repeat, value, values)
    value *= question.scale
    if not math.isfinite(value):
        raise ValueError(f"it is {value}")
    size = grain(question, question.node, values) * question.scale if question.resolutions else 0.0
    if question.caps and (cut := _capped(question, values)):
        return Reading(repeat, value if question.duration else -math.inf, math.inf, cut, size)
    if question.divisor is None:
        return Reading(repeat, value, value, 0, size)
    divisor = evaluate(question.divisor, values, question.constants)
    if not math.isfinite(divisor):
        raise ValueError(f"its denominator is {divisor}")
    divisor_size = grain(question, question.divisor, values) if question.resolutions else 0.0
    return Reading(repeat, value, value, 0, size, divisor, divisor_size)


def _counted(
    question: Question, repeat: RecordedRepeat, successes: float, values: dict[str, Value]
) -> Reading:
    """Whether the repeat is a success, or how many it counted among its trials."""
    cut = _capped(question, values) if question.caps else 0
    if question.divisor is not None:
        return _among_trials(question, repeat, successes, values, cut)
    if successes not in (0.0, 1.0):
        raise ValueError(f"a proportion counts 0 and 1, and it is {successes:g}")
    if cut and answer_of_capped(question, values) is None:
        return Reading(repeat, 0.0, 1.0, cut)
    return Reading(repeat, successes, successes)


def _among_trials(
    question: Question, repeat: RecordedRepeat, successes: float, values: dict[str, Value], cut: int
) -> Reading:
    """Successes that are as many wherever above their cap samples are have nothing that is cut off."""
    node, constants = question.divisor or 1.0, question.constants
    trials = evaluate(node, values, constants)
    if trials < 1 or not 0 <= successes <= trials or successes % 1 or trials % 1:
        what = "successes are a whole number up to that of the trials, which is 1 or more"
        raise ValueError(f"{what}, and they are {successes:g} of {trials:g}")
    if cut:
        most = opened(question, values)
        if (evaluate(question.node, most, constants), evaluate(node, most, constants)) == (successes, trials):
            cut = 0
    return Reading(repeat, successes, successes, cut, divisor=trials)


def _capped(question: Question, values: dict[str, Value]) -> int:
    """How many samples lie at their metric's cap."""
    cut = 0
    for name, cap in question.caps.items():
        value = values[name]
        cut += sum(one >= cap for one in (value if isinstance(value, list) else [value]))
    return cut


def _failed(question: Question, repeat: RecordedRepeat) -> Reading:
    """A failure, unless the quantity counts failures; where it says nothing of them, it may be either."""
    answer = answer_of_failed(question, repeat)
    if answer is None:
        return Reading(repeat, 0.0, 1.0)
    value = 1.0 if answer == 1 else 0.0
    return Reading(repeat, value, value)


def _refuse_double_blocks(readings: Sequence[Reading]) -> None:
    seen: dict[tuple[str, int], str] = {}
    for reading in readings:
        repeat = reading.repeat
        other = seen.setdefault((repeat.arm, block_of(repeat)), repeat.id)
        if other != repeat.id:
            message = f"repeats {other} and {repeat.id} are in one block, which holds one repeat of each arm"
            raise JudgeError(Problem(code="PR141", message=message))
