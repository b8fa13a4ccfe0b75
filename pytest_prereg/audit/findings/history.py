"""What the lock's history says: registered, amended, removed, verdicts changed, repeats excluded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.audit.findings.amendments import amendments
from pytest_prereg.audit.findings.beside import beside
from pytest_prereg.audit.findings.forgotten import forgotten
from pytest_prereg.audit.findings.problems import guarded
from pytest_prereg.audit.findings.records import records
from pytest_prereg.audit.findings.registrations import registrations, removals, uncommitted
from pytest_prereg.audit.findings.replaced import replaced
from pytest_prereg.audit.findings.said import said
from pytest_prereg.audit.findings.tombstones import tombstones
from pytest_prereg.audit.findings.unread import unread

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.finding import Finding

FINDERS = (
    unread,
    uncommitted,
    registrations,
    removals,
    forgotten,
    amendments,
    replaced,
    beside,
    records,
    said,
    tombstones,
)


def of_history(state: StudyState) -> Iterator[Finding]:
    """Yield what the versions of the lock say, up to the one on disk.

    PR102 the lock is not committed as it is;
    PR201 registered, PR202 amended or replaced, PR203 removed, or another study is gone whose place this
    one has taken, PR205 a recorded verdict changed, PR208
    repeats excluded, PR213 series voided, PR215 judged after withdrawal; an acknowledgement that is gone is
    told under the code of what it acknowledged; a version that can't be read under the code of why not.
    """
    for finder in FINDERS:
        yield from guarded(finder, state)
