"""Writing verdicts into the lock, where a review of the commit will see them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.registry.lock import write_lock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_prereg.audit.assess import Assessment
    from pytest_prereg.outcomes import StudyRun
    from pytest_prereg.registry.lock import LockEntry


def record_verdicts(run: StudyRun, assessments: Sequence[Assessment]) -> list[str]:
    """Write the verdict of every complete series to the study's lock; returns what to tell the user.

    An exploratory verdict is not written: it would read like one that was registered first.
    """
    lock = run.state.lock
    fresh = {
        assessment.prediction.id: recorded_entry(assessment)
        for assessment in assessments
        if assessment.entry is not None and is_recordable(assessment)
    }
    if lock is None or not fresh:
        return []
    entries = {**lock.predictions, **fresh}
    if entries == lock.predictions:
        return [f"nothing new to record in {run.state.study.lock_path.name}"]
    run.state.lock = msgspec.structs.replace(lock, predictions=entries)
    write_lock(run.state.study.lock_path, run.state.lock)
    changed = sum(entries[name] != lock.predictions[name] for name in fresh)
    return [f"recorded {changed} verdict{'s' * (changed != 1)} in {run.state.study.lock_path.name}"]


def is_recordable(assessment: Assessment) -> bool:
    """Whether there is a verdict, of unaltered evidence, whose registration came first."""
    return (
        assessment.judgement is not None
        and assessment.standing != "exploratory"
        and not any(problem.code == "PR207" for problem in assessment.problems)
    )


def recorded_entry(assessment: Assessment) -> LockEntry:
    """The lock's table of a prediction with its verdict filled in."""
    judgement = assessment.judgement
    if judgement is None or assessment.entry is None:  # pragma: no cover - is_recordable
        raise AssertionError
    return msgspec.structs.replace(
        assessment.entry,
        verdict=judgement.verdict.value,
        reason=judgement.reason.value if judgement.reason else None,
        estimate=judgement.estimate,
        interval=judgement.interval,
        n=judgement.n,
        series=assessment.series,
        evidence=assessment.evidence,
    )
