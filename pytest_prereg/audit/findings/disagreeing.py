"""Series of one claim, or of one version of a guard's subject, that disagree: PR205."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from pytest_prereg.audit.deciding import is_guard
from pytest_prereg.audit.exclusions import name_of
from pytest_prereg.audit.finding import Finding, Level
from pytest_prereg.audit.findings.places import place_of
from pytest_prereg.audit.findings.problems import upheld
from pytest_prereg.audit.findings.telling import acknowledging
from pytest_prereg.judge.model import Verdict
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.standing import Assessment


class _Said(NamedTuple):
    """What one series says by itself."""

    series: int
    verdict: Verdict


def disagreeing(state: StudyState) -> Iterator[Finding]:
    """Yield a review for each complete series that says otherwise than the first one that is decided."""
    yield from _used_twice(state)
    for assessment in upheld(state):
        name = assessment.prediction.id
        for several in _comparable(assessment):
            decided = [one for one in several if one.verdict is not Verdict.INCONCLUSIVE]
            for other in decided[1:]:
                if other.verdict is not decided[0].verdict:
                    yield _disagreement(state, name, decided[0], other)


def _comparable(assessment: Assessment) -> Iterator[list[_Said]]:
    """Series that ought to agree: all of a claim; of a guard those of one version of its subject."""
    if is_guard(assessment.prediction):
        versions = sorted(assessment.history, key=lambda one: (one.subject or "", one.series))
        for _, several in groupby(versions, key=lambda one: one.subject):
            yield [_Said(one.series, one.verdict) for one in several]
    elif assessment.judgement is not None and assessment.series is not None:
        later = [_Said(one.series, one.judgement.verdict) for one in assessment.replications]
        yield [_Said(assessment.series, assessment.judgement.verdict), *later]


def _disagreement(state: StudyState, name: str, first: _Said, other: _Said) -> Finding:
    path, line = place_of(state, name)
    told = _listed((first, other))
    return Finding(
        code="PR205",
        id=name,
        level=Level.REVIEW,
        message=f"series of {quoted(name)} disagree: {told}",
        path=path,
        line=line,
        advice=f"The first one decides. Say why they may differ: {acknowledging('PR205', name)}",
        about=told,
    )


def _listed(several: Iterable[_Said]) -> str:
    return ", ".join(f"series {one.series} {one.verdict}" for one in several)


def _used_twice(state: StudyState) -> Iterator[Finding]:
    """Yield a review for each session that has other results for repeats which another session settled."""
    for experiment, several in state.series.items():
        path, line = place_of(state, experiment)
        for series in several if any(one.disputed for one in several) else ():
            for session in series.disputed if series.complete else ():
                yield Finding(
                    code="PR205",
                    id=experiment,
                    level=Level.REVIEW,
                    message=f'{quoted(session)} has other results for repeats of series "{name_of(series)}" '
                    "that another session settled: two branches, or two clones, measured under one number",
                    path=path,
                    line=line,
                    advice="Both stay, and a verdict that hangs on which of them counts is inconclusive.",
                    about=f"{name_of(series)} {session}",
                )
