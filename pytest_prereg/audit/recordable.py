"""Which verdicts a lock may record, and the entry that records one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from pytest_prereg.audit.standing import Assessment
    from pytest_prereg.registry.lock import LockEntry


def is_recordable(assessment: Assessment) -> bool:
    """Whether there is a verdict that is final, of unaltered evidence, whose registration came first.

    What is withdrawn is never judged anew.
    """
    return (
        assessment.judgement is not None
        and assessment.withdrawal is None
        and assessment.final
        and assessment.standing != "exploratory"
        and not any(problem.code == "PR207" for problem in assessment.problems)
    )


def recorded_entry(assessment: Assessment, entry: LockEntry) -> LockEntry:
    """The lock's table of a prediction with its verdict filled in, if it is still what was judged."""
    judgement = assessment.judgement
    if judgement is None or assessment.entry is None or entry.digest != assessment.entry.digest:
        return entry
    return msgspec.structs.replace(
        entry,
        verdict=judgement.verdict.value,
        reason=judgement.reason.value if judgement.reason else None,
        estimate=judgement.estimate,
        interval=judgement.interval,
        n=judgement.n,
        series=assessment.series,
        evidence=assessment.evidence,
    )
