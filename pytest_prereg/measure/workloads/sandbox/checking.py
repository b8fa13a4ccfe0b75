"""What is wrong with a completion before anything is run: its program or a test of it can't be graded."""

from __future__ import annotations

import keyword
import math
from typing import TYPE_CHECKING, Any

from pytest_prereg.measure.workloads.language.settings import is_number, refuse
from pytest_prereg.measure.workloads.sandbox.completions import CallTest
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_prereg.measure.workloads.sandbox.completions import Completion, ScriptTest, Test

WORKLOAD_VERSION = "1"

DEEPEST = 64
"""How deep a value of a test may be nested; far below what any parser of JSON takes."""


def check_completions(completions: Iterable[Completion]) -> None:
    """Refuse those that can't be graded, all at once.

    Raises:
        ValueError: With every problem, and the number of the completion that has it.
    """
    refuse(
        f"completion {number}: {problem}"
        for number, completion in enumerate(completions, 1)
        for problem in completion_problems(completion)
    )


def completion_problems(completion: Completion) -> list[str]:
    """Return all that keeps a completion from being graded, each with what to write."""
    problems = list(_text_problems("program", completion.program))
    if not completion.tests:
        problems.append("tests is empty: give at least one")
    for number, test in enumerate(completion.tests, 1):
        problems += [f"test {number}: {problem}" for problem in test_problems(test)]
    return problems


def test_problems(test: Test) -> Iterator[str]:
    """Yield all that keeps a test from being run or compared, each with what to write."""
    if isinstance(test, CallTest):
        yield from _call_problems(test)
    else:
        yield from _script_problems(test)


test_problems.__test__ = False  # type: ignore[attr-defined]  # where it is imported it is none of pytest's


def _call_problems(test: CallTest) -> Iterator[str]:
    name = test.function
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        yield f"function = {quoted(name)}: give the name of a function of the program"
    if not isinstance(test.args, list | tuple):
        yield f"args = {quoted(test.args)}: give a list"
    if not isinstance(test.kwargs, dict):
        yield f"kwargs = {quoted(test.kwargs)}: give values by name"
    for name in ("args", "kwargs", "expected"):
        problem = _json_problem(getattr(test, name), DEEPEST)
        if problem is not None:
            yield f"{name} holds {problem}: give plain JSON"
    if not is_number(test.tolerance) or not 0 <= test.tolerance < math.inf:
        yield f"tolerance = {test.tolerance!r}: give a finite number of at least 0"


def _script_problems(test: ScriptTest) -> Iterator[str]:
    yield from _text_problems("stdin", test.stdin)
    yield from _text_problems("expected", test.expected)


def _text_problems(name: str, text: object) -> Iterator[str]:
    if not isinstance(text, str):
        yield f"{name} = {quoted(text)}: give text"
    elif any("\ud800" <= each <= "\udfff" for each in text):
        yield f"{name} holds half of a surrogate pair, which no UTF-8 has: leave it out"


def _json_problem(value: Any, left: int) -> str | None:
    """Return what in a value is no plain JSON, or that it is nested deeper than ``left`` levels."""
    if left < 0:
        return f"something nested over {DEEPEST} deep"
    if isinstance(value, dict):
        odd = next((key for key in value if not isinstance(key, str)), None)
        if odd is not None:
            return f"the key {quoted(odd)}, which is no text"
        value = list(value.values())
    if isinstance(value, list | tuple):
        return next((said for each in value if (said := _json_problem(each, left - 1)) is not None), None)
    if value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return None
    return f"{quoted(value)}, {type(value).__name__}"
