"""What became of each series of an experiment: open, complete, abandoned or voided, and why."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Literal, NamedTuple

from pytest_prereg.errors import StudyError
from pytest_prereg.evidence.series import was_left
from pytest_prereg.judge.findings import plural
from pytest_prereg.registry.refusals import quoted
from pytest_prereg.registry.versions import refs_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.evidence.model import Series, Version
    from pytest_prereg.registry.model import Experiment

_SHORT = 7
NOT_HERE = "not here"
"""In place of a digest of files that are gone: no series was measured with that."""


class SeriesState(NamedTuple):
    """One series of an experiment, as a person wants it listed."""

    number: int
    state: Literal["open", "complete", "abandoned", "voided"]
    repeats: int
    """Slots that are settled, of all arms."""
    planned: int | None
    """All slots; ``None`` where no number was registered."""
    why: str | None
    """What happened to it, in one line; ``None`` where there is nothing to say."""
    versions: tuple[str, ...] = ()
    """What its arms were, in a line each, where they are versions of the code."""


def series_states(state: StudyState, experiment: str) -> list[SeriesState]:
    """Return every series of an experiment in order, with what became of it."""
    known = state.study.experiments[experiment]
    return [_state_of(state, known, one) for one in state.series[experiment]]


def _state_of(state: StudyState, experiment: Experiment, series: Series) -> SeriesState:
    planned = None if series.planned is None else sum(series.planned.values())
    versions = tuple(version_text(arm, version) for arm, version in series.trees.items())
    told = SeriesState(series.number, "open", len(series.repeats), planned, None, versions)
    if series.voided is not None:
        return told._replace(state="voided", why=series.voided)
    if series.complete:
        return told._replace(state="complete", why="; ".join(_remarks(series, planned)) or None)
    if changed := _changed(state, experiment, series):
        return told._replace(state="abandoned", why=f"{' and '.join(changed)} changed")
    if was_left(series, state.series[experiment.id]):
        return told._replace(state="abandoned", why="a later series was begun in its place")
    return told


def version_text(arm: str, version: Version) -> str:
    """Return what an arm was: the commit, or the work tree that no commit has."""
    commit, tree = version.commit[:_SHORT], version.tree[:_SHORT]
    if version.dirty:
        return f"{arm} was a work tree that differed from {commit}: tree {tree}, which no commit has"
    return f"{arm} was {commit} ({version.ref})"


def _remarks(series: Series, planned: int | None) -> Iterator[str]:
    if planned is not None and len(series.repeats) < planned:
        yield "ended early by its rule"
    if series.faults:
        yield f"{plural(len(series.faults), 'attempt')} lost and run again"
    if series.surplus:
        yield f"{plural(series.surplus, 'repeat')} beyond those registered left out"


def _changed(state: StudyState, experiment: Experiment, series: Series) -> list[str]:
    """What is no longer as it was when the series began, so that nobody can go on with it."""
    changed = [
        f"the registration of {quoted(name)}"
        for name, bound in series.predictions.items()
        if name in state.digests and state.digests[name] != bound
    ]
    if experiment.kind == "import":
        return changed
    if {arm: version.ref for arm, version in series.trees.items()} != refs_of(experiment):
        changed.append("which versions its arms are")
    now = {"code": state.source, "subject": state.subject, "data": state.data}
    was = {"code": series.source, "subject": series.subject, "data": series.data}
    for name, digest in now.items():
        found: str | None = NOT_HERE
        with suppress(StudyError):
            found = digest(experiment)
        if found != was[name] and not (name == "code" and None in (found, was[name])):
            changed.append(f"its {name}")
    return changed
