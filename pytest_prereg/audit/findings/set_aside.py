"""Repeats that were set aside when they ended, by their own code or by a rule: PR208, mostly a notice.

Neither came after the data: the code and the rules are registered. What the code declares invalid keeps its
values, and the verdict has to be the same with and without it, however many they are; of what a rule takes
out no more than ``max-excluded`` may be. An instrument that could be read in no repeat set nothing aside; one
that could in some is told as well, since the code decides when it is read. What an author excludes is told
from the lock. Where evidence itself has a repeat as excluded, and no rule that is registered says so, a
person has to look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.audit.exclusions import name_of
from pytest_prereg.audit.finding import Finding, Level
from pytest_prereg.audit.findings.places import place_of
from pytest_prereg.evidence.model import Outcome
from pytest_prereg.judge.exclusions import is_by_rule
from pytest_prereg.judge.instruments import is_unread

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.evidence.model import Series


def set_aside(state: StudyState) -> Iterator[Finding]:
    """Yield what was set aside in each series when its repeats ended, whatever the lock says of it since."""
    for several in state.as_recorded.values():
        for series in several:
            yield from _of_series(state, series)


def _of_series(state: StudyState, series: Series) -> Iterator[Finding]:
    aside = [one for one in series.repeats if one.outcome in (Outcome.INVALID, Outcome.EXCLUDED)]
    unread = sum(map(is_unread, aside))
    counts = {
        "declared invalid by the experiment": sum(one.outcome is Outcome.INVALID for one in aside) - unread,
        "excluded by a registered rule": sum(map(is_by_rule, aside)),
        "invalid for want of a reading": unread if unread < len(series.repeats) else 0,
    }
    if told := ", ".join(f"{count} {what}" for what, count in counts.items() if count):
        yield _finding(state, series, Level.NOTICE, told)
    if others := [one.id for one in aside if one.by_author]:
        told = f"{len(others)} excluded in the evidence, by no rule that is registered ({', '.join(others)})"
        yield _finding(state, series, Level.REVIEW, told)


def _finding(state: StudyState, series: Series, level: Level, told: str) -> Finding:
    path, line = place_of(state, series.experiment)
    name = name_of(series)
    return Finding(
        code="PR208",
        id=series.experiment,
        level=level,
        message=f'of {len(series.repeats)} repeats of series "{name}": {told}',
        path=path,
        line=line,
        about=f"{name}: {told}",
    )
