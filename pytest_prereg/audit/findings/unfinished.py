"""Series that were begun and not brought to an end, and sessions that never ended: PR213.

A person has to look at what was left for good, as soon as anything of it was launched: who kills a repeat
before its end can have disliked it as well. What is still open is a notice, as the same command goes on with
it. So is what was lost on the way to a complete series: the judge counts it, and the verdict says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.audit.finding import Finding, Level
from pytest_prereg.audit.findings.places import place_of
from pytest_prereg.audit.findings.telling import acknowledging
from pytest_prereg.audit.series_states import series_states
from pytest_prereg.evidence.model import RERUN, Outcome
from pytest_prereg.evidence.series import handed_on
from pytest_prereg.judge.findings import plural
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.series_states import SeriesState
    from pytest_prereg.evidence.files import Attempt, SessionFile


def unfinished(state: StudyState) -> Iterator[Finding]:
    """Yield what became of each series that is not complete, and of sessions of one that is."""
    for experiment in state.study.experiments:
        if not state.files[experiment]:
            continue
        for told in series_states(state, experiment):
            yield from _of_series(state, experiment, told)


def _of_series(state: StudyState, experiment: str, told: SeriesState) -> Iterator[Finding]:
    files = _sessions(state, experiment, told.number)
    again = _run_again(files)
    killed = sum(file.footer is None for file in files)
    is_cut = killed and any(one.outcome is Outcome.LOST for one in again)
    never = f"; {plural(killed, 'session')} of it never ended" if is_cut else ""
    name = f"{experiment}/{told.number}"
    done = f"{told.repeats} of {told.planned}" if told.planned is not None else f"{told.repeats}"
    if told.state == "abandoned":
        level = Level.REVIEW if any(file.attempts for file in files) else Level.NOTICE
        message = f"series {quoted(name)} was abandoned after {done} repeats: {told.why}{never}"
        yield _finding(state, experiment, name, level, message)
    elif told.state == "open":
        message = f"series {quoted(name)} is open, with {done} repeats{never}"
        yield _finding(state, experiment, name, Level.NOTICE, message)
    elif told.state == "complete" and again:
        message = f"series {quoted(name)} is complete, with {_lost(again)}{never}"
        yield _finding(state, experiment, name, Level.NOTICE, message)


def _run_again(files: list[SessionFile]) -> list[Attempt]:
    """Attempts that gave no result; one that a later session took up has given its own there."""
    known = handed_on(files)
    return [
        one
        for file in files
        for one in file.attempts
        if one.outcome in RERUN and one not in known.get(file.path.name, ())
    ]


def _lost(attempts: list[Attempt]) -> str:
    """How many attempts gave no result, and what is said of why: a body can also have ended itself."""
    causes = sorted({one.cause for one in attempts if one.cause is not None})
    why = f" ({', '.join(causes)})" if causes else ""
    return f"{plural(len(attempts), 'attempt')} lost and run again{why}"


def _sessions(state: StudyState, experiment: str, number: int) -> list[SessionFile]:
    return [
        file
        for file in state.files[experiment]
        if file.header is not None and file.header.origin != "pilot" and file.header.series == number
    ]


def _finding(state: StudyState, experiment: str, name: str, level: Level, message: str) -> Finding:
    path, line = place_of(state, experiment)
    advice = {
        Level.REVIEW: "Its repeats stay, and are never judged. Say what happened: "
        f"{acknowledging('PR213', experiment)}",
    }
    return Finding(
        code="PR213",
        id=experiment,
        level=level,
        message=message,
        path=path,
        line=line,
        advice=advice.get(level),
        about=name,
    )
