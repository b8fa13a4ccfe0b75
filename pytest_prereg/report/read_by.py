"""What took the readings that a verdict rests on, and why each may decide: for ``explain``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.audit.calibration import calibrators_of
from pytest_prereg.audit.conditions import finding
from pytest_prereg.audit.dependencies import calibrators
from pytest_prereg.audit.provenance import repeats_read
from pytest_prereg.errors import one_line
from pytest_prereg.registry.instruments import INSTRUMENTS
from pytest_prereg.registry.refusals import quoted
from pytest_prereg.registry.uses import metrics_of

if TYPE_CHECKING:
    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.evidence.model import Series
    from pytest_prereg.registry.model import Prediction

BY_HAND = "recorded by hand"


def read_by(state: StudyState, prediction: Prediction) -> list[str]:
    """Return a line for each instrument: what it reads, and what calibrates it or why it is trusted.

    Where there is evidence it is what that says, else what the metrics declare; counts need no instrument.
    """
    lines: dict[str, None] = {}
    parts = [state.study.predictions[name] for name in prediction.members] or [prediction]
    for part in parts:
        for name in part.experiments:
            series = (state.bases[prediction.id] or {}).get(name)
            for taker, metrics in sorted(_takers(state, part, name, series).items()):
                lines[f"{taker} ({', '.join(metrics)}): {_why(state, part, series, taker)}"] = None
    return [*lines]


def _takers(
    state: StudyState, prediction: Prediction, experiment: str, series: Series | None
) -> dict[str, list[str]]:
    """Metrics that a prediction reads in one experiment, by what took them."""
    takers: dict[str, list[str]] = {}
    for name in metrics_of(prediction, experiment):
        metric = state.study.experiments[experiment].metrics[name]
        if series is None or series.origin == "imported":
            found = {metric.instrument}
        else:
            with_values = (one for one in repeats_read(prediction, series) if name in one.values)
            found = {one.instruments.get(name, None if metric.exact else BY_HAND) for one in with_values}
        for taker in found - {None}:
            takers.setdefault(str(taker), []).append(name)
    return takers


def _why(state: StudyState, prediction: Prediction, series: Series | None, taker: str) -> str:
    """Why what an instrument reads may decide."""
    if taker == BY_HAND:
        return "no instrument is named"
    names = calibrators(state.study, taker)
    if series is not None:
        found = calibrators_of(state, prediction, series, taker)
        if found is None:
            return "neither calibrated nor trusted when it was measured"
        names = found
    if names:
        return f"calibrated by {' and '.join(_calibration(state, prediction, one) for one in names)}"
    table, kind = state.study.instruments.get(taker), INSTRUMENTS.get(taker)
    if table is not None and table.trusted:
        return f"trusted, since {one_line(table.trusted)}"
    return f"trusted, since {kind.trusted}" if kind and kind.trusted else "the study does not say what it is"


def _calibration(state: StudyState, prediction: Prediction, name: str) -> str:
    if name not in state.study.predictions:
        return f"{quoted(name)}, which is not in the study any more"
    return f"{quoted(name)}, which {finding(state, name, prediction)}"
