"""Predictions as far as they can be judged, and what the judge has to say against them, as findings."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_prereg.audit.finding import Finding, Level
from pytest_prereg.audit.findings.places import place_of
from pytest_prereg.errors import HistoryError, PreregError
from pytest_prereg.evidence.naming import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.standing import Assessment
    from pytest_prereg.errors import Problem


def assessed(state: StudyState) -> Iterator[Assessment]:
    """Yield where each prediction stands, without those that can't be judged."""
    for prediction in state.study.predictions.values():
        with suppress(PreregError):
            yield state.assess(prediction)


def upheld(state: StudyState) -> Iterator[Assessment]:
    """Yield what :func:`assessed` does, without what is withdrawn."""
    for assessment in assessed(state):
        if assessment.entry is None or assessment.entry.withdrawal is None:
            yield assessment


def refused(state: StudyState) -> Iterator[Finding]:
    """Yield an error for each prediction that can't be judged: no verdict of it can be relied on."""
    for name, prediction in state.study.predictions.items():
        try:
            state.assess(prediction)
        except PreregError as error:
            yield from findings_of(state, error, name)


def findings_of(state: StudyState, error: PreregError, name: str) -> Iterator[Finding]:
    """Yield an error for each problem that was raised; of one with git it is that it could not be told."""
    untold = isinstance(error, HistoryError)
    for problem in error.problems:
        yield finding_of(state, problem, name, untold=untold)


def finding_of(state: StudyState, problem: Problem, name: str, *, untold: bool = False) -> Finding:
    """Return a problem as an error, at the prediction's line (or the experiment's) where it names no line."""
    path, line = problem.path, problem.line
    if line is None or path is None:
        path, line = place_of(state, name)
    return Finding(
        code=problem.code,
        id=name,
        level=Level.ERROR,
        message=problem.message,
        path=shown(Path(path)),
        line=line,
        advice=problem.advice,
        untold=untold,
    )


def guarded(finder: Callable[[StudyState], Iterator[Finding]], state: StudyState) -> Iterator[Finding]:
    """Yield what a finder finds; where it meets what can't be read that is a finding, and the rest go on."""
    try:
        yield from finder(state)
    except PreregError as error:
        yield from findings_of(state, error, "")
