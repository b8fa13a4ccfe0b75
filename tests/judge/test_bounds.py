from __future__ import annotations

import math

import pytest

from pytest_prereg.judge.bounds import impossible
from pytest_prereg.judge.model import Reason
from pytest_prereg.judge.question import ask

BOUNDS = {"t": (0.5, 2.0)}


def seen(made):
    prediction = made.prediction
    question = ask(
        prediction,
        made.experiment,
        predicts=prediction.predicts,
        falsifier=prediction.falsifier,
        scale=1.0,
        constants={},
    )
    return impossible(question, made.repeats)


def test_readings_within_bounds_are_possible_the_ends_among_them(study):
    assert seen(study(bounds=BOUNDS).extend(0.5, 1.0, 2.0)) is None


@pytest.mark.parametrize(("value", "shown"), [(0.4, "0.4"), (2.5, "2.5"), (math.nan, "nan")])
def test_one_outside_names_repeat_metric_value_and_bounds(study, value, shown):
    reason, detail = seen(study(bounds=BOUNDS).extend(1.0, value, 1.0))
    assert (reason, detail) == (Reason.INSTRUMENT, f"repeat e/1/2 has t = {shown}, outside [0.5, 2]")


def test_any_sample_counts(study):
    made = study(quantity="mean(t)", bounds=BOUNDS).extend([1.0, 1.1], [1.0, 3.0])
    assert seen(made)[1] == "repeat e/1/2 has t = 3, outside [0.5, 2]"


def test_a_repeat_that_was_set_aside_still_shows_what_the_instrument_does(study):
    assert seen(study(bounds=BOUNDS).extend(1.0, 1.1).add(3.0, outcome="excluded")) is not None


def test_metrics_without_bounds_and_repeats_without_values_are_possible(study):
    made = study(bounds=BOUNDS, metrics={"t": {"unit": "s"}, "u": {"unit": "s"}})
    assert seen(made.add({"t": 1.0, "u": 99.0}).add(outcome="timeout")) is None


def test_bounds_of_a_metric_that_the_quantity_does_not_use_are_another_predictions(study):
    made = study(quantity="u", bounds=BOUNDS, metrics={"t": {"unit": "s"}, "u": {"unit": "s"}})
    assert seen(made.add({"t": 99.0, "u": 1.0})) is None


def test_without_bounds_all_is_possible(study):
    assert seen(study().extend(1e9)) is None
