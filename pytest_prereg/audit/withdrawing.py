"""Withdrawing predictions: a tombstone each, with the verdict that the evidence gives at that moment.

Nobody gets rid of a refutation like that: what can't be recorded yet, or can't be judged as the study is now,
is not withdrawn. Only what never could be judged, and never will be, goes without a verdict.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.audit.guards import found_for
from pytest_prereg.audit.history.git_commands import is_ignored, newest, whole_history
from pytest_prereg.audit.history.order import Grade
from pytest_prereg.audit.history.past import Past
from pytest_prereg.audit.recordable import is_recordable, recorded_entry
from pytest_prereg.audit.unjudgeable import VALUELESS, is_unjudgeable
from pytest_prereg.errors import (
    HistoryError,
    JudgeError,
    PreregError,
    Problem,
    StudyError,
    UsageError,
    one_line,
)
from pytest_prereg.evidence.naming import shown, utc_now
from pytest_prereg.evidence.series import evidence_digest
from pytest_prereg.registry.lock import Withdrawal
from pytest_prereg.registry.reasons import given_reason
from pytest_prereg.registry.refusals import quoted, suggestion
from pytest_prereg.registry.uses import named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.standing import Assessment
    from pytest_prereg.registry.lock import Lock, LockEntry
    from pytest_prereg.registry.model import Prediction, Study

_IN_PART = (
    "Other evidence of it can be judged, and must not get lost: amend it, commit that, then withdraw it;\n"
    "the amendment keeps a refutation."
)
RECORD = "pytest --prereg --prereg-verify --prereg-record"


def withdraw(state: StudyState, names: Iterable[str], reason: str) -> tuple[Lock, list[str]]:
    """Return the study's lock with predictions withdrawn, and their ids.

    Args:
        state: The study with its evidence.
        names: Ids, of the study or of its lock alone; a for-each table's stands for all that it makes.
        reason: Why, in the author's words.

    Raises:
        UsageError: There is no reason (PR005), or no prediction of a name (PR007).
        StudyError: One is not registered (PR007), withdrawn already (PR105), or what its evidence gives can't
            be recorded (the code says why); nothing is withdrawn then.
        HistoryError: Nothing stands in the way but that git can't tell what came first (PR212).
    """
    reason = given_reason(reason)
    lock, chosen, problems = _chosen(state, names)
    entries = {}
    for name in chosen:
        found = _obstacles(state, name, lock.predictions[name])
        problems += [one for one in found if one not in problems]
        entries[name] = _buried(state, name, lock.predictions[name], reason)
    if problems:
        is_untold = all(one.code == "PR212" for one in problems)
        raise HistoryError(problems) if is_untold else StudyError(problems)
    return msgspec.structs.replace(lock, predictions={**lock.predictions, **entries}), chosen


def _chosen(state: StudyState, names: Iterable[str]) -> tuple[Lock, list[str], list[Problem]]:
    """The lock, the ids that are to be withdrawn, and what is wrong with the names."""
    lock = state.lock
    if lock is None:
        message = "nothing is registered yet, so there is nothing to withdraw: take it out of the file"
        raise StudyError(Problem(code="PR007", path=shown(state.study.lock_path), message=message))
    chosen: dict[str, None] = {}
    problems, unknown = [], []
    for name in names:
        ids = [*named(name, state.study.predictions)] or _in_lock(name, lock)
        if not ids:
            unknown.append(_unknown(state.study, lock, name))
            continue
        left = [one for one in ids if one in lock.predictions and lock.predictions[one].withdrawal is None]
        chosen.update(dict.fromkeys(left))
        if not left:
            problems.append(_nothing_left(state.study, lock, name, ids))
    if unknown:
        raise UsageError(unknown)
    return lock, [*chosen], problems


def _in_lock(name: str, lock: Lock) -> list[str]:
    """The ids that a name stands for, of predictions that are no longer in the study."""
    return [name] if name in lock.predictions else [one for one in lock.predictions if _table(one) == name]


def _table(name: str) -> str:
    """The table that made a prediction: ``faster`` of ``faster[cols=4096]``."""
    return name.partition("[")[0]


def _unknown(study: Study, lock: Lock, name: str) -> Problem:
    hint = suggestion(name, lock.predictions, "registered are")
    message = f"there is no prediction {quoted(name)}{hint}"
    return Problem(code="PR007", path=shown(study.lock_path), message=message)


def _nothing_left(study: Study, lock: Lock, name: str, ids: list[str]) -> Problem:
    """Why nothing is withdrawn under a name."""
    before = next((entry for one in ids if (entry := lock.predictions.get(one))), None)
    if before is not None and before.withdrawal is not None:
        message = f"{quoted(name)} is withdrawn already: {one_line(before.withdrawal.reason)}"
        return Problem(code="PR105", path=shown(study.lock_path), message=message)
    message = f"{quoted(name)} is not registered, so there is nothing to withdraw: take it out of the file"
    return Problem(code="PR007", path=shown(study.path), line=study.predictions[ids[0]].line, message=message)


def _buried(state: StudyState, name: str, entry: LockEntry, reason: str) -> LockEntry:
    """The entry with its tombstone, and with the verdict of its evidence where that can be recorded."""
    prediction = state.study.predictions.get(name)
    if prediction is None:
        return msgspec.structs.replace(entry, withdrawal=Withdrawal(reason=reason, at=utc_now()))
    table = prediction.table
    withdrawal = Withdrawal(
        reason=reason,
        at=utc_now(),
        kind=table.kind,
        basis=table.basis,
        standing="replication" if table.data_seen == "full" else "confirmatory",
        credence=table.credence,
    )
    assessment = _assessed(state, prediction)
    if assessment is not None and assessment.judgement is None and entry.verdict is None:
        assessment = last_judged(state, assessment)
    if assessment is not None and is_recordable(assessment):
        entry = recorded_entry(assessment, entry)
    return msgspec.structs.replace(entry, withdrawal=withdrawal)


def _assessed(state: StudyState, prediction: Prediction) -> Assessment | None:
    try:
        return state.assess(prediction)
    except PreregError:
        return None


def last_judged(state: StudyState, assessment: Assessment) -> Assessment:
    """Return a guard without a verdict on its subject as it is, with that on the last one that has one."""
    for version in reversed(assessment.history):
        found = found_for(state, assessment.prediction, version.subject)
        if found.judgement is not None:
            return msgspec.structs.replace(
                assessment,
                judgement=found.judgement,
                series=found.used[0].number,
                evidence=evidence_digest(found.used, found.judgement.repeats),
            )
    return assessment


# What keeps a prediction from being withdrawn


def _obstacles(state: StudyState, name: str, entry: LockEntry) -> list[Problem]:
    """What has to be settled before a prediction can be withdrawn."""
    prediction = state.study.predictions.get(name)
    if prediction is None or state.digests[name] != entry.digest:
        return [*_unreadable(state, name, entry)]
    try:
        assessment = state.assess(prediction)
    except JudgeError as error:
        if entry.verdict is None and is_unjudgeable(state, prediction):
            return [*_incomplete(state, name)]
        valueless = (
            replace(one, advice=_IN_PART) if one.code == VALUELESS else one for one in error.problems
        )
        return [*valueless]
    except PreregError as error:
        return [*error.problems]
    if assessment.problems:
        return [*assessment.problems]
    return [*_unsettled(state, assessment)]


def _unreadable(state: StudyState, name: str, entry: LockEntry) -> Iterator[Problem]:
    """Evidence that can't be judged, since what it was measured for can't be read; else nothing."""
    if entry.verdict is not None:
        return
    is_gone = name not in state.study.predictions
    what = "is no longer in the study" if is_gone else "is no longer what was registered"
    advice = f"{'Put it back' if is_gone else 'Restore it'}, then {RECORD}, then withdraw it."
    path = shown(state.study.path)
    if entry.digest in state.bound_by_evidence.get(name, ()):
        message = f"{quoted(name)} {what}, and has evidence whose verdict nobody recorded"
        code = "PR203" if is_gone else "PR104"
        yield Problem(code=code, path=path, message=message, advice=advice)
    elif _is_incomplete(state):
        message = f"{quoted(name)} {what}, and evidence of the study is gone or altered, perhaps its own"
        yield Problem(code="PR207", path=path, message=message, advice=f"Bring that back. {advice}")


def _is_incomplete(state: StudyState) -> bool:
    """Whether evidence of the study, perhaps a prediction's own, is not as it was."""
    return bool(state.broken or (isinstance(state.past, Past) and state.past.vanished))


def _incomplete(state: StudyState, name: str) -> Iterator[Problem]:
    """Evidence that is not as it was, of what can't be judged as it is: it may have been possible before."""
    if _is_incomplete(state):
        message = (
            f"{quoted(name)} can't be judged, and evidence of the study is gone or altered, perhaps its own"
        )
        advice = "Bring that back first: pytest-prereg audit says what, and where it was."
        yield Problem(code="PR207", path=shown(state.study.path), message=message, advice=advice)


def _unsettled(state: StudyState, assessment: Assessment) -> Iterator[Problem]:
    """Why the verdict of a prediction, as its evidence gives it, can't be recorded with its tombstone."""
    name = quoted(assessment.prediction.id)
    if assessment.order.removed:
        gone = assessment.order.removed[0]
        message = f"evidence of {name} was committed, and is gone or altered: {gone}"
        yield _problem(state, assessment, "PR207", message, "Bring it back first; git log says where it is.")
    elif assessment.judgement is None:
        if _is_sealed(state, assessment):
            message = f"{name} has its evidence, and its verdict is still to come: {assessment.pending}"
            advice = f"Measure that, or withdraw it first. Then {RECORD}, then withdraw this."
            yield _problem(state, assessment, "PR211", message, advice)
    elif assessment.changed:
        message = f"{name} is recorded as {assessment.recorded}, and its evidence gives another verdict now"
        advice = f"Record that first, in a commit of its own: {RECORD}"
        yield _problem(state, assessment, "PR211", message, advice)
    elif not assessment.final:
        message = f"{name} belongs to a family that is not complete, so its verdict can't be recorded yet"
        advice = f"Measure the others, or withdraw them first. Then {RECORD}, then withdraw this."
        yield _problem(state, assessment, "PR211", message, advice)
    elif assessment.order.grade is Grade.UNVERIFIABLE and state.repository is not None:
        message = f"whether the verdict on {name} counts can't be told: {assessment.order.detail}"
        yield _problem(state, assessment, "PR212", message, whole_history(state.repository))


def _is_sealed(state: StudyState, assessment: Assessment) -> bool:
    """Whether a pending prediction has all of its evidence, or is a guard that was refuted once."""
    basis = state.bases[assessment.prediction.id]
    return basis is not None and any(state.binds(one, assessment.prediction) for one in basis.values())


def _problem(
    state: StudyState, assessment: Assessment, code: str, message: str, advice: str | None
) -> Problem:
    path, line = shown(state.study.path), assessment.prediction.line
    return Problem(code=code, path=path, line=line, message=message, advice=advice)


# What becomes of it


def rests_on_it(state: StudyState, name: str) -> list[str]:
    """Return the ids of predictions whose tables name one, so that its text has to stay in the study."""
    tables = {name, _table(name)}
    found = []
    for other in state.study.predictions.values():
        table = other.table
        named_there = {
            *(table.requires or ()),
            *(table.all or ()),
            *([table.follows] if table.follows else ()),
        }
        if other.id != name and _table(other.id) not in tables and named_there & tables:
            found.append(other.id)
    return found


def calibrates(state: StudyState, name: str) -> list[str]:
    """Return the instruments whose tables name a prediction among those that calibrate them."""
    tables = {name, _table(name)}
    instruments = state.study.instruments.items()
    return [instrument for instrument, table in instruments if tables & {*(table.calibrated_by or ())}]


def uncommitted_evidence(state: StudyState) -> list[Path]:
    """Return the folder of the evidence where a commit would lack some of it: tombstones may rest on that."""
    folder, repository = state.study.evidence_folder, state.repository
    if not folder.is_dir() or repository is None:
        return []
    ignored = any(is_ignored(repository, path) for path in newest(state.files))
    return [folder] if ignored or repository.differs(folder) else []
