"""Whether a series that a stopping rule may end early is at its end: worked out from its values each time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.errors import PreregError
from pytest_prereg.judge.verdicts import is_final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.evidence.model import Series
    from pytest_prereg.registry.model import Experiment, Prediction


def is_decided(state: StudyState, experiment: Experiment, series: Series) -> bool:
    """Whether every prediction that a series serves is decided for good.

    What its files say of their end is not believed. A prediction that can't be judged needs every repeat.
    """
    served = list(_served(state, experiment, series))
    return bool(served) and all(_is_final(state, one, experiment, series) for one in served)


def _served(state: StudyState, experiment: Experiment, series: Series) -> Iterator[Prediction]:
    """Predictions that the series binds, still registered as they were; of an exploratory one all of now."""
    for prediction in state.study.predictions.values():
        if experiment.id not in prediction.experiments:
            continue
        entry = state.entry(prediction)
        is_registered = entry is not None and entry.withdrawal is None
        if not series.predictions or (is_registered and state.binds(series, prediction)):
            yield prediction


def _is_final(state: StudyState, prediction: Prediction, experiment: Experiment, series: Series) -> bool:
    if len(prediction.experiments) > 1 or prediction.members or prediction.formula:
        return False
    try:
        terms = state.terms(prediction)
        return is_final(
            prediction,
            experiment,
            series,
            predicts=terms.predicts,
            falsifier=terms.falsifier,
            scale=terms.scale,
            constants=state.constants,
        )
    except PreregError:
        return False
