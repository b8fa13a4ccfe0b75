"""What a pull request does to each prediction: a row for each that it changes or that findings are about.

Order, kinds and counts; the words are in ``pull_request_words``, and every format lays out the same rows.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.audit.audited import Audited
from pytest_prereg.audit.finding import Finding
from pytest_prereg.report.findings.rules import COUNTS, OTHER
from pytest_prereg.report.findings.summing_up import Mark, mark_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from pytest_prereg.report.findings.reported import Reported

_MANY = 10
"""Rows of which nothing is to be said but what they are, from which on they are one row."""
_AMENDED = frozenset({"PR202", "PR209"})
_OUT = "PR203"
_OF_REGISTRATION = frozenset({"PR201"})
_OF_GUARDS = frozenset({"PR206"})


class Change(StrEnum):
    """What happens to a prediction, in a word or two; the weightiest first."""

    GONE = "removed"
    LOST = "verdict taken out"
    VERDICT = "verdict changed"
    WITHDRAWN = "withdrawn"
    AMENDED = "registration changed"
    BOTH = "registered and judged"
    MEASURED = "measured, and not recorded"
    JUDGED = "judged"
    AGAIN = "judged anew"
    """The same verdict, with other numbers."""
    UNREGISTERED = "not registered"
    REGISTERED = "registered"
    NONE = "unchanged"


NEW = frozenset({Change.BOTH, Change.REGISTERED, Change.UNREGISTERED})
_MANY_OF = {
    Change.LOST: "verdicts taken out",
    Change.VERDICT: "verdicts changed",
    Change.AMENDED: "registrations changed",
}
_MARKS = {mark: rank for rank, mark in enumerate(Mark)}
_CHANGES = {change: rank for rank, change in enumerate(Change)}
_VERDICTS = {"refuted": 0, "inconclusive": 1}


class Row(msgspec.Struct, kw_only=True, frozen=True):
    """A prediction, or what else findings are about, and the findings."""

    mark: Mark
    """Of its worst finding."""
    name: str
    """Of the prediction or the experiment; empty for the study."""
    change: Change
    one: Audited | None
    """``None`` where it is no prediction."""
    findings: tuple[Finding, ...]

    @property
    def is_simple(self) -> bool:
        """Whether its change, or the code of its one notice, is all that is to be said."""
        if self.one is None or self.mark is not Mark.NOTICE:
            return False
        codes = {one.code for one in self.findings}
        return (self.change is Change.REGISTERED and codes <= _OF_REGISTRATION) or (
            self.change is Change.NONE and codes == _OF_GUARDS
        )


def rows_of(reported: Reported) -> list[Row]:
    """Return a row for each prediction that is changed or that findings are about, the worst first."""
    return sorted((row for row in _all(reported) if _is_told(row)), key=_weight)


def changes(reported: Reported) -> str:
    """Return how many predictions are changed in what way, and what else is found.

    ``2 verdicts changed, 1 number misquoted, 24 unchanged``
    """
    return counted_changes(_all(reported))


def counted_changes(rows: Iterable[Row]) -> str:
    """Return how many of the predictions in rows are changed in what way, and what else is found of them.

    What is found fault with is not counted as unchanged.
    """
    rows = list(rows)
    counts = Counter(row.change for row in rows if row.one is not None and not _is_flawed(row))
    parts = [
        f"{counts[change]} {_MANY_OF.get(change, change) if counts[change] > 1 else change}"
        for change in (*_COUNTED, *(one for one in Change if one not in _COUNTED))
        if counts[change]
    ]
    place = len(parts) - bool(counts[Change.NONE])
    return ", ".join([*parts[:place], *_flaws(rows), *parts[place:]])


def _is_flawed(row: Row) -> bool:
    return row.change is Change.NONE and row.mark is not Mark.NOTICE


def _flaws(rows: Iterable[Row]) -> Iterator[str]:
    """Yield how many findings there are of each kind of which the changes tell nothing."""
    counts = Counter(
        COUNTS.get(one.code, OTHER)
        for row in rows
        for one in row.findings
        if mark_of(one) not in (Mark.NOTICE, Mark.UNKNOWN) and row.change not in _TOLD.get(one.code, ())
    )
    yield from (f"{count} {several if count > 1 else single}" for (single, several), count in counts.items())


_TOLD = {
    "PR202": {Change.AMENDED},
    "PR203": {Change.GONE, Change.WITHDRAWN},
    "PR204": {Change.BOTH},
    "PR205": {Change.LOST, Change.VERDICT, Change.AGAIN},
}
"""Codes whose findings are counted as changes."""
_COUNTED = (Change.GONE, Change.VERDICT, Change.LOST)
"""What is counted first."""


def folded(rows: Iterable[Row], *, every: bool = False) -> list[list[Row]]:
    """Return rows in their order, those together that are many and alike, unless ``every``."""
    groups: dict[object, list[Row]] = {}
    for row in rows:
        kind = (row.change, *sorted({one.code for one in row.findings})) if row.is_simple else id(row)
        groups.setdefault(kind, []).append(row)
    return [
        part
        for several in groups.values()
        for part in ([several] if len(several) > _MANY and not every else ([row] for row in several))
    ]


def _all(reported: Reported) -> list[Row]:
    about: dict[str, list[Finding]] = {}
    for finding in reported.findings:
        about.setdefault(finding.id, []).append(finding)
    rows = [_row(one, about.pop(one.id, ())) for one in reported.predictions]
    return [*rows, *(_beside(name, found) for name, found in about.items())]


def _row(one: Audited, found: Collection[Finding]) -> Row:
    change = _change(one, {finding.code for finding in found})
    return Row(mark=_worst(found), name=one.id, change=change, one=one, findings=tuple(found))


def _beside(name: str, found: Collection[Finding]) -> Row:
    """Return the row of what is no prediction: an experiment, or the study."""
    return Row(mark=_worst(found), name=name, change=Change.NONE, one=None, findings=tuple(found))


def _worst(found: Iterable[Finding]) -> Mark:
    return min(map(mark_of, found), key=_MARKS.__getitem__, default=Mark.NOTICE)


def _change(one: Audited, codes: Collection[str]) -> Change:
    """Return what is done to a prediction; what is gone at the base already has no finding here."""
    is_new = one.is_at_base is False
    if one.status == "removed":
        return Change.GONE if codes else Change.NONE
    if one.status == "withdrawn" and (is_new or _OUT in codes):
        return Change.WITHDRAWN
    if one.status == "unregistered" and is_new and one.base is None:
        return Change.UNREGISTERED
    if one.given is not None and "PR204" not in codes:
        return Change.MEASURED
    is_amended = bool(_AMENDED & set(codes))
    if is_new and one.base is None and not is_amended:
        return Change.BOTH if one.head else Change.REGISTERED
    return _of_record(one) or (Change.AMENDED if is_new or is_amended else _of_numbers(one))


def _of_record(one: Audited) -> Change | None:
    """Return how the verdict itself changes, if there was one."""
    if one.base is None or one.head == one.base:
        return None
    if one.head is None:
        return Change.LOST
    return Change.VERDICT if one.head.verdict != one.base.verdict else None


def _of_numbers(one: Audited) -> Change:
    if one.head == one.base:
        return Change.NONE
    return Change.JUDGED if one.base is None else Change.AGAIN


def _is_told(row: Row) -> bool:
    return bool(row.findings) or row.change is not Change.NONE


def _weight(row: Row) -> tuple[int, int, int]:
    verdict = row.one.head.verdict if row.one and row.one.head else ""
    return _MARKS[row.mark], _CHANGES[row.change], _VERDICTS.get(verdict, len(_VERDICTS))
