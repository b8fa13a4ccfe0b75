"""Which method answers a question."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.errors import JudgeError, Problem
from pytest_prereg.judge.comparisons import find_comparison
from pytest_prereg.judge.deviations import find_deviation
from pytest_prereg.judge.locations import find_location
from pytest_prereg.judge.percentiles import find_quantile
from pytest_prereg.judge.proportions import find_proportion
from pytest_prereg.judge.quotients import find_quotient
from pytest_prereg.judge.valueless import unjudgeable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_prereg.judge.findings import Finding
    from pytest_prereg.judge.question import Question
    from pytest_prereg.judge.samples import Reading

_FINDERS: Mapping[tuple[str, str | None], Callable[[Question, list[Reading]], Finding]] = {
    ("mean", None): find_location,
    ("mean", "-"): find_location,
    ("mean", "/"): find_quotient,
    ("mean", "plateau"): find_comparison,
    ("mean", "increasing"): find_comparison,
    ("mean", "exponent"): find_location,
    ("geometric-mean", None): find_location,
    ("geometric-mean", "/"): find_location,
    ("ratio-of-sums", None): find_quotient,
    ("median", None): find_quantile,
    ("quantile", None): find_quantile,
    ("proportion", None): find_proportion,
    ("sd", None): find_deviation,
}


def find(question: Question, readings: list[Reading]) -> Finding:
    """What these readings alone say; numbers whose squares are none are a ``JudgeError`` (PR140).

    What no rule decides is refused where it is registered, and again here, by the same codes (PR023, PR024):
    no question is answered by another's method.
    """
    finder = _FINDERS.get((question.statistic, question.operator))
    if finder is None:
        raise _undecidable(question, "PR023", f"no method for {question.statistic}")
    if (question.anytime or question.reduction or question.operator == "exponent") and (
        why := _unmet(question)
    ):
        raise _undecidable(question, "PR024", why)
    try:
        return finder(question, readings)
    except OverflowError as error:
        what = f'"{question.text}" of prediction "{question.prediction}"'
        message = f"{what} has values too large, or too close together, to judge"
        raise unjudgeable(question.prediction, message) from error


def _unmet(question: Question) -> str | None:
    """What a rule that asks for more than its readings is not given."""
    in_blocks = question.paired or len(question.arms) == 1
    if question.operator == "exponent" and not question.paired:
        return "a slope is taken inside blocks"
    if question.reduction and not in_blocks:
        return "points are reduced inside blocks"
    if question.reduction == "geometric-mean" and question.statistic != "geometric-mean":
        return "a geometric mean of points is judged on logarithms"
    if question.anytime and (
        question.statistic not in ("mean", "geometric-mean")
        or question.operator in ("plateau", "increasing", "exponent")
        or (question.statistic == "mean" and question.operator == "/")
        or question.reduction
        or not in_blocks
    ):
        return "no interval of it holds at every look"
    return None


def _undecidable(question: Question, code: str, why: str) -> JudgeError:
    contrast = f" of {question.operator}" if question.operator else ""
    message = f'prediction "{question.prediction}": {question.statistic}{contrast} has no rule: {why}'
    return JudgeError(Problem(code=code, message=message))
