"""Repeats that failed: how many for which cause, and what the first of them said of itself."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pytest_prereg.audit.standing import read_arms
from pytest_prereg.evidence.model import Outcome
from pytest_prereg.measure.failures import reason, settling
from pytest_prereg.report.columns import cut

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.standing import Assessment
    from pytest_prereg.evidence.model import RecordedRepeat

_SENTENCE = 1000
"""Characters that a sentence may have; what is longer is a dump."""


def ended(state: StudyState, assessment: Assessment, outcome: Outcome) -> Iterator[RecordedRepeat]:
    """Yield the repeats of the deciding series that ended like that in an arm of the prediction."""
    prediction = assessment.prediction
    for name in prediction.experiments:
        arms = read_arms(state.study, prediction, name)
        for series in state.series[name]:
            if set(series.sessions) <= set(assessment.sessions):
                yield from (one for one in series.repeats if one.outcome is outcome and one.arm in arms)


def failed_lines(state: StudyState, assessment: Assessment) -> list[str]:
    """Return for ``explain`` the causes, each with its count, and the sentence of the first error in full.

    ``oom: 3, exception: 5``, then ``first work/1/2: ValueError: …``; nothing where no repeat failed.
    """
    failed = [*ended(state, assessment, Outcome.TASK_FAILED)]
    if not failed:
        return []
    counts = Counter(one.cause or "unknown" for one in failed)
    first = failed[0]
    line = settling(first, state.files[first.id.partition("/")[0]])
    said = reason(line) if line is not None else None
    causes = ", ".join(f"{cause}: {count}" for cause, count in counts.most_common())
    return [causes, *([f"first {first.id}: {cut(said, _SENTENCE)}"] if said else [])]
