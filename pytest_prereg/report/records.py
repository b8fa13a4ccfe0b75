"""Verdict records: what ``--prereg-json`` writes, one :class:`Record` for each prediction.

The names and types are public. ``python -m pytest_prereg.report.records`` writes ``records.schema.json``.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from pytest_prereg.audit.remarks import WAS_REFUTED
from pytest_prereg.judge.model import Judgement, Reason, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_prereg.registry.lock import LockEntry

SCHEMA_PATH = Path(__file__).parents[1] / "records.schema.json"

Standing = Literal["confirmatory", "replication", "exploratory"]
Order = Literal[
    "after-evidence",
    "mismatch",
    "unregistered",
    "simultaneous",
    "unverifiable",
    "witnessed",
    "registered-one-side",
    "registered",
]


class Record(msgspec.Struct, kw_only=True, frozen=True):
    """One prediction with its verdict, or without one as long as it is pending. Numbers are in ``unit``."""

    id: str
    kind: Literal["claim", "guard"]
    status: Literal["judged", "pending", "withdrawn"]
    verdict: Verdict | None
    reason: Reason | None
    """Why it is inconclusive."""
    standing: Standing
    order: Order
    """What the history says of registration and evidence."""
    estimate: float | None
    interval: tuple[float | None, float | None] | None
    """An infinite side is ``None``; ``None`` altogether where there is no interval."""
    confidence: float | None
    """Level that the method achieves."""
    method: str | None
    statistic: str | None
    """``None`` where the prediction is withdrawn and no longer in the study."""
    unit: str | None
    n: int
    """Independent repeats that the interval rests on; the smaller arm's."""
    planned: int | None
    excluded: int
    series: int | None
    sessions: tuple[str, ...]
    """Names of the evidence files."""
    recorded: Verdict | None
    """The verdict in the lock."""
    changed: bool
    """Whether the recorded verdict is another one."""
    flags: tuple[str, ...]
    cost_usd: float | None
    repeats: tuple[str, ...]
    """Ids of the repeats that the numbers rest on."""


class Records(msgspec.Struct, kw_only=True, frozen=True):
    """The whole file."""

    version: Literal[1]
    predictions: tuple[Record, ...]


def judged_record(
    judgement: Judgement,
    *,
    kind: Literal["claim", "guard"],
    standing: Standing,
    order: Order,
    unit: str,
    series: int,
    sessions: tuple[str, ...],
    recorded: Verdict | None,
    cost_usd: float | None = None,
) -> Record:
    """Return the record of a judged prediction."""
    return Record(
        id=judgement.prediction,
        kind=kind,
        status="judged",
        verdict=judgement.verdict,
        reason=judgement.reason,
        standing=standing,
        order=order,
        estimate=_finite(judgement.estimate),
        interval=judgement.interval and (_finite(judgement.interval[0]), _finite(judgement.interval[1])),
        confidence=judgement.confidence,
        method=judgement.method,
        statistic=judgement.statistic,
        unit=unit,
        n=judgement.n,
        planned=judgement.planned,
        excluded=judgement.excluded,
        series=series,
        sessions=sessions,
        recorded=recorded,
        changed=recorded is not None and recorded != judgement.verdict,
        flags=judgement.flags,
        cost_usd=cost_usd,
        repeats=judgement.repeats,
    )


def counts_as_refuted(record: Record) -> bool:
    """Whether a withdrawn prediction stays counted: a refutation does, whatever becomes of its claim."""
    if record.status != "withdrawn":
        return False
    is_refuted = record.verdict is Verdict.REFUTED and record.standing != "exploratory"
    return is_refuted or was_refuted(record)


def was_refuted(record: Record) -> bool:
    """Whether it was refuted before it was amended: that stays counted, whatever is claimed since."""
    return WAS_REFUTED in record.flags


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def pending_record(
    prediction: str,
    *,
    kind: Literal["claim", "guard"],
    standing: Standing,
    order: Order,
    statistic: str,
    unit: str | None,
    planned: int | None,
    series: int | None = None,
    sessions: tuple[str, ...] = (),
    flags: tuple[str, ...] = (),
) -> Record:
    """Return the record of a prediction that is not judged yet: n and interval stay sealed."""
    return Record(
        id=prediction,
        kind=kind,
        status="pending",
        verdict=None,
        reason=None,
        standing=standing,
        order=order,
        estimate=None,
        interval=None,
        confidence=None,
        method=None,
        statistic=statistic,
        unit=unit,
        n=0,
        planned=planned,
        excluded=0,
        series=series,
        sessions=sessions,
        recorded=None,
        changed=False,
        flags=flags,
        cost_usd=None,
        repeats=(),
    )


def withdrawn(record: Record) -> Record:
    """Return the record of a prediction that is withdrawn: its verdict is never another one."""
    return msgspec.structs.replace(record, status="withdrawn", changed=False)


def tombstone_record(
    prediction: str,
    entry: LockEntry,
    *,
    kind: Literal["claim", "guard"],
    standing: Standing,
    order: Order,
    sessions: tuple[str, ...],
) -> Record:
    """Return the record of a prediction that is withdrawn and no longer in the study: what its lock keeps."""
    verdict = Verdict(entry.verdict) if entry.verdict is not None else None
    return Record(
        id=prediction,
        kind=kind,
        status="withdrawn",
        verdict=verdict,
        reason=Reason(entry.reason) if entry.reason is not None else None,
        standing=standing,
        order=order,
        estimate=_finite(entry.estimate),
        interval=entry.interval and (_finite(entry.interval[0]), _finite(entry.interval[1])),
        confidence=None,
        method=entry.method,
        statistic=None,
        unit=entry.unit,
        n=entry.n or 0,
        planned=None,
        excluded=0,
        series=entry.series,
        sessions=sessions,
        recorded=verdict,
        changed=False,
        flags=(WAS_REFUTED,) if entry.was_refuted else (),
        cost_usd=None,
        repeats=(),
    )


def records_json(records: Iterable[Record]) -> bytes:
    """Return the records as the JSON of ``--prereg-json``."""
    report = Records(version=1, predictions=tuple(records))
    return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"


def schema() -> dict[str, Any]:
    """Return the JSON Schema of :func:`records_json`."""
    (reference,), components = msgspec.json.schema_components([Records], ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Verdict records of pytest-prereg",
        **reference,
        "$defs": components,
    }


def schema_bytes() -> bytes:
    """Return what ``records.schema.json`` holds."""
    return msgspec.json.format(msgspec.json.encode(schema()), indent=2) + b"\n"


if __name__ == "__main__":
    SCHEMA_PATH.write_bytes(schema_bytes())
