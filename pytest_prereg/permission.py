"""What may be measured: what the commit at HEAD registers, as it stands, with its code."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from pytest_prereg.audit.taking_back import after_data, has_data
from pytest_prereg.errors import Problem, one_line
from pytest_prereg.evidence.naming import shown
from pytest_prereg.registration import commit_command
from pytest_prereg.registry.digest import source_of_all
from pytest_prereg.registry.refusals import listed, quoted, typed

if TYPE_CHECKING:
    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.registry.lock import LockEntry, Withdrawal
    from pytest_prereg.registry.model import Prediction


def refusal(state: StudyState, prediction: Prediction) -> Problem | None:
    """Return why nothing may be launched for the prediction, and what would change that."""
    if state.repository is None:
        return _problem(state, prediction, "PR101", "is not in a git repository")
    if is_withdrawn(state, prediction):
        return _withdrawn(state, prediction)
    committed = state.head_lock.predictions.get(prediction.id) if state.head_lock else None
    lacking = _lacking(state, prediction, committed)
    if lacking is None:
        return None
    code, what = lacking
    return _problem(state, prediction, code, what, _first(state, prediction))


def _lacking(
    state: StudyState, prediction: Prediction, committed: LockEntry | None
) -> tuple[str, str] | None:
    """Return what HEAD lacks of a prediction as it is to be measured, with its code."""
    if committed is None:
        return "PR102", "is not in the lock at HEAD"
    if committed.digest != state.digests[prediction.id]:
        return "PR104", "is not what the lock at HEAD registers"
    if not _is_current(state, committed, prediction):
        return "PR103", f"was registered with other code of experiment {listed(prediction.experiments, 'or')}"
    if uncommitted := [name for name in prediction.experiments if state.uncommitted_code(name)]:
        code = f"the code of experiment {listed(uncommitted)}"
        return "PR102", f"is registered, but {code} is not committed as it is"
    return None


def _first(state: StudyState, prediction: Prediction) -> str:
    """Return what has to be typed before the commit: nothing where the working lock has it as it stands."""
    working = state.entry(prediction)
    if working is None:
        return "pytest-prereg lock && "
    if _is_current(state, working, prediction):
        return ""
    if working.digest != state.digests[prediction.id] and has_data(state, prediction.id):
        return f"{after_data(state, prediction.id)} && "
    return f"Restore it, or: pytest-prereg amend {shlex.quote(prediction.id)} --reason '…' && "


def is_withdrawn(state: StudyState, prediction: Prediction) -> bool:
    """Whether a prediction has a tombstone, here or at HEAD: then nothing is measured for it in any mode."""
    return _tombstone(state, prediction) is not None


def _withdrawn(state: StudyState, prediction: Prediction) -> Problem:
    """Return that the prediction is withdrawn: there is nothing to commit that would change that."""
    withdrawal = _tombstone(state, prediction)
    reason = one_line(withdrawal.reason) if withdrawal is not None else ""
    if state.is_withdrawn(prediction.id):
        advice = "It stays so: what you expect now is another prediction, with an id of its own."
    else:
        advice = f"Its tombstone stays: git checkout HEAD -- {typed(shown(state.study.lock_path))}"
    message = f"{quoted(prediction.id)} is withdrawn ({reason})"
    path = shown(state.study.path)
    return Problem(code="PR102", message=message, path=path, line=prediction.line, advice=advice)


def _tombstone(state: StudyState, prediction: Prediction) -> Withdrawal | None:
    locks = (state.lock, state.head_lock)
    entries = (lock.predictions.get(prediction.id) for lock in locks if lock is not None)
    found = (entry.withdrawal for entry in entries if entry is not None and entry.withdrawal is not None)
    return next(found, None)


def _is_current(state: StudyState, entry: LockEntry | None, prediction: Prediction) -> bool:
    """Return whether an entry of a lock registers the prediction and its experiments as they are."""
    sources = {name: state.source(state.study.experiments[name]) for name in prediction.experiments}
    now = state.digests[prediction.id], source_of_all(sources)
    return entry is not None and (entry.digest, entry.experiment) == now


def _problem(state: StudyState, prediction: Prediction, code: str, what: str, first: str = "") -> Problem:
    return Problem(
        code=code,
        message=f"{quoted(prediction.id)} {what}",
        path=shown(state.study.path),
        line=prediction.line,
        advice=first + commit_command(state.study, list(state.study.predictions), "Register"),
    )
