"""Repeats that were set aside when they ended, by their own code or by a registered rule: PR208, a notice.

Neither came after the data: the code and the rules are registered. What the code declares invalid keeps its
values, and the verdict has to be the same with and without it, however many they are; of what a rule takes
out no more than ``max-excluded`` may be. What an author excludes by hand is told from the lock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.audit.exclusions import name_of
from pytest_prereg.audit.finding import Finding, Level
from pytest_prereg.audit.findings.places import place_of
from pytest_prereg.evidence.model import Outcome
from pytest_prereg.judge.exclusions import is_by_rule
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.evidence.model import Series


def set_aside(state: StudyState) -> Iterator[Finding]:
    """Yield a notice for each series of which repeats were set aside when they ended."""
    for several in state.series.values():
        for series in several:
            yield from _of_series(state, series)


def _of_series(state: StudyState, series: Series) -> Iterator[Finding]:
    left_out = [one for one in series.repeats if one.outcome is not Outcome.OK]
    counts = {
        "declared invalid by the experiment": sum(one.outcome is Outcome.INVALID for one in left_out),
        "excluded by a registered rule": sum(map(is_by_rule, left_out)),
    }
    told = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    if not told:
        return
    path, line = place_of(state, series.experiment)
    yield Finding(
        code="PR208",
        id=series.experiment,
        level=Level.NOTICE,
        message=f"of {len(series.repeats)} repeats of series {quoted(name_of(series))}: {told}",
        path=path,
        line=line,
        about=f"{name_of(series)}: {told}",
    )
