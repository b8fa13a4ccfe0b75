"""What took the readings that a prediction uses: as metrics declare it, and as the repeats say themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.registry.instruments import INSTRUMENTS, SELF_BOUND, needs_calibration, takers_for
from pytest_prereg.registry.refusals import quoted
from pytest_prereg.registry.uses import arms_of, metrics_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.evidence.files import SessionFile
    from pytest_prereg.evidence.model import RecordedRepeat, Series
    from pytest_prereg.registry.model import Prediction


def repeats_read(prediction: Prediction, series: Series) -> Iterator[RecordedRepeat]:
    """The repeats of the arms that a prediction reads."""
    arms = arms_of(prediction, series.experiment)
    return (one for one in series.repeats if one.arm in arms)


def sessions_of(state: StudyState, series: Series) -> list[SessionFile]:
    """The session files that a series is made of."""
    return [file for file in state.files[series.experiment] if file.path.name in series.sessions]


def declared_in(state: StudyState, prediction: Prediction, series: Series) -> set[str]:
    """Instruments that the metrics used declare: what calibrates those is bound by the registration."""
    metrics = state.study.experiments[series.experiment].metrics
    used = (metrics[name].instrument for name in metrics_of(prediction, series.experiment))
    return {name for name in used if name is not None}


def instruments_in(state: StudyState, prediction: Prediction, series: Series) -> set[str]:
    """Instruments of the metrics used: as they are declared, and as the repeats themselves name them."""
    metrics = metrics_of(prediction, series.experiment)
    named = (one.instruments.get(name) for one in repeats_read(prediction, series) for name in metrics)
    return {*declared_in(state, prediction, series), *(name for name in named if name is not None)}


def are_undeclared(state: StudyState, prediction: Prediction, series: Series) -> bool:
    """Whether a repeat names an instrument that the study says nothing of: it vouches for no reading."""
    known = {*state.study.instruments, *SELF_BOUND}
    return not instruments_in(state, prediction, series) <= known


def stated_when_measured(state: StudyState, instrument: str, series: Series) -> list[str] | None:
    """What calibrates an instrument by the headers of all sessions of a series; ``None`` if one has none.

    Only what a metric declares is bound by the registration: of anything else the study could say what it
    likes once the values are known.
    """
    headers = [file.header for file in sessions_of(state, series) if file.header is not None]
    stated = [header.instruments.get(instrument) for header in headers]
    if not stated or None in stated:
        return None
    return sorted({name for names in stated for name in names or ()})


def unread(state: StudyState, prediction: Prediction, series: Series) -> Iterator[str]:
    """Values of a metric that declares an instrument, and that it did not read.

    Another that is calibrated or trusted may be so for something else: what was registered is this one. What
    it falls back to reads in its place, and has to be calibrated as well. A number that no instrument is
    named for says so beside the verdict, except where its instrument has to be calibrated.
    """
    metrics = state.study.experiments[series.experiment].metrics
    for name in metrics_of(prediction, series.experiment) if series.origin == "measured" else ():
        declared = metrics[name].instrument
        if declared is None:
            continue
        with_values = (one for one in repeats_read(prediction, series) if name in one.values)
        takers = {one.instruments.get(name) for one in with_values}
        for taker in sorted(takers - takers_for(declared), key=str):
            if taker is not None:
                yield f"a value of {quoted(name)} was read by {quoted(taker)}, not by {quoted(declared)}"
            elif _has_to_read(state, declared):
                yield f"a value of {quoted(name)} was recorded by hand, not read by {declared}"


def _has_to_read(state: StudyState, instrument: str) -> bool:
    """Whether it is the package's, and decides in this study by its calibration."""
    table = state.study.instruments.get(instrument)
    is_calibrated = instrument in INSTRUMENTS and table is not None and bool(table.calibrated_by)
    return is_calibrated or needs_calibration(instrument)
