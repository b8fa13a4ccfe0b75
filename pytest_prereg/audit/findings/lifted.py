"""Refutations that something else has made inconclusive: PR205.

What a claim rests on was excluded, voided or amended when its own evidence refuted it already. The verdict
is honest, and so may be the reason; that it would be another one has to be seen beside the claim itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.audit.conditions import was_refuted
from pytest_prereg.audit.deciding import is_guard
from pytest_prereg.audit.finding import Finding, Level
from pytest_prereg.audit.findings.places import place_of
from pytest_prereg.audit.findings.problems import upheld
from pytest_prereg.audit.findings.telling import acknowledging
from pytest_prereg.judge.model import Reason, Verdict
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.standing import Assessment

ELSEWHERE = frozenset({Reason.INSTRUMENT, Reason.REQUIRED})
"""Reasons that are found in what others rest on, and not in the evidence of a claim itself."""


def lifted(state: StudyState) -> Iterator[Finding]:
    """Yield a review for each claim that its own evidence refutes, and that is undecided for another's sake.

    Only where that other one was changed, or something was said against it, when there was evidence for it.
    """
    for assessment in upheld(state):
        judgement = assessment.judgement
        if judgement is None or judgement.verdict is not Verdict.INCONCLUSIVE:
            continue
        if judgement.reason not in ELSEWHERE or is_guard(assessment.prediction):
            continue
        if was_refuted(state, assessment.prediction):
            yield _finding(state, assessment, judgement.reason, judgement.detail)


def _finding(state: StudyState, assessment: Assessment, reason: Reason, detail: str | None) -> Finding:
    name = assessment.prediction.id
    path, line = place_of(state, name)
    return Finding(
        code="PR205",
        id=name,
        level=Level.REVIEW,
        message=f"series {assessment.series} of {quoted(name)} refuted it, and it is inconclusive since: "
        f"{reason}, {detail}",
        path=path,
        line=line,
        advice="What it rests on was changed when it was known. Say why that is no way round it: "
        + acknowledging("PR205", name),
        about=f"series {assessment.series} refuted -> inconclusive, {reason}",
    )
