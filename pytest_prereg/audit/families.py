"""A family of claims under Holm's procedure: each is judged at the level that its rank leaves it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from pytest_prereg.audit.conditions import doubts
from pytest_prereg.audit.judging import hindered, judged
from pytest_prereg.audit.standing import Found
from pytest_prereg.errors import PreregError
from pytest_prereg.judge.families import holm, smallest_alpha
from pytest_prereg.judge.model import Reason, Verdict
from pytest_prereg.registry.registered import registered

if TYPE_CHECKING:
    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.deciding import Basis
    from pytest_prereg.registry.model import Prediction

NEVER = 1.0
"""Level of what can't be decided at any: it keeps its place in the family, and is never rejected."""


class Family(msgspec.Struct, kw_only=True, frozen=True):
    """The claims of a study that share one error."""

    size: int
    missing: int
    """Members without all their evidence."""
    levels: Mapping[str, float | None]
    """Of each member the level at which Holm's procedure decides it; ``None`` where it does not."""
    stopped: float
    """Level at which the procedure stopped."""


def family_of(state: StudyState) -> Family | None:
    """Return the family of a study: all claims that its lock registers, withdrawn ones included.

    So are those that were registered when evidence was taken, and that somebody struck out of the lock since.
    A member that was withdrawn, or is gone, and has no evidence can't be decided any more: its place stays.
    """
    if state.study.table.family != "holm" or state.lock is None:
        return None
    names = dict.fromkeys([*state.lock.predictions, *sorted(_sealed(state))])
    p = {name: _p(state, name) for name in names if _is_claim(state, name)}
    alpha = 1 - state.study.table.confidence
    levels = holm(p, alpha)
    left = sum(level is None for level in levels.values())
    return Family(
        size=len(p),
        missing=sum(value is None for value in p.values()),
        levels=levels,
        stopped=alpha / max(left, 1),
    )


def found_in(state: StudyState, family: Family, prediction: Prediction, basis: Basis) -> Found:
    """Return what is known of a member that has its evidence."""
    against = partial(doubts, state)
    level, used = family.levels[prediction.id], tuple(basis.values())
    if level is not None:
        judgement = judged(state, prediction, basis, against, confidence=1 - level)
        return Found(judgement=judgement, used=used, final=not family.missing)
    if family.missing:
        return Found(pending=f"family of {family.size}: {family.missing} not measured yet")
    judgement = judged(state, prediction, basis, against, confidence=1 - family.stopped)
    said = f"family of {family.size}: Holm's procedure stopped at level {family.stopped:.3g}"
    undecided = hindered(judgement, [(Reason.STRADDLES, said)])
    if undecided.reason is Reason.STRADDLES:
        undecided = replace(undecided, detail="; ".join(filter(None, (judgement.detail, said))))
    return Found(judgement=undecided, used=used)


def _sealed(state: StudyState) -> set[str]:
    """What was registered at the commits at which evidence was taken, and what that evidence names."""
    names = {*state.bound_by_evidence}
    place = state.repository.relative(state.study.lock_path) if state.repository else None
    if state.repository is None or place is None:
        return names
    headers = (file.header for files in state.files.values() for file in files if file.attempts)
    heads = {header.head for header in headers if header and header.head and header.predictions}
    for text in state.repository.contents(f"{head}:{place}" for head in sorted(heads)):
        lock = registered(text) if text is not None else None
        if lock is not None and lock.study == state.study.id:
            names |= {*lock.digests}
    return names


def _p(state: StudyState, name: str) -> float | None:
    """The smallest error level at which the data of a member decide it; ``None`` while it has none."""
    prediction = state.study.predictions.get(name)
    basis = state.bases.get(name)
    if prediction is None or basis is None:
        return NEVER if prediction is None or state.is_withdrawn(name) else None
    try:
        # What is excluded or voided is for its own verdict to tell: it moves no level of the others.
        found = smallest_alpha(partial(_verdict_at, state, prediction, state.undisturbed(basis)))
    except PreregError:
        return NEVER
    return NEVER if found is None else found


def _verdict_at(state: StudyState, prediction: Prediction, basis: Basis, alpha: float) -> Verdict:
    return judged(state, prediction, basis, lambda *_: (), confidence=1 - alpha).verdict


def _is_claim(state: StudyState, name: str) -> bool:
    prediction = state.study.predictions.get(name)
    return prediction is None or prediction.table.kind == "claim"
