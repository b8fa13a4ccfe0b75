"""Sessions whose seed is not the one that is drawn from what they were measured for: PR207.

Block order and the seeds of repeats follow from it. Who could choose it would choose which arm comes first,
or which random numbers a body gets.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from pytest_prereg.audit.finding import Finding, Level
from pytest_prereg.audit.findings.places import place_of
from pytest_prereg.measure.schedule import seed_base
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.evidence.files import SessionFile
    from pytest_prereg.evidence.model import Header


def chosen(state: StudyState) -> Iterator[Finding]:
    """Yield an error for each measured session with a seed that no session of its series gives.

    A session that goes on with a series keeps its seed, also where something was withdrawn meanwhile. What
    was measured for no registration decides nothing, and says not what its seed was drawn from.
    """
    drawn: dict[tuple[str, int], set[str]] = defaultdict(set)
    bound = list(_bound(state))
    for _, header in bound:
        drawn[header.experiment, header.series].add(seed_base(header.predictions.values(), header.series))
    for file, header in bound:
        if header.seed not in drawn[header.experiment, header.series]:
            yield _finding(state, file, header)


def _bound(state: StudyState) -> Iterator[tuple[SessionFile, Header]]:
    """Sessions that measured for what was registered."""
    for several in state.files.values():
        for file in several:
            header = file.header
            if header is not None and header.origin == "measured" and header.predictions:
                yield file, header


def _finding(state: StudyState, file: SessionFile, header: Header) -> Finding:
    path, line = place_of(state, header.experiment)
    return Finding(
        code="PR207",
        id=header.experiment,
        level=Level.ERROR,
        message=f"{quoted(file.name)} has another seed than what it was measured for gives: the order of its "
        "repeats, and their seeds, were chosen",
        path=path,
        line=line,
        advice="Evidence is never edited: bring it back as it was written, or say why its series is void.",
        about=f"seed of {file.path.name}",
    )
