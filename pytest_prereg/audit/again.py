"""After a series that decided nothing for a reason that is not the claim's, the next one decides, once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.audit.calibration import uncalibrated
from pytest_prereg.audit.deciding import basis_of, candidates, is_guard
from pytest_prereg.audit.dependencies import in_order, rests_on
from pytest_prereg.audit.judging import judged
from pytest_prereg.errors import PreregError
from pytest_prereg.judge.model import Reason
from pytest_prereg.registry.relations import predecessor

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.deciding import Basis
    from pytest_prereg.judge.findings import Doubt
    from pytest_prereg.registry.model import Prediction

AGAIN = frozenset({Reason.INFRASTRUCTURE, Reason.INSTRUMENT, Reason.SCOPE})
"""Reasons that say nothing of what was claimed."""


def settle(state: StudyState, prediction: Prediction) -> None:
    """Enter into the state's ``bases`` what decides a prediction, and into ``earlier`` what that was before.

    All that it rests on has been settled. What others are found to be has no say in this: it holds for the
    next series as well.
    """
    before = predecessor(prediction, state.study.predictions)
    first = basis_of(state, prediction, state.bases.get(before) if before else None)
    state.bases[prediction.id] = first
    second = _next(state, prediction, first) if first and not is_guard(prediction) else None
    if first and second:
        state.bases[prediction.id] = second
        state.earlier[prediction.id] = first


def is_open(state: StudyState, prediction: Prediction) -> bool:
    """Whether what decides a prediction now decides nothing, so that the next series would, once."""
    basis = state.bases[prediction.id]
    if basis is None or prediction.id in state.earlier or is_guard(prediction):
        return False
    return bool(_to_be_replaced(state, prediction, basis))


def _next(state: StudyState, prediction: Prediction, first: Basis) -> Basis | None:
    """Return what decides in place of ``first``; ``None`` where that decides, or nothing came after it."""
    later = {
        name: next((one for one in candidates(state, prediction, name) if one.number > series.number), None)
        for name, series in first.items()
    }
    bound = {name: one for name, one in later.items() if one and state.binds(one, prediction)}
    again = _to_be_replaced(state, prediction, first) if bound else set()
    return {**first, **{name: bound[name] for name in again}} if again and again <= {*bound} else None


def _to_be_replaced(state: StudyState, prediction: Prediction, first: Basis) -> set[str]:
    """Return the experiments whose series left it open: of a conjunction those of the members that say so."""
    if not _is_left_open(state, prediction, first):
        return set()
    parts: Iterable[Prediction] = [state.study.predictions[name] for name in prediction.members]
    open_ = [
        one for one in parts if _is_left_open(state, one, {name: first[name] for name in one.experiments})
    ]
    return {name for one in open_ or [prediction] for name in one.experiments}


def _is_left_open(state: StudyState, prediction: Prediction, basis: Basis) -> bool:
    try:
        reason = judged(state, prediction, basis, lambda one, on: _unread(state, one, on)).reason
    except PreregError:
        return False
    return reason in AGAIN and not (reason is Reason.INSTRUMENT and _is_below_amended(state, prediction))


def _is_below_amended(state: StudyState, prediction: Prediction) -> bool:
    """Whether what calibrates an instrument was changed when there was evidence for it.

    Measured anew it comes after a series that it was once in force for, whatever that series says.
    """
    below = in_order([prediction.id], lambda name: rests_on(state.study, state.study.predictions[name]))
    return not state.amended.isdisjoint(name for name in below if name != prediction.id)


def _unread(state: StudyState, prediction: Prediction, basis: Basis) -> list[Doubt]:
    """What the evidence alone says against the instruments that were registered.

    What calibrates another can be written when the verdict is known, so it opens no second series.
    """
    lacks = uncalibrated(state, prediction, basis, lambda _name: "is supported", is_registered=True)
    return [(Reason.INSTRUMENT, text) for text in lacks]
