from __future__ import annotations

import pytest

from pytest_prereg.judge import question
from pytest_prereg.judge.question import asked
from pytest_prereg.registry.regions import parse_region


@pytest.fixture
def made(study):
    return study(predicts="<= 2", falsifier="> 2").extend(1.0, 1.1, 1.2)


def ask_again(made, prediction, experiment, **more):
    terms = {"predicts": prediction.predicts, "falsifier": prediction.falsifier, "scale": 1.0}
    return asked(prediction, experiment, **{**terms, "constants": made.constants, **more})


def test_the_same_is_resolved_once(made):
    prediction, experiment = made.prediction, made.experiment
    first = ask_again(made, prediction, experiment)
    assert ask_again(made, prediction, experiment) is first


@pytest.mark.parametrize(
    "other",
    [
        {"predicts": parse_region("<= 1")},
        {"falsifier": parse_region("> 3")},
        {"scale": 1000.0},
        {"constants": {"N": 2.0}},
        {"confidence": 0.99},
    ],
    ids=lambda other: next(iter(other)),
)
def test_whatever_differs_makes_another_question(made, other):
    prediction, experiment = made.prediction, made.experiment
    first = ask_again(made, prediction, experiment)
    second = ask_again(made, prediction, experiment, **other)
    ((name, value),) = other.items()
    assert getattr(second, name) == value != getattr(first, name)
    again = ask_again(made, prediction, experiment)
    assert getattr(again, name) == getattr(first, name)


def test_so_does_another_experiment_or_prediction_that_looks_the_same(made):
    prediction, experiment = made.prediction, made.experiment
    first = ask_again(made, prediction, experiment)
    assert ask_again(made, prediction, made.experiment) is not first
    assert ask_again(made, made.prediction, experiment) is not first


def test_what_is_kept_has_an_end(made, monkeypatch):
    monkeypatch.setattr(question, "_MOST_KEPT", 3)
    monkeypatch.setattr(question, "_KEPT", {})
    experiment = made.experiment
    predictions = [made.prediction for _ in range(8)]
    questions = [ask_again(made, one, experiment) for one in predictions]
    assert len(question._KEPT) <= 3
    assert [ask_again(made, one, experiment) for one in predictions] == questions
