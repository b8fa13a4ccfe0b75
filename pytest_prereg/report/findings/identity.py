"""How a machine tells findings apart: where each is in the repository, and a name that outlives commits."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_prereg.audit.finding import sound

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_prereg.audit.finding import Finding
    from pytest_prereg.report.findings.reported import Reported

_DIGITS = 32


class Place(NamedTuple):
    """Where a finding is shown."""

    path: str
    """From the root of the repository, with ``/``; as it was given where it lies outside."""
    line: int | None


def place_in_repository(reported: Reported, finding: Finding) -> Place:
    """Return where a finding is; one without a place is at the prediction file."""
    path = reported.file if finding.path is None else Path(finding.path)
    whole = path.absolute().parent.resolve() / path.name
    if reported.root is not None and whole.is_relative_to(reported.root):
        path = whole.relative_to(reported.root)
    return Place(sound(path.as_posix()), finding.line)


def fingerprints(study: str, findings: Iterable[Finding]) -> list[str]:
    """Return a name for each finding, in order: the same in every run, whatever commit brought it in.

    It is made of study, code, id and what exactly the finding is about. Of those that agree in all of it,
    each has its number.
    """
    seen = Counter[tuple[str, str, str]]()
    names = []
    for one in findings:
        key = one.code, one.id, one.about
        number = (str(seen[key]),) if seen[key] else ()
        seen[key] += 1
        text = "\0".join((study, *key, *number))
        names.append(hashlib.sha256(text.encode()).hexdigest()[:_DIGITS])
    return names
