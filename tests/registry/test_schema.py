from __future__ import annotations

import json
import tomllib

import jsonschema
import pytest
from study_texts import predicted, refusals

from pytest_prereg.registry.expectations import keys_of
from pytest_prereg.registry.schema import SCHEMA_FILE, rendered, schema
from pytest_prereg.registry.tables import ExperimentTable, PredictionTable

VALIDATOR = jsonschema.Draft202012Validator(json.loads(SCHEMA_FILE.read_text(encoding="utf-8")))


def test_the_shipped_schema_is_current() -> None:
    assert SCHEMA_FILE.read_text(encoding="utf-8") == rendered(), (
        "run python -m pytest_prereg.registry.schema"
    )
    VALIDATOR.check_schema(schema())


def test_the_schema_has_every_key_of_the_tables() -> None:
    for table in (ExperimentTable, PredictionTable):
        assert set(schema()["$defs"][table.__name__]["properties"]) == set(keys_of(table))


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"falsifer": "x"},
        {"cv": 0},
        {"kind": "gard"},
        {"tags": "x"},
        {"one_sided": "yes"},
        {"credence": 0.5},
    ],
)
def test_schema_and_loader_agree_on_keys_and_types(keys: dict[str, object]) -> None:
    text = predicted(**keys)
    assert VALIDATOR.is_valid(tomllib.loads(text)) is (refusals(text) == [])
