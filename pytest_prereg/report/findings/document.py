"""Findings as JSON: what ``--format json`` writes. The names and types are public.

``python -m pytest_prereg.report.findings.document`` writes ``audit.schema.json``.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import msgspec

from pytest_prereg.audit.audited import Status
from pytest_prereg.audit.finding import Level
from pytest_prereg.report.records import Order, Standing

if TYPE_CHECKING:
    from pytest_prereg.audit.audited import Audited, Recorded
    from pytest_prereg.audit.finding import Finding
    from pytest_prereg.report.findings.reported import Reported

SCHEMA_PATH = Path(__file__).parents[2] / "audit.schema.json"


class Verdict(msgspec.Struct, kw_only=True, frozen=True):
    """A verdict as a lock records it. Numbers are in ``unit``."""

    verdict: str
    """Supported, refuted or inconclusive, unless somebody wrote something else into the lock."""
    reason: str | None
    """Why it is inconclusive."""
    estimate: float | None
    interval: tuple[float | None, float | None] | None
    """An infinite side is ``None``."""
    unit: str
    n: int | None
    series: int | None


class Prediction(msgspec.Struct, kw_only=True, frozen=True):
    """Where a prediction stands."""

    id: str
    status: Status
    """Whether it is in the committed lock, was withdrawn there, or is gone from the study without that. What
    is withdrawn counts no more, but as refuted if it was; its order and standing are those that it had."""
    order: Order | None
    """``None`` for one that is no longer in the study, as is its standing."""
    standing: Standing | None
    base: Verdict | None
    """What was recorded before: at HEAD for an audit, at the base of a pull request for the gate."""
    head: Verdict | None
    """What is recorded now."""
    wants: str
    """The region that it predicts, for people: ``≥ 1.25``; empty where its text is not there."""
    registered: str | None
    """The commit of the registration that its evidence was taken for; without evidence, of it as it is."""
    measured: str | None
    """The commit by which the last of the evidence that decides it came in."""
    is_at_base: bool | None
    """Whether it was registered at the base of a pull request just as it is now; ``None`` for an audit."""
    flags: tuple[str, ...]
    """What else is to be known of its verdict, a word each."""


class Found(msgspec.Struct, kw_only=True, frozen=True):
    """A finding."""

    code: str
    id: str
    """Of the prediction or the experiment; empty where it is about the study."""
    level: Level
    message: str
    path: str | None
    """As it is seen from the current folder."""
    line: int | None
    commit: str | None
    about: str
    """What exactly it is about: an acknowledgement is of this alone."""
    acknowledged: str | None
    """The reason that the lock gives for a review."""


class Document(msgspec.Struct, kw_only=True, frozen=True):
    """The whole output."""

    version: Literal[1]
    predictions: tuple[Prediction, ...]
    findings: tuple[Found, ...]
    """The weightiest first."""
    unproven: tuple[str, ...]
    """What no history can prove, a sentence each."""
    exit: int
    """0 fine, 1 errors or open reviews, 4 it could not be told."""


def document_json(reported: Reported) -> bytes:
    """Return the findings as the JSON of ``--format json``."""
    document = Document(
        version=1,
        predictions=tuple(map(_prediction, reported.predictions)),
        findings=tuple(map(_found, reported.findings)),
        unproven=reported.unproven,
        exit=reported.exit,
    )
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def _prediction(one: Audited) -> Prediction:
    return Prediction(
        id=one.id,
        status=one.status,
        order=cast("Order | None", one.order),
        standing=one.standing,
        base=_verdict(one.base),
        head=_verdict(one.head),
        wants=one.wants,
        registered=one.registered,
        measured=one.measured,
        is_at_base=one.is_at_base,
        flags=one.flags,
    )


def _verdict(recorded: Recorded | None) -> Verdict | None:
    if recorded is None:
        return None
    known = msgspec.structs.asdict(recorded) | {"estimate": _finite(recorded.estimate)}
    interval = recorded.interval and tuple(map(_finite, recorded.interval))
    return Verdict(**known | {"interval": interval})


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _found(finding: Finding) -> Found:
    return Found(**{name: getattr(finding, name) for name in Found.__struct_fields__})


def schema() -> dict[str, Any]:
    """Return the JSON Schema of :func:`document_json`."""
    (reference,), components = msgspec.json.schema_components([Document], ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Findings of pytest-prereg",
        **reference,
        "$defs": components,
    }


def schema_bytes() -> bytes:
    """Return what ``audit.schema.json`` holds."""
    return msgspec.json.format(msgspec.json.encode(schema()), indent=2) + b"\n"


if __name__ == "__main__":
    SCHEMA_PATH.write_bytes(schema_bytes())
