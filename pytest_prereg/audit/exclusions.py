"""What the lock says against evidence, applied to it: repeats that are excluded, and series that are voided.

Evidence itself never changes. Whether a series is at its end does not depend on what is said of it later: no
exclusion reopens one, or lets it end at another repeat.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from msgspec.structs import replace

from pytest_prereg.errors import Problem, one_line
from pytest_prereg.evidence.model import Outcome
from pytest_prereg.evidence.naming import shown
from pytest_prereg.registry.environment_conditions import machine_outside
from pytest_prereg.registry.refusals import quoted, suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.evidence.files import SessionFile
    from pytest_prereg.evidence.model import RecordedRepeat, Series
    from pytest_prereg.registry.lock import Lock
    from pytest_prereg.registry.model import Experiment

EXCLUDABLE = frozenset({Outcome.OK, Outcome.INVALID})
"""Outcomes of a repeat that its author may exclude: a failure or a timeout is never dropped."""
REFUSED: Mapping[Outcome, str] = {
    Outcome.TASK_FAILED: "failed, and a failure is never dropped",
    Outcome.TIMEOUT: "timed out, and what ran into its limit is never dropped",
    Outcome.INFRASTRUCTURE: "was lost to infrastructure every time, which decides nothing anyway",
    Outcome.EXCLUDED: "was excluded by a registered rule when it ended",
}
"""Why a repeat that ended otherwise is not excluded."""
LONGEST_SEARCH = 2000
"""As many names are compared with one that is unknown."""


def name_of(series: Series) -> str:
    """Return ``experiment/number``, as a lock names a series."""
    return f"{series.experiment}/{series.number}"


def series_in(repeat: str) -> str:
    """Return ``experiment/number`` of a repeat's id."""
    return "/".join(repeat.split("/")[:2])


def applied(series: Series, lock: Lock | None) -> Series:
    """Return a series with the repeats taken out that a lock excludes, and voided if that says so."""
    if lock is None or not (lock.exclusions or lock.voided):
        return series
    own = name_of(series)
    excluded = {one.repeat: one_line(one.reason) for one in lock.exclusions if series_in(one.repeat) == own}
    voided = next((one_line(one.reason) for one in lock.voided if one.series == own), None)
    return replace(series, repeats=_without(series.repeats, excluded), voided=voided)


def like(series: Series, other: Series) -> Series:
    """Return another reading of ``series`` with all that is known of that besides its repeats."""
    excluded = {repeat.id: repeat.cause or "" for repeat in series.repeats if repeat.by_author}
    repeats = _without(other.repeats, excluded)
    return replace(other, repeats=repeats, voided=series.voided, outside=series.outside)


def with_conditions(experiment: Experiment, series: Series, files: Iterable[SessionFile]) -> Series:
    """Return a series with what its sessions say of the conditions that were registered for the machine.

    Of what a service ran each repeat says it for itself.
    """
    conditions = experiment.table.conditions
    if not conditions:
        return series
    headers = [file.header for file in files if file.header and file.path.name in series.sessions]
    if any(header.origin == "imported" for header in headers):
        return replace(series, outside="it was imported, and nobody can tell whether they held there")
    here = (header for header in headers if not header.elsewhere)
    told = (machine_outside(conditions, header.environment) for header in here)
    return replace(series, outside=next(filter(None, told), None))


def misplaced(state: StudyState) -> list[tuple[str, Problem]]:
    """Return a problem for each entry of the lock that can't be applied, with the experiment it names."""
    lock = state.lock
    if lock is None or not (lock.exclusions or lock.voided):
        return []
    series = {name_of(one): one for several in state.as_recorded.values() for one in several}
    found = [(one.repeat, _wrong_repeat(one.repeat, series)) for one in lock.exclusions]
    found += [(one.series, unknown_series(one.series, series)) for one in lock.voided]
    return [(name.partition("/")[0], _misplaced(state, wrong)) for name, wrong in found if wrong]


def unknown_series(name: str, known: Mapping[str, Series]) -> str | None:
    """Return what is wrong with a series' name, if it is none of the evidence."""
    if name in known:
        return None
    experiment = name.partition("/")[0]
    own = [one for one in known if one.partition("/")[0] == experiment]
    return f"no series of the evidence is called {quoted(name)}{suggestion(name, own or known)}"


def unknown_repeat(repeat: str, known: Mapping[str, Series]) -> str:
    """Return that a repeat is none of the evidence, with the name that was probably meant."""
    series = known.get(series_in(repeat))
    if series is None:
        return unknown_series(series_in(repeat), known) or ""
    names = [one.id for one in series.repeats[:LONGEST_SEARCH]]
    return f"no repeat of the evidence is called {quoted(repeat)}{suggestion(repeat, names)}"


def _wrong_repeat(repeat: str, known: Mapping[str, Series]) -> str | None:
    series = known.get(series_in(repeat))
    found = next((one for one in series.repeats if one.id == repeat), None) if series else None
    if found is None:
        return unknown_repeat(repeat, known)
    return None if found.outcome in EXCLUDABLE else f"{quoted(repeat)} {REFUSED[found.outcome]}"


def _misplaced(state: StudyState, wrong: str) -> Problem:
    return Problem(
        code="PR151",
        message=f"an entry of the lock can't be applied: {wrong}",
        path=shown(state.study.lock_path),
        advice="Bring the evidence back, or restore the lock as it was: "
        f"git log --oneline -- {shlex.quote(shown(state.study.lock_path))}",
    )


def _without(repeats: tuple[RecordedRepeat, ...], excluded: Mapping[str, str]) -> tuple[RecordedRepeat, ...]:
    if not excluded:
        return repeats
    return tuple([_excluded(one, excluded[one.id]) if one.id in excluded else one for one in repeats])


def _excluded(repeat: RecordedRepeat, reason: str) -> RecordedRepeat:
    if repeat.outcome not in EXCLUDABLE:
        return repeat
    return replace(repeat, outcome=Outcome.EXCLUDED, by_author=True, cause=reason)
