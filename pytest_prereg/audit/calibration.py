"""Whether the instruments behind a verdict were calibrated: before its evidence, and on the same machines."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pytest_prereg.audit.dependencies import calibrators
from pytest_prereg.audit.provenance import (
    declared_in,
    instruments_in,
    repeats_read,
    sessions_of,
    stated_when_measured,
    unread,
)
from pytest_prereg.evidence.model import Outcome
from pytest_prereg.registry.instruments import INSTRUMENTS, needs_calibration
from pytest_prereg.registry.refusals import listed, quoted
from pytest_prereg.registry.uses import arms_of, metrics_of, named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.deciding import Basis
    from pytest_prereg.evidence.files import SessionFile
    from pytest_prereg.evidence.model import RecordedRepeat, Series
    from pytest_prereg.registry.model import Experiment, Prediction

TORCH = "torch"
"""Where an experiment preloads it, instruments read through it."""
OWN = "instruments"
"""What a header calls the version of the package's own."""


def uncalibrated(
    state: StudyState,
    prediction: Prediction,
    basis: Basis,
    finding: Callable[[str], str],
    *,
    is_registered: bool = False,
) -> Iterator[str]:
    """What is missing of the calibration of each instrument that read what the prediction uses.

    Args:
        state: The study with its evidence.
        prediction: One of its predictions; the members of a conjunction are asked one by one.
        basis: The series that it is judged from.
        finding: What is known of a prediction, as a verb: ``is supported``, ``is pending``, …
        is_registered: Whether only instruments that metrics declare are asked for: what calibrates those is
            bound by the registration, and what calibrates one that repeats alone name is not.
    """
    for experiment, series in basis.items():
        lacking = [*_of_declared(state, prediction, series, finding)]
        if not is_registered:
            lacking += _of_named(state, prediction, series, finding)
        for text in lacking:
            yield f"{text} (series {series.number} of {quoted(experiment)})"


def calibrators_of(
    state: StudyState, prediction: Prediction, series: Series, instrument: str
) -> list[str] | None:
    """Ids of the predictions that calibrate an instrument of a series; ``None`` where nothing speaks for it.

    Of one that has to be calibrated and that no metric declares, the study counts as it was when measured.
    """
    if not needs_calibration(instrument) or instrument in declared_in(state, prediction, series):
        return calibrators(state.study, instrument)
    stated = stated_when_measured(state, instrument, series)
    if stated is None:
        return None
    return [each for name in stated for each in named(name, state.study.predictions) or (name,)]


def _of_declared(
    state: StudyState, prediction: Prediction, series: Series, finding: Callable[[str], str]
) -> Iterator[str]:
    for instrument in sorted(declared_in(state, prediction, series)):
        yield from _of_one(state, prediction, series, instrument, finding)


def _of_named(
    state: StudyState, prediction: Prediction, series: Series, finding: Callable[[str], str]
) -> Iterator[str]:
    yield from unread(state, prediction, series)
    others = instruments_in(state, prediction, series) - declared_in(state, prediction, series)
    for instrument in sorted(others):
        yield from _of_one(state, prediction, series, instrument, finding)


def _of_one(
    state: StudyState,
    prediction: Prediction,
    series: Series,
    instrument: str,
    finding: Callable[[str], str],
) -> Iterator[str]:
    names = calibrators_of(state, prediction, series, instrument)
    if names is None:
        yield _unstated(state, prediction, series, instrument)
    for name in names or ():
        lacks = _lacks_support(state, name, finding)
        if lacks is None:
            lacks = _out_of_force(state, instrument, name, prediction, series)
        if lacks is not None:
            yield f"instrument {quoted(instrument)} is calibrated by {quoted(name)}, which {lacks}"


def _lacks_support(state: StudyState, name: str, finding: Callable[[str], str]) -> str | None:
    known = finding(name) if name in state.study.predictions else "is not in the study any more"
    return None if known == "is supported" else known


def _unstated(state: StudyState, prediction: Prediction, series: Series, instrument: str) -> str:
    metrics = metrics_of(prediction, series.experiment)
    every = (one.instruments for one in repeats_read(prediction, series))
    name = next(name for named_by in every for name in metrics if named_by.get(name) == instrument)
    stands = "neither calibrates nor trusts"
    if instrument in state.study.instruments:
        stands = "neither calibrated nor trusted when it was measured"
    return f"a reading of {quoted(name)} was taken by {instrument}, which this study {stands}"


def _out_of_force(
    state: StudyState, instrument: str, calibration: str, prediction: Prediction, series: Series
) -> str | None:
    """Why a calibration that is supported does not hold for a series: its time, the machine, the version."""
    basis = state.bases[calibration]
    if basis is None:
        return "has no evidence"
    if needs_calibration(instrument) and not _was_read_in(state, instrument, calibration, basis):
        return f"has no arm that {instrument} read"
    was = [file for one in basis.values() for file in sessions_of(state, one)]
    now = sessions_of(state, series)
    if not all(_precedes(state, earlier, file) for earlier in was for file in now):
        return "was not supported yet when this was measured"
    machines = {one.machine for one in repeats_read(prediction, series) if one.machine is not None}
    calibrated = {one.machine for part in basis.values() for one in part.repeats}
    if foreign := sorted(machines - calibrated):
        return f"was measured on another machine than {listed(foreign)}"
    measured = [file for file in now if file.header is not None and file.header.origin == "measured"]
    for what in _versioned(instrument, state.study.experiments[series.experiment]):
        if others := sorted(_versions(measured, what) - _versions(was, what)):
            of = "version of the instruments" if what == OWN else what
            return f"was measured with another {of} than {listed(others)}"
    return None


def _was_read_in(state: StudyState, instrument: str, calibration: str, basis: Basis) -> bool:
    """Whether an instrument took a reading, of whatever metric, in each repeat of an arm of a calibration.

    Else any claim that happens to be supported would do, and one that was read with the fallback.
    """
    one = state.study.predictions[calibration]
    parts = [state.study.predictions[name] for name in one.members] or [one]
    arms = (
        [repeat for repeat in basis[name].repeats if repeat.arm == arm and repeat.outcome is Outcome.OK]
        for part in parts
        for name in part.experiments
        for arm in arms_of(part, name)
    )
    return any(several and all(map(partial(_names, instrument), several)) for several in arms)


def _names(instrument: str, repeat: RecordedRepeat) -> bool:
    return instrument in repeat.instruments.values()


def _precedes(state: StudyState, earlier: SessionFile, file: SessionFile) -> bool:
    """Whether ``file`` began when all of ``earlier`` was there, by its own header and those that it leads to.

    A header names the newest file of each experiment, which names the one before it.
    """
    experiment = earlier.name.partition("/")[0]
    there = {one.name: one for one in state.files[experiment]}
    links = [*file.header.known.items()] if file.header else []
    met: set[str] = set()
    while links:
        name, digest = links.pop()
        if (name, digest) == (earlier.name, earlier.digest):
            return True
        other = there.get(name)
        if name not in met and other is not None and other.header is not None:
            met.add(name)
            links += other.header.known.items()
    return False


def _versioned(instrument: str, experiment: Experiment) -> list[str]:
    """What a calibration holds for one version of, as headers call it."""
    kind = INSTRUMENTS.get(instrument)
    through = {TORCH} if _preloads_torch(experiment) else set()
    if kind is not None:
        through |= {OWN, *([kind.through] if kind.through else [])}
    return sorted(through)


def _preloads_torch(experiment: Experiment) -> bool:
    source = experiment.source
    preloaded = (*(source.preload if source else ()), *(experiment.table.preload or ()))
    return any(name.partition(".")[0] == TORCH for name in preloaded)


def _versions(files: list[SessionFile], what: str) -> set[str]:
    headers = (file.header for file in files if file.header is not None)
    return {header.versions.get(what, "none") for header in headers}
