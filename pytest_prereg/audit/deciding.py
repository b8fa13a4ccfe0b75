"""Which series decide a prediction: of each of its experiments the first complete one that may."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from pytest_prereg.errors import StudyError
from pytest_prereg.evidence.model import Series
from pytest_prereg.registry.relations import predecessor

if TYPE_CHECKING:
    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.registry.model import Prediction

Basis = Mapping[str, Series]
"""The series that a verdict rests on, by experiment."""


def basis_of(state: StudyState, prediction: Prediction, before: Basis | None) -> Basis | None:
    """Return the series that decide, by experiment; ``None`` while one of its experiments has none.

    Args:
        state: The study with its evidence.
        prediction: One of its predictions.
        before: What its predecessor rests on, if it follows one that has evidence.
    """
    found = {name: eligible(state, prediction, name, before) for name in prediction.experiments}
    return {name: several[0] for name, several in found.items()} if all(found.values()) else None


def eligible(
    state: StudyState, prediction: Prediction, experiment: str, before: Basis | None = None
) -> list[Series]:
    """Return the complete series that may decide, in order: if any bind it as it stands, those.

    Of a guard only series of its subject as it is now; of a successor only what came after the data of its
    predecessor.
    """
    if is_guard(prediction):
        complete = of_subject(state, experiment, current_subject(state, experiment))
    else:
        after = before[experiment].number if before and experiment in before else 0
        complete = [one for one in state.series[experiment] if one.complete and one.number > after]
    return binding(state, prediction, complete)


def binding(state: StudyState, prediction: Prediction, several: list[Series]) -> list[Series]:
    """Return those of ``several`` that bind the prediction as it stands; all of them if none does."""
    return [one for one in several if state.binds(one, prediction)] or several


def of_subject(state: StudyState, experiment: str, subject: str | None) -> list[Series]:
    """Return the complete series that measured one version of a subject; none where it is unknown."""
    if subject is None:
        return []
    return [one for one in state.series[experiment] if one.complete and one.subject == subject]


def current_subject(state: StudyState, experiment: str) -> str | None:
    """Return the digest of an experiment's subject as it is now; ``None`` also where it is not there."""
    with suppress(StudyError):
        return state.subject(state.study.experiments[experiment])
    return None


def is_guard(prediction: Prediction) -> bool:
    """Whether a prediction is judged anew for each version of its subject."""
    return prediction.table.kind == "guard"


def bases_of(state: StudyState, order: list[str]) -> dict[str, Basis | None]:
    """Return what every prediction is decided by; ``order`` has predecessors first."""
    predictions = state.study.predictions
    bases: dict[str, Basis | None] = {}
    for name in order:
        before = predecessor(predictions[name], predictions)
        bases[name] = basis_of(state, predictions[name], bases.get(before) if before else None)
    return bases
