"""Which method answers a question."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.errors import JudgeError, Problem
from pytest_prereg.judge.locations import find_location
from pytest_prereg.judge.percentiles import find_quantile
from pytest_prereg.judge.proportions import find_proportion

if TYPE_CHECKING:
    from pytest_prereg.judge.findings import Finding
    from pytest_prereg.judge.question import Question
    from pytest_prereg.judge.samples import Reading

_FINDERS = {"median": find_quantile, "quantile": find_quantile, "proportion": find_proportion}


def find(question: Question, readings: list[Reading]) -> Finding:
    """What these readings alone say; numbers whose squares are none are a ``JudgeError`` (PR140)."""
    try:
        return _FINDERS.get(question.statistic, find_location)(question, readings)
    except OverflowError as error:
        what = f'"{question.text}" of prediction "{question.prediction}"'
        message = f"{what} has values too large, or too close together, to judge"
        raise JudgeError(Problem(code="PR140", message=message)) from error
