from __future__ import annotations

import pytest
from study_texts import load, predicted

from pytest_prereg.registry.judging import thresholds
from pytest_prereg.registry.regions import describe


@pytest.mark.parametrize(
    ("keys", "unit", "shown"),
    [
        ({}, "1", ("≤ 0.25", "≥ 0.5")),
        ({"predicts": "<= 500 ms", "falsifier": ">= 1 s"}, "ms", ("≤ 500 ms", "≥ 1000 ms")),
        ({"predicts": "<= 500 ms", "falsifier": ">= 1 s"}, "s", ("≤ 0.5 s", "≥ 1 s")),
        ({"predicts": "<= 1", "falsifier": "[2, 3]", "unit": "min"}, "min", ("≤ 1 min", "[2, 3] min")),
        ({"predicts": "<= 1 s", "falsifier": "otherwise", "unit": "ms"}, "ms", ("≤ 1000 ms", "> 1000 ms")),
        (
            {"quantity": "t_gen / t_train", "predicts": "<= 50 %", "falsifier": "otherwise"},
            "1",
            ("≤ 0.5", "> 0.5"),
        ),
        ({"predicts": "<= 0", "falsifier": ">= 3 ms"}, "ms", ("≤ 0 ms", "≥ 3 ms")),
    ],
)
def test_both_regions_are_given_in_the_registered_unit(
    keys: dict[str, object], unit: str, shown: tuple[str, str]
) -> None:
    prediction = load(predicted(**({"quantity": "t_gen"} | keys))).predictions["p"]
    predicts, falsifier = thresholds(prediction, unit)
    assert (describe(predicts), describe(falsifier)) == shown
