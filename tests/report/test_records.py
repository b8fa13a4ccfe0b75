"""Records are the public JSON of verdicts; its schema is shipped and current."""

from __future__ import annotations

import json
import math

import jsonschema
import msgspec
import pytest

from pytest_prereg.judge.model import Judgement, Reason, Verdict
from pytest_prereg.report.records import (
    SCHEMA_PATH,
    Record,
    judged_record,
    pending_record,
    records_json,
    schema_bytes,
)

FIELDS = list(Record.__struct_fields__)
PUBLIC = (
    "id kind status verdict reason standing order estimate interval confidence method statistic unit n planned "
    "excluded series sessions recorded changed flags cost_usd repeats"
)


def judgement(**changes):
    base = Judgement(
        prediction="training-is-free",
        verdict=Verdict.REFUTED,
        reason=None,
        detail=None,
        estimate=0.98,
        interval=(0.95, 1.01),
        confidence=0.95,
        method="student-t",
        statistic="mean",
        n=7,
        planned=7,
        excluded=0,
        flags=("imported",),
        repeats=("gate-a/1/1",),
    )
    return msgspec.structs.replace(base, **changes)


def judged(recorded=None, **changes):
    return judged_record(
        judgement(**changes),
        kind="claim",
        standing="confirmatory",
        order="registered",
        unit="1",
        series=1,
        sessions=("20260101T000000Z-0a1b2c3d.jsonl",),
        recorded=recorded,
    )


def pending():
    return pending_record(
        "later",
        kind="claim",
        standing="confirmatory",
        order="registered",
        statistic="mean",
        unit="s",
        planned=7,
    )


def test_the_shipped_schema_is_current():
    assert SCHEMA_PATH.read_bytes() == schema_bytes(), "run python -m pytest_prereg.report.records"


def test_the_fields_are_the_public_ones():
    assert " ".join(FIELDS) == PUBLIC


def test_judged_and_pending_records_follow_the_schema():
    document = json.loads(records_json([judged(), pending()]))
    jsonschema.validate(document, json.loads(SCHEMA_PATH.read_text()))
    assert document["version"] == 1
    assert [list(record) for record in document["predictions"]] == [FIELDS, FIELDS]


def test_the_schema_refuses_another_verdict_and_a_missing_field():
    schema = json.loads(SCHEMA_PATH.read_text())
    for spoil in ({"verdict": "true"}, {"interval": [1]}, {"order": "first"}):
        document = json.loads(records_json([judged()]))
        document["predictions"][0].update(spoil)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(document, schema)
    document = json.loads(records_json([judged()]))
    del document["predictions"][0]["n"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema)


def test_an_infinite_side_is_null():
    record = judged(verdict=Verdict.INCONCLUSIVE, reason=Reason.N_TOO_SMALL, interval=(-math.inf, 41.0))
    assert json.loads(records_json([record]))["predictions"][0]["interval"] == [None, 41.0]


def test_a_missing_interval_is_null_as_a_whole():
    assert json.loads(records_json([judged(interval=None)]))["predictions"][0]["interval"] is None


def test_a_verdict_has_changed_when_the_lock_has_another_one():
    assert judged(recorded=Verdict.SUPPORTED).changed
    assert not judged(recorded=Verdict.REFUTED).changed
    assert not judged().changed
