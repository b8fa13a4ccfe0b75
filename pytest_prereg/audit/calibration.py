"""Whether the instruments behind a verdict were calibrated: before its evidence, and on the same machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.audit.dependencies import calibrators
from pytest_prereg.registry.instruments import SELF_BOUND
from pytest_prereg.registry.refusals import listed, quoted
from pytest_prereg.registry.uses import arms_of, metrics_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.deciding import Basis
    from pytest_prereg.evidence.files import SessionFile
    from pytest_prereg.evidence.model import RecordedRepeat, Series
    from pytest_prereg.registry.model import Experiment, Prediction

THROUGH = "torch"
"""Where an experiment preloads it, instruments read through it."""


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
        machines = {one.machine for one in _repeats(prediction, series) if one.machine is not None}
        read_with = _declared if is_registered else _instruments
        for instrument in sorted(read_with(state, prediction, series)):
            for name in calibrators(state.study, instrument):
                known = finding(name)
                lacking = known if known != "is supported" else _out_of_force(state, name, series, machines)
                if lacking is not None:
                    what = f"instrument {quoted(instrument)} is calibrated by {quoted(name)}, which {lacking}"
                    yield f"{what} (series {series.number} of {quoted(experiment)})"


def are_undeclared(state: StudyState, prediction: Prediction, series: Series) -> bool:
    """Whether a repeat names an instrument that the study says nothing of: it vouches for no reading."""
    known = {*state.study.instruments, *SELF_BOUND}
    return not _instruments(state, prediction, series) <= known


def _instruments(state: StudyState, prediction: Prediction, series: Series) -> set[str]:
    """Instruments of the metrics used: as they are declared, and as the repeats themselves name them."""
    metrics = metrics_of(prediction, series.experiment)
    named = (one.instruments.get(name) for one in _repeats(prediction, series) for name in metrics)
    return {*_declared(state, prediction, series), *(name for name in named if name is not None)}


def _declared(state: StudyState, prediction: Prediction, series: Series) -> set[str]:
    metrics = state.study.experiments[series.experiment].metrics
    used = (metrics[name].instrument for name in metrics_of(prediction, series.experiment))
    return {name for name in used if name is not None}


def _repeats(prediction: Prediction, series: Series) -> Iterator[RecordedRepeat]:
    arms = arms_of(prediction, series.experiment)
    return (one for one in series.repeats if one.arm in arms)


def _out_of_force(state: StudyState, calibration: str, series: Series, machines: set[str]) -> str | None:
    """Why a calibration that is supported does not hold for a series: its time, the machine, the version."""
    basis = state.bases[calibration]
    if basis is None:
        return "has no evidence"
    was = [file for one in basis.values() for file in _files(state, one)]
    now = _files(state, series)
    if not all(_precedes(state, earlier, file) for earlier in was for file in now):
        return "was not supported yet when this was measured"
    calibrated = {one.machine for part in basis.values() for one in part.repeats}
    if foreign := sorted(machines - calibrated):
        return f"was measured on another machine than {listed(foreign)}"
    if _reads_through(state.study.experiments[series.experiment]) and (
        others := sorted(_versions(now) - _versions(was))
    ):
        return f"was measured with another {THROUGH} than {listed(others)}"
    return None


def _files(state: StudyState, series: Series) -> list[SessionFile]:
    return [file for file in state.files[series.experiment] if file.path.name in series.sessions]


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


def _reads_through(experiment: Experiment) -> bool:
    source = experiment.source
    preloaded = (*(source.preload if source else ()), *(experiment.table.preload or ()))
    return any(name.partition(".")[0] == THROUGH for name in preloaded)


def _versions(files: list[SessionFile]) -> set[str]:
    headers = (file.header for file in files if file.header is not None)
    return {header.versions.get(THROUGH, "none") for header in headers}
