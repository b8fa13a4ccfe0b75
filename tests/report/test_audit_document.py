"""The JSON of an audit, which is public: exactly these keys, and a schema that is shipped and current."""

from __future__ import annotations

import json

import jsonschema
import pytest
from found_samples import EVERY, HOSTILE, finding, prediction, reported

from pytest_prereg.report.findings.document import SCHEMA_PATH, document_json, schema_bytes

VALIDATOR = jsonschema.Draft202012Validator(json.loads(SCHEMA_PATH.read_bytes()))


def document(*findings, **keys):
    made = json.loads(document_json(reported(*findings, **keys)))
    VALIDATOR.validate(made)
    return made


def test_the_shipped_schema_is_current():
    assert SCHEMA_PATH.read_bytes() == schema_bytes(), "run python -m pytest_prereg.report.findings.document"
    VALIDATOR.check_schema(json.loads(SCHEMA_PATH.read_bytes()))


def test_a_document_has_these_keys_and_no_others():
    made = document(*EVERY)
    assert list(made) == ["version", "predictions", "findings", "unproven", "exit"]
    assert list(made["predictions"][0]) == [
        *("id", "status", "order", "standing", "base", "head"),
        *("wants", "registered", "measured", "is_at_base", "flags"),
    ]
    assert list(made["predictions"][0]["head"]) == [
        "verdict",
        "reason",
        "estimate",
        "interval",
        "unit",
        "n",
        "series",
    ]
    assert list(made["findings"][0]) == [
        "code",
        "id",
        "level",
        "message",
        "path",
        "line",
        "commit",
        "about",
        "acknowledged",
    ]
    assert (made["version"], made["exit"], len(made["unproven"])) == (1, 1, 2)


def test_every_finding_is_there_in_full():
    made = document(*EVERY, finding(message=HOSTILE, about=HOSTILE))
    assert [one["code"] for one in made["findings"]].count("PR201") == 13
    assert [one["about"] for one in made["findings"] if one["message"] == HOSTILE] == [HOSTILE]


def test_an_infinite_side_is_null():
    assert document()["predictions"][0]["base"]["interval"] == [0.4, None]


def test_what_somebody_wrote_into_a_lock_by_hand_is_shown_all_the_same():
    assert (
        document(predictions=(prediction("a", verdict="great"),))["predictions"][0]["head"]["verdict"]
        == "great"
    )


def test_what_was_withdrawn_says_so_beside_the_standing_that_it_had():
    gone = prediction("a", verdict="refuted", status="withdrawn", withdrawal="a typo", is_counted=True)
    (stands,) = document(predictions=(gone,))["predictions"]
    assert (stands["status"], stands["standing"], stands["head"]["verdict"]) == (
        "withdrawn",
        "confirmatory",
        "refuted",
    )


@pytest.mark.parametrize("key", ["findings", "unproven", "exit"])
def test_the_schema_misses_what_is_missing(key):
    made = document(*EVERY)
    del made[key]
    assert not VALIDATOR.is_valid(made)
