"""Evidence that no verdict can be built on: where one number is needed, a repeat of it has many, or none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.audit.deciding import binding, is_guard
from pytest_prereg.audit.judging import judged
from pytest_prereg.errors import JudgeError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.deciding import Basis
    from pytest_prereg.registry.model import Prediction

VALUELESS = "PR140"
"""Of values that are there; what else keeps from judging can be mended."""


def is_unjudgeable(state: StudyState, prediction: Prediction) -> bool:
    """Whether what decides a prediction is there, and can't be judged, as it was measured.

    It can be where any part of it can that could refute the prediction by itself: a series of a guard, a
    member of a conjunction, a side of a dispute. Else whoever sees a refutation adds what nobody can judge.
    What the lock says against the evidence makes no difference: it was said when values could be seen.
    """
    measured = state.as_measured
    parts = [*_parts(measured, prediction)]
    return bool(parts) and not any(_is_judged(measured, one, basis) for one, basis in parts)


def _parts(state: StudyState, prediction: Prediction) -> Iterator[tuple[Prediction, Basis]]:
    """The questions that are asked of it, each with the series that answer it."""
    name, basis = prediction.experiment, state.bases[prediction.id]
    if is_guard(prediction):
        complete = [one for one in state.series[name] if one.complete and one.subject is not None]
        for series in binding(state, prediction, complete):
            yield prediction, {name: series}
    elif basis is not None:
        members = [state.study.predictions[member] for member in prediction.members]
        for one in members or [prediction]:
            yield one, {each: basis[each] for each in one.experiments}


def _is_judged(state: StudyState, prediction: Prediction, basis: Basis) -> bool:
    """Whether these series give a verdict; of what two branches disagree on nobody says that neither does."""
    if any(series.disputed for series in basis.values()):
        return True
    try:
        judged(state, prediction, basis, lambda _one, _on: ())
    except JudgeError as error:
        return any(problem.code != VALUELESS for problem in error.problems)
    return True
