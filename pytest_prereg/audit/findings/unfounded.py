"""Recorded verdicts that do not follow from the evidence, and withdrawals that hide one: PR211."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from pytest_prereg.audit.finding import Finding, Level
from pytest_prereg.audit.findings.places import place_of
from pytest_prereg.audit.findings.problems import assessed, finding_of
from pytest_prereg.audit.recorded import short
from pytest_prereg.audit.withdrawn import files_of, tombstones
from pytest_prereg.evidence.series import Settling
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.withdrawn import Tombstone
    from pytest_prereg.evidence.files import SessionFile
    from pytest_prereg.registry.lock import LockEntry


def unfounded(state: StudyState) -> Iterator[Finding]:
    """Yield an error for all that shows that a record is not what the evidence gives.

    What is wrong with a file of evidence is told of the file, and not of each prediction that it concerns.
    """
    elsewhere = {problem for several in state.files.values() for file in several for problem in file.problems}
    elsewhere |= {*state.broken, *(problem for _, problem in state.misplaced)}
    for experiment, problem in state.misplaced:
        yield finding_of(state, problem, experiment)
    for assessment in assessed(state):
        for problem in assessment.problems:
            if problem not in elsewhere:
                yield finding_of(state, problem, assessment.prediction.id)


def escaped(state: StudyState) -> Iterator[Finding]:
    """Yield a review for what was withdrawn without a verdict, though it was measured, and then deleted.

    ``withdraw`` records the verdict, so that no refutation is escaped before it was recorded. Of what is
    still in the file it is told which is missing; of what is not, nobody can tell, and a person has to look.
    """
    for one in tombstones(state):
        if one.verdict is None and one.standing != "exploratory" and _was_measured(state, one):
            yield _escape(state, one.id, one.entry)


def _was_measured(state: StudyState, one: Tombstone) -> bool:
    """Whether some series that binds the registration has all of its planned repeats."""
    series: dict[tuple[str, int], list[SessionFile]] = defaultdict(list)
    for file in files_of(state, one.id, {one.entry.digest}):
        if file.header is not None:
            series[file.header.experiment, file.header.series].append(file)
    return any(map(_is_complete, series.values()))


def _is_complete(files: list[SessionFile]) -> bool:
    planned = files[0].header.planned if files[0].header else None
    settling = Settling(planned)
    for file in files:
        settling.add(file.attempts, None)
    return settling.complete(planned or {}) and bool(settling.settled)


def _escape(state: StudyState, name: str, entry: LockEntry) -> Finding:
    path, line = place_of(state, name)
    return Finding(
        code="PR211",
        id=name,
        level=Level.REVIEW,
        message=f"{quoted(name)} is withdrawn without a verdict, though a complete series was measured for "
        "it, and its text is gone",
        path=path,
        line=line,
        advice="Put its text back: then an audit tells what the evidence gives.",
        about=f"withdrawn {short(entry.digest)}",
    )
