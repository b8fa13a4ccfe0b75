"""Where a finding is shown: at the prediction's line, or at the lock for what has none any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.evidence.naming import shown

if TYPE_CHECKING:
    from pytest_prereg.audit.assess import StudyState


def place_of(state: StudyState, name: str) -> tuple[str, int | None]:
    """Path and line of a prediction, or of the first that reads an experiment; else the lock, no line."""
    study = state.study
    if name in study.predictions:
        return shown(study.path), study.predictions[name].line
    readers = [one for one in study.predictions.values() if name in one.experiments]
    if readers:
        return shown(study.path), min(one.line for one in readers)
    return shown(study.lock_path), None
