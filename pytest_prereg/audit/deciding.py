"""Which series decide a prediction: of each of its experiments the first complete one that may."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from pytest_prereg.audit.standing import read_arms
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
    """Return those of ``several`` that bind the prediction as it stands; all of them if none does.

    One that was planned before an arm was there has nothing to say of what reads it; nor has what was not
    measured for it of a prediction that is withdrawn.
    """
    able = [one for one in several if not lacking(state, prediction, one)]
    bound = [one for one in able if state.binds(one, prediction)]
    return bound if bound or state.is_withdrawn(prediction.id) else able


def lacking(state: StudyState, prediction: Prediction, series: Series) -> list[str]:
    """Return the arms that a prediction reads and the series never planned, sorted."""
    planned = {one.arm for one in series.repeats} if series.planned is None else {*series.planned}
    return sorted(read_arms(state.study, prediction, series.experiment) - planned)


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


def candidates(state: StudyState, prediction: Prediction, experiment: str) -> list[Series]:
    """Return the :func:`eligible` series, after those of the predecessor that the prediction has."""
    before = predecessor(prediction, state.study.predictions)
    return eligible(state, prediction, experiment, state.bases.get(before) if before else None)
