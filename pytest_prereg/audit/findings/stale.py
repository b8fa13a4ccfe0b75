"""Verdicts on an earlier version of what they are about: PR206, which is no fault, and has to be known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.audit.deciding import current_subject, is_guard, of_subject
from pytest_prereg.audit.finding import Finding, Level
from pytest_prereg.audit.findings.places import place_of
from pytest_prereg.audit.findings.problems import upheld
from pytest_prereg.audit.recorded import short
from pytest_prereg.audit.remarks import EARLIER_SUBJECT
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.standing import Assessment


def stale(state: StudyState) -> Iterator[Finding]:
    """Yield a notice for each claim and each guard that was not measured on its subject as it is now."""
    for assessment in upheld(state):
        if is_guard(assessment.prediction):
            yield from _guard(state, assessment)
        elif EARLIER_SUBJECT in assessment.flags:
            now = _now(state, assessment)
            message = (
                f"is about an earlier version of its subject ({short(assessment.subject)}), which is {now}"
            )
            yield _notice(state, assessment, message, None)


def _guard(state: StudyState, assessment: Assessment) -> Iterator[Finding]:
    experiment = assessment.prediction.experiment
    if not assessment.history or of_subject(state, experiment, current_subject(state, experiment)):
        return
    last = assessment.history[-1]
    message = (
        f"is stale: series {last.series} found it {last.verdict} for {short(last.subject)}, and its subject "
        f"is {_now(state, assessment)}"
    )
    yield _notice(state, assessment, message, "Measure it as it is now: pytest --prereg --prereg-record")


def _now(state: StudyState, assessment: Assessment) -> str:
    """What became of the subject, after a verb."""
    every = (current_subject(state, name) for name in assessment.prediction.experiments)
    known = [short(digest) for digest in every if digest is not None]
    return f"{' and '.join(known)} now" if known else "no longer there"


def _notice(state: StudyState, assessment: Assessment, message: str, advice: str | None) -> Finding:
    name = assessment.prediction.id
    path, line = place_of(state, name)
    return Finding(
        code="PR206",
        id=name,
        level=Level.NOTICE,
        message=f"{quoted(name)} {message}",
        path=path,
        line=line,
        advice=advice,
        about=f"subject {short(assessment.subject)}",
    )
