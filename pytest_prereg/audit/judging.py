"""Judging a prediction from the series that decide it: by itself, by a formula, or by its members."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from pytest_prereg.audit.exclusions import like, name_of
from pytest_prereg.evidence.series import readings
from pytest_prereg.judge.conjunctions import judge_all
from pytest_prereg.judge.formulas import judge_formula
from pytest_prereg.judge.model import Judgement, Reason, Verdict
from pytest_prereg.judge.obstacles import first_of
from pytest_prereg.judge.verdicts import judge
from pytest_prereg.registry.refusals import listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.deciding import Basis
    from pytest_prereg.evidence.model import Series
    from pytest_prereg.judge.findings import Doubt
    from pytest_prereg.registry.model import Prediction

    Doubts = Callable[[Prediction, Basis], Sequence[Doubt]]

MIXED = "its sessions measured different versions of the subject or of the code, or read different data"


def judged(
    state: StudyState,
    prediction: Prediction,
    basis: Basis,
    doubts: Doubts,
    *,
    confidence: float | None = None,
) -> Judgement:
    """Judge a prediction; two branches that used a series' number must agree on the verdict.

    Args:
        state: The study with its evidence.
        prediction: One of its predictions.
        basis: The series that decide it.
        doubts: What is known against a verdict from outside the series, of a prediction on some basis.
        confidence: In place of the registered one.

    Raises:
        JudgeError: A recorded value is not a number that can be judged.
    """
    judgement = _reading(state, prediction, basis, doubts, confidence)
    others = (
        _reading(state, prediction, {**basis, name: other}, doubts, confidence)
        for name, series in basis.items()
        for other in _other_readings(state, name, series)
    )
    if all(other.verdict is judgement.verdict for other in others):
        return judgement
    sessions = sorted(name for series in basis.values() if series.disputed for name in series.sessions)
    dispute = f"sessions {listed(sessions)} used one series number, and give other verdicts"
    return hindered(judgement, [(Reason.INTEGRITY, dispute)])


def hindered(judgement: Judgement, doubts: Sequence[Doubt]) -> Judgement:
    """Return a judgement that ``doubts`` from outside speak against; the reason that comes first is told."""
    own = [(judgement.reason, judgement.detail or "")] if judgement.reason is not None else []
    first = first_of([*own, *doubts])
    if first is None or first in own:
        return judgement
    return replace(judgement, verdict=Verdict.INCONCLUSIVE, reason=first[0], detail=first[1])


def integrity(state: StudyState, series: Series) -> Iterator[Doubt]:
    """What is wrong with the evidence of a series as such."""
    for problem in state.altered(series.experiment, series):
        yield Reason.INTEGRITY, problem.message
    if series.mixed_subject:
        yield Reason.INTEGRITY, MIXED


def _reading(
    state: StudyState, prediction: Prediction, basis: Basis, doubts: Doubts, confidence: float | None
) -> Judgement:
    if prediction.members:
        return _conjunction(state, prediction, basis, doubts, confidence)
    against = [*(doubt for series in basis.values() for doubt in integrity(state, series))]
    against += doubts(prediction, basis)
    terms, study = state.terms(prediction), state.study
    if prediction.formula is not None:
        judgement = judge_formula(
            prediction,
            {name: study.experiments[name] for name in basis},
            basis,
            predicts=terms.predicts,
            falsifier=terms.falsifier,
            scale=terms.scale,
            constants=study.constants,
            obstacles=against,
            confidence=confidence,
        )
    else:
        judgement = judge(
            prediction,
            study.experiments[prediction.experiment],
            basis[prediction.experiment],
            predicts=terms.predicts,
            falsifier=terms.falsifier,
            scale=terms.scale,
            constants=state.constants,
            obstacles=against,
            confidence=confidence,
        )
    return _without_support(judgement, basis)


def _without_support(judgement: Judgement, basis: Basis) -> Judgement:
    """Return a judgement that voided series do not support; a refutation stays."""
    voided = [one for one in basis.values() if one.voided is not None]
    if not voided or judgement.verdict is not Verdict.SUPPORTED:
        return judgement
    why = "; ".join(f"series {name_of(one)} is voided ({one.voided})" for one in voided)
    return hindered(judgement, [(Reason.INTEGRITY, f"what gave supported does not stand: {why}")])


def _other_readings(state: StudyState, name: str, series: Series) -> list[Series]:
    """Return a disputed series as each session has it that disputes it."""
    several = readings(state.study.experiments[name], state.files[name], series)
    return [like(series, other) for other in several]


def _conjunction(
    state: StudyState, prediction: Prediction, basis: Basis, doubts: Doubts, confidence: float | None
) -> Judgement:
    """Supported if every member is; refuted if any is at its part of the error, ``alpha / k``."""
    level = prediction.confidence if confidence is None else confidence
    strict = 1 - (1 - level) / len(prediction.members)
    members = [state.study.predictions[name] for name in prediction.members]
    pairs = [
        (
            _reading(state, one, _of(one, basis), doubts, level),
            _reading(state, one, _of(one, basis), doubts, strict),
        )
        for one in members
    ]
    return hindered(judge_all(prediction, pairs), doubts(prediction, basis))


def _of(prediction: Prediction, basis: Basis) -> Basis:
    """Return the part of a conjunction's basis that a member rests on."""
    return {name: basis[name] for name in prediction.experiments}
