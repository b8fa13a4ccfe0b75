from __future__ import annotations

import pytest
from study_texts import load, predicted, refusals

from pytest_prereg.registry.supported import not_yet

EXPERIMENT = '[study]\nid = "s"\n[experiments.e]\nmetrics = { t = "s" }\n'


def told(text: str) -> list[str]:
    return [str(problem).split(": ", 1)[1] for problem in not_yet(load(text))]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("sweep = { cols = [1, 2] }", '"sweep"'),
        ('service = { command = ["serve"] }', '"service"'),
        ('build = ["make"]', '"build"'),
        ('data = ["a.csv"]', '"data"'),
        ('subject = ["src/**"]', '"subject"'),
        ("repeats = { looks = [5, 10] }", '"repeats" other than a number'),
        ('repeats = { max = 30, stopping = "anytime" }', '"repeats" other than a number'),
        ("warmup = 1", '"warmup"'),
        ('exclude = ["t > 3"]', '"exclude"'),
        ("max-excluded = 1", '"max-excluded"'),
        ("bounds = { t = [0, 1] }", '"bounds"'),
        ('executor = "modal"', 'executor "modal"'),
        ("resources = { gpu = 1 }", '"resources"'),
        ('conditions = { gpu = "H200" }', '"conditions"'),
        ("max-parallel = 2", '"max-parallel"'),
        ('cache = "fresh"', 'cache = "fresh"'),
        ('arms.a = { ref = "main" }', '"ref"'),
        ("arms.a = { resources = { gpu = 2 } }", '"resources"'),
    ],
)
def test_a_key_of_an_experiment_without_its_feature_loads_and_is_refused_by_lock(
    line: str, what: str
) -> None:
    (message,) = told(EXPERIMENT + line + "\n")
    assert message.startswith('PR008: experiment "e"')
    assert f"{what} is not supported yet" in message


def test_defaults_that_are_written_out_are_no_feature() -> None:
    text = EXPERIMENT + 'repeats = 3\nwarmup = 0\nmax-parallel = 1\nexecutor = "local"\ncache = "shared"\n'
    assert told(text) == []


def test_a_command_loads_with_its_arms_and_is_refused_by_lock() -> None:
    text = EXPERIMENT + 'command = ["ls", "{x}"]\nrepeats = 3\narms.a = { x = 1 }\n'
    assert load(text).experiments["e"].kind == "command"
    assert told(text) == [
        'PR008: experiment "e": "command" is not supported yet, so nothing that has it can be registered'
    ]


@pytest.mark.parametrize(
    ("keys", "what"),
    [
        ({"kind": "guard"}, 'kind = "guard"'),
        ({"kind": "guard", "on_inconclusive": "pass"}, '"on-inconclusive"'),
        ({"requires": ["q"]}, '"requires"'),
        ({"follows": "q"}, '"follows"'),
    ],
)
def test_a_prediction_that_can_be_held_is_refused_by_lock(keys: dict[str, object], what: str) -> None:
    text = predicted(**keys) + predicted().split("\n\n")[-1].replace("predictions.p", "predictions.q")
    assert any(f"{what} is not supported yet" in message for message in told(text))


@pytest.mark.parametrize(
    ("keys", "what"),
    [
        ({"basis": "model"}, 'basis = "model"'),
        ({"formula": "x", "quantity": None}, '"formula"'),
        (
            {"all": ["a", "b"], "quantity": None, "experiment": None, "predicts": None, "falsifier": None},
            '"all"',
        ),
        ({"successes": "a", "trials": "b", "quantity": None}, '"successes"'),
        ({"numerator": "a", "denominator": "b", "quantity": None}, '"numerator"'),
        ({"for_each": "cols"}, '"for-each"'),
        ({"over": "cols"}, '"over"'),
        ({"contrast": "plateau(a, b, c)"}, 'contrast "plateau(a, b, c)"'),
        ({"contrast": "increasing(a, b)", "quantity": "nonsense"}, "increasing"),
        ({"statistic": "quantile(0.99)"}, 'statistic "quantile"'),
        ({"statistic": "sd"}, 'statistic "sd"'),
        (
            {"experiment": "two", "quantity": "t", "contrast": "new / old", "statistic": "mean"},
            'statistic "mean" of a / b',
        ),
    ],
)
def test_a_prediction_that_nothing_can_judge_has_that_as_its_only_complaint(
    keys: dict[str, object], what: str
) -> None:
    (message,) = refusals(predicted(**keys))
    assert message.split(": ", 1)[1].startswith(
        f'PR008: prediction "p": {what}' if what[0] != "i" else "PR008"
    )
    assert f"{what}" in message
    assert "is not supported yet" in message


def test_a_family_a_separate_registration_and_calibration_are_refused_by_lock() -> None:
    text = predicted().replace('id = "s"', 'id = "s"\nfamily = "holm"\nregistration = "separate"')
    text += '\n[instruments.clock]\ncalibrated-by = ["p"]\n[instruments.trusted]\ntrusted = "a reason"\n'
    assert [message.split(" is not")[0] for message in told(text)] == [
        'PR008: [study]: family = "holm"',
        'PR008: [study]: registration = "separate"',
        'PR008: instrument "clock": "calibrated-by"',
    ]
