"""What may be measured: what the commit at HEAD registers, as it stands, with its code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.errors import Problem
from pytest_prereg.evidence.naming import shown
from pytest_prereg.registration import commit_command
from pytest_prereg.registry.digest import source_of_all
from pytest_prereg.registry.refusals import listed, quoted

if TYPE_CHECKING:
    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.registry.lock import LockEntry
    from pytest_prereg.registry.model import Prediction


def refusal(state: StudyState, prediction: Prediction) -> Problem | None:
    """Return why nothing may be launched for the prediction, and what would change that."""
    if state.repository is None:
        return _problem(state, prediction, "PR101", "is not in a git repository")
    committed = state.head_lock.predictions.get(prediction.id) if state.head_lock else None
    working = state.entry(prediction)
    if committed is None:
        first = "" if working else "pytest-prereg lock && "
        return _problem(state, prediction, "PR102", "is not in the lock at HEAD", first)
    amend = f"Restore it, or: pytest-prereg amend {prediction.id} --reason '…' && "
    first = "" if _is_current(state, working, prediction) else amend
    if committed.digest != state.digests[prediction.id]:
        return _problem(state, prediction, "PR104", "is not what the lock at HEAD registers", first)
    experiment = listed(prediction.experiments, "or")
    if not _is_current(state, committed, prediction):
        changed = f"was registered with other code of experiment {experiment}"
        return _problem(state, prediction, "PR103", changed, first)
    uncommitted = [name for name in prediction.experiments if not state.has_committed_code(name)]
    if uncommitted:
        experiment = listed(uncommitted)
        what = f"is registered, but the code of experiment {experiment} is not committed"
        return _problem(state, prediction, "PR102", what)
    return None


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
