"""What the evidence and the records say now: gone, stale, left unfinished, not what is quoted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.audit.findings.disagreeing import disagreeing
from pytest_prereg.audit.findings.early import early
from pytest_prereg.audit.findings.hidden import hidden
from pytest_prereg.audit.findings.known import known
from pytest_prereg.audit.findings.lifted import lifted
from pytest_prereg.audit.findings.problems import guarded, refused
from pytest_prereg.audit.findings.quoted_numbers import misquoted
from pytest_prereg.audit.findings.removed import removed, unknown
from pytest_prereg.audit.findings.set_aside import set_aside
from pytest_prereg.audit.findings.stale import stale
from pytest_prereg.audit.findings.unfinished import unfinished
from pytest_prereg.audit.findings.unfounded import escaped, unfounded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.finding import Finding

FINDERS = (
    refused,
    disagreeing,
    lifted,
    stale,
    removed,
    hidden,
    unknown,
    set_aside,
    misquoted,
    unfounded,
    escaped,
    unfinished,
    early,
    known,
)


def of_evidence(state: StudyState) -> Iterator[Finding]:
    """Yield what is to be said of the evidence, the records and the numbers quoted, as they are now.

    PR205 series that disagree and refutations that were lifted, PR206 stale verdicts, PR207 evidence that is
    gone or altered, or has another plan or seed than was registered, PR208 repeats set aside when they ended,
    PR210 quoted numbers, PR211 records that do not follow, PR213 series that were left or repeats that were
    run again, PR216 data that were there before a registration; and what can't be judged, under its own code.
    """
    for finder in FINDERS:
        yield from guarded(finder, state)
