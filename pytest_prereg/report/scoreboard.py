"""The count over all verdicts: exploratory ones are shown and never counted."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING

from pytest_prereg.judge.credences import calibration
from pytest_prereg.judge.model import Verdict
from pytest_prereg.report.columns import ascii_text, wrapped
from pytest_prereg.report.records import counts_as_refuted, was_refuted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from pytest_prereg.judge.credences import Credence
    from pytest_prereg.report.records import Record

_NONE: Mapping[str, float] = {}
_VERDICTS = ("supported", "refuted", "inconclusive")


class _Place(StrEnum):
    """Where a prediction is counted."""

    UNREGISTERED = "not registered"
    JUDGED = "judged"
    PENDING = "pending"
    EXPLORATORY = "exploratory"
    WITHDRAWN = "withdrawn"
    DERIVED = "of a model or an identity"


_UNCOUNTED = (_Place.EXPLORATORY, _Place.WITHDRAWN, _Place.DERIVED)


def scoreboard(
    records: Sequence[Record],
    width: int = 80,
    *,
    unicode: bool = True,
    unmeasured: Collection[str] = (),
    credences: Iterable[Credence] = (),
    overall: Mapping[str, float] = _NONE,
    toll: Iterable[str] = (),
) -> tuple[list[str], list[str]]:
    """Return the lines above the verdicts and those below, none wider than ``width``.

    Above: how many are registered, judged, pending, and what is neither, which adds up. Below: what the
    counts leave out or rest on.

    Args:
        records: Of all predictions shown.
        width: Of the text, in characters.
        unicode: Whether more than ASCII can be shown.
        unmeasured: Ids of predictions whose basis is a model or an identity: no hit for anybody.
        credences: Of the confirmatory measured claims that were judged.
        overall: Confidence by id, where a verdict was given at one of several looks that share the error.
        toll: What was lost and spent, in phrases.
    """
    text = str if unicode else ascii_text
    measured = [record for record in records if record.id not in unmeasured]
    places = Counter(_place(record, is_measured=record.id not in unmeasured) for record in records)
    above = _ruled(" · ".join(_counts(records, measured, places)), width)
    notes = [
        *_notes(records, places),
        *_wrong(measured, overall),
        *_calibration(credences),
        *toll,
    ]
    below = wrapped(" · ".join(notes), width)
    return [text(line) for line in above], [text(line) for line in below]


def _counts(records: Sequence[Record], measured: Sequence[Record], places: Counter[_Place]) -> list[str]:
    counted = [record for record in measured if _is_counted(record)]
    verdicts = Counter(str(record.verdict) for record in counted)
    refuted = {record.id for record in counted if record.verdict is Verdict.REFUTED}
    amended = [record for record in records if was_refuted(record) and record.id not in refuted]
    verdicts["refuted"] += len(amended)
    withdrawn = sum(counts_as_refuted(record) for record in (*counted, *amended))
    of_each = {name: f"{verdicts[name]} {name}" for name in _VERDICTS}
    beside = [f"{withdrawn} withdrawn"] if withdrawn else []
    beside += [f"{len(amended)} amended"] if amended else []
    of_each["refuted"] += f" ({', '.join(beside)})" if beside else ""
    unregistered, uncounted = places[_Place.UNREGISTERED], sum(places[one] for one in _UNCOUNTED)
    return [
        f"{places.total() - unregistered} registered",
        f"{places[_Place.JUDGED]} judged",
        *of_each.values(),
        f"{places[_Place.PENDING]} pending",
        *([f"{uncounted} not counted"] if uncounted else []),
        *([f"{unregistered} not registered"] if unregistered else []),
    ]


def _place(record: Record, *, is_measured: bool) -> _Place:
    """Where a record is counted: in one place, so that all of them add up to what is registered."""
    if record.order == "unregistered" and record.status != "withdrawn":
        return _Place.UNREGISTERED
    if (is_measured and _is_counted(record)) or was_refuted(record):
        return _Place.JUDGED
    if record.status == "withdrawn":
        return _Place.WITHDRAWN
    if record.status == "pending":
        return _Place.PENDING
    return _Place.EXPLORATORY if is_measured else _Place.DERIVED


def _is_counted(record: Record) -> bool:
    return record.standing != "exploratory" and record.verdict is not None and _has_verdict(record)


def _has_verdict(record: Record) -> bool:
    """Whether the verdict of now counts: of what is withdrawn a refutation does."""
    return record.status != "withdrawn" or record.verdict is Verdict.REFUTED


def _stands(record: Record) -> bool:
    """Whether a record is of what stands: one that is withdrawn is where it was refuted, and only there."""
    return record.status != "withdrawn" or counts_as_refuted(record)


def _notes(records: Sequence[Record], places: Counter[_Place]) -> list[str]:
    standing = [record for record in records if _stands(record)]
    standings = Counter(record.standing for record in standing)
    imported = sum("imported" in record.flags for record in standing)
    notes = [f"{standings['confirmatory']} of {len(standing)} confirmatory"]
    notes += [f"{places[one]} {one}, not counted" for one in _UNCOUNTED if places[one]]
    notes += [f"{imported} imported"] if imported else []
    return notes


def _calibration(credences: Iterable[Credence]) -> list[str]:
    """The Brier score, and beside it the share that it says nothing of."""
    score = calibration(credences)
    if score.brier is None:
        return []
    share = score.inconclusive / (score.decided + score.inconclusive)
    of = f"{score.decided} credence{'s' * (score.decided != 1)}"
    return [f"Brier score {score.brier:.2f} of {of}, {100 * share:.0f} % inconclusive"]


def _wrong(records: Sequence[Record], overall: Mapping[str, float]) -> list[str]:
    """Each verdict errs at half of what its interval, or all its looks, leave out: the sum is expected."""
    levels = [
        overall.get(record.id, record.confidence)
        for record in records
        if record.standing != "exploratory" and record.status == "judged" and record.confidence is not None
    ]
    expected = sum((1 - level) / 2 for level in levels if level is not None)
    return [f"about {expected:.2g} wrong by chance"] if expected else []


def _ruled(text: str, width: int) -> Iterator[str]:
    """Yield ``text`` at the right end of a rule; wrapped, where it is too long."""
    *above, last = wrapped(text, width)
    yield from above
    yield last if len(last) + 2 > width else f"{'-' * (width - len(last) - 1)} {last}"
