"""Amending what has data: the verdict that these gave of it as it was registered is kept in the amendment.

Nobody gets rid of a refutation by amending before it is recorded: it is judged from the prediction file that
was committed, whatever that says by now.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from pytest_prereg.audit.assess import StudyState
from pytest_prereg.audit.assessing import found_of
from pytest_prereg.audit.deciding import is_guard
from pytest_prereg.audit.guards import found_for, history
from pytest_prereg.audit.history.past import NoPast
from pytest_prereg.audit.history.revisions import NoRevision, Revisions, commits_with
from pytest_prereg.audit.standing import Found, standing
from pytest_prereg.audit.taking_back import after_data, has_data, way_back
from pytest_prereg.audit.withdrawing import last_judged
from pytest_prereg.audit.withdrawn import files_of, repeats_in
from pytest_prereg.errors import JudgeError, PreregError, Problem, StudyError
from pytest_prereg.evidence.naming import shown
from pytest_prereg.judge.model import Verdict
from pytest_prereg.registry.digest import registration_digest
from pytest_prereg.registry.refusals import quoted, typed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_prereg.audit.standing import Assessment
    from pytest_prereg.registry.lock import Lock, LockEntry
    from pytest_prereg.registry.model import Prediction, Study


class Amended(msgspec.Struct, kw_only=True, frozen=True):
    """What data there are for a prediction as it was registered, when it is registered anew."""

    prediction: str
    repeats: int = 0
    verdict: str | None = None
    """What the lock recorded, or the data give."""
    is_recorded: bool = False
    why: str | None = None
    """Why they give no verdict that could be kept; ``None`` where there is one."""
    back: str = ""
    """How to take it back: a command, or where the text is that was registered; empty without data."""

    @property
    def is_late(self) -> bool:
        """Whether there are data."""
        return self.repeats > 0 or self.verdict is not None


def data_of(study: Study, lock: Lock, names: Iterable[str]) -> list[Amended]:
    """Return what data there are for predictions whose registration is to be amended, in their order.

    Args:
        study: As it is written now.
        lock: What is still registered.
        names: Ids; of one that is unknown, withdrawn or in other words alone, nothing is asked.

    Raises:
        StudyError: Evidence that may be of one is gone or altered (PR207), or the lock records another
            verdict than a refutation that the evidence gives (PR211).
    """
    chosen = [name for name in names if _is_changed(study, lock, name)]
    state = StudyState(study) if chosen else None
    if state is None:
        return [Amended(prediction=name) for name in names]
    found = {name: _data(state, name, lock.predictions[name]) for name in chosen}
    return [found.get(name, Amended(prediction=name)) for name in names]


def advice_after_data(study: Study, lock: Lock | None, names: Iterable[str]) -> dict[str, str]:
    """Return what to do about predictions that are no longer what was registered, where there are data.

    Args:
        study: As it is written now.
        lock: What is registered.
        names: Ids; of one that is unknown, withdrawn or in other words alone, nothing is said.
    """
    chosen = [name for name in names if lock is not None and _is_changed(study, lock, name)]
    if not chosen:
        return {}
    with suppress(PreregError):  # evidence that can't be read is told of where it is needed
        state = StudyState(study)
        return {name: after_data(state, name) for name in chosen if has_data(state, name)}
    return {}


def _is_changed(study: Study, lock: Lock, name: str) -> bool:
    entry = lock.predictions.get(name)
    if entry is None or entry.withdrawal is not None or name not in study.predictions:
        return False
    return entry.digest != registration_digest(study, study.predictions[name])


def _data(state: StudyState, name: str, entry: LockEntry) -> Amended:
    repeats = repeats_in(files_of(state, name, {entry.digest}))
    if entry.verdict is None and (gone := _gone(state, name, entry)):
        raise StudyError(gone)
    if repeats == 0 and entry.verdict is None:
        return Amended(prediction=name)
    known = Amended(
        prediction=name,
        repeats=repeats,
        verdict=entry.verdict,
        is_recorded=entry.verdict is not None,
        back=way_back(state, name, with_lock=True),
    )
    if repeats == 0 or entry.verdict == Verdict.REFUTED:
        return known
    given = _given(state, name, entry.digest)
    if entry.verdict is not None:
        if given == Verdict.REFUTED:
            raise StudyError(_misrecorded(state, name, entry))
        return known
    if isinstance(given, Verdict):
        return replace(known, verdict=given.value)
    return replace(known, why=given)


def _gone(state: StudyState, name: str, entry: LockEntry) -> Problem | None:
    """Return a problem where evidence that may be of the registration is missing just now."""
    past = state.past
    vanished = () if isinstance(past, NoPast) else past.vanished
    if not state.broken and all(one.predictions.get(name) != entry.digest for one in vanished):
        return None
    message = f"evidence of the study is gone or altered, perhaps that of {quoted(name)}"
    advice = "Bring it back first: pytest-prereg audit says what, and where it was."
    return Problem(code="PR207", path=shown(state.study.path), message=message, advice=advice)


def _misrecorded(state: StudyState, name: str, entry: LockEntry) -> Problem:
    message = f"{quoted(name)} is recorded as {entry.verdict}, and its evidence refutes it"
    lock = shown(state.study.lock_path)
    restore = f"git checkout HEAD -- {typed(lock)}"
    advice = (
        f"Restore what was registered, and the lock ({restore}), or record that first:\n"
        "pytest --prereg --prereg-verify --prereg-record"
    )
    return Problem(code="PR211", path=lock, message=message, advice=advice)


def _given(state: StudyState, name: str, digest: str) -> Verdict | str:
    """Return the verdict on what a digest registers, or why there is none that could be kept."""
    if isinstance(state.past, NoPast):
        return state.past.detail
    revisions = Revisions.of(state.past, state.study)
    why = "no commit has its text"
    for commit in dict.fromkeys(commits_with(state.chronicle, name, digest)):
        study = revisions.at(commit)
        if isinstance(study, NoRevision):
            why = study.why
        elif name in study.predictions and registration_digest(study, study.predictions[name]) == digest:
            return _judged(study, name)
    return why


def _judged(study: Study, name: str) -> Verdict | str:
    """Return what the evidence says of a prediction of an earlier version of its study."""
    try:
        state = StudyState(study)
        assessment = state.assess(study.predictions[name])
        if assessment.judgement is None:
            assessment = last_judged(state, assessment)
    except JudgeError as error:
        return _refuted_apart(state, study.predictions[name]) or error.problems[0].message
    except PreregError as error:
        return error.problems[0].message
    return _kept(assessment)


def _refuted_apart(state: StudyState, prediction: Prediction) -> Verdict | None:
    """Return a refutation by the series that decide, or by a guard's last version that has a verdict.

    What was measured beside them, or later, can't be judged, and takes nothing back.
    """
    try:
        if is_guard(prediction):
            versions = history(state, prediction)
            found = found_for(state, prediction, versions[-1].subject) if versions else Found()
        else:
            found = found_of(state, prediction)
    except PreregError:
        return None
    is_refuted = found.judgement is not None and found.judgement.verdict is Verdict.REFUTED
    counts = standing(state.orders[prediction.id], prediction) != "exploratory"
    return Verdict.REFUTED if is_refuted and counts else None


def _kept(assessment: Assessment) -> Verdict | str:
    """Return a verdict that counts; in a family whose levels still rise a refutation stays one."""
    judgement = assessment.judgement
    if judgement is None:
        return f"it is pending: {assessment.pending}"
    if assessment.standing == "exploratory":
        return f"it was exploratory: {assessment.order.detail}"
    if altered := next((one for one in assessment.problems if one.code == "PR207"), None):
        return altered.message
    if not assessment.final and judgement.verdict is not Verdict.REFUTED:
        return "its family is not complete"
    return judgement.verdict
