from __future__ import annotations

import pytest
from study_texts import load, predicted

from pytest_prereg.registry.supported import not_yet

EXPERIMENT = '[study]\nid = "s"\n[experiments.e]\nmetrics = { t = "s" }\n'


def told(text: str) -> list[str]:
    return [str(problem).split(": ", 1)[1] for problem in not_yet(load(text))]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('data = ["a.csv"]', '"data" of what is fed by import'),
        ('subject = ["src/**"]', '"subject" of what is fed by import'),
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


def test_a_server_that_outlives_a_repeat_is_refused_for_what_it_would_show() -> None:
    head = EXPERIMENT.partition("metrics")[0] + 'fixture = "reward_barrier"\nrepeats = 3\n'
    assert told(head + 'service = { command = ["serve", "{port}"] }\n') == []
    (message,) = told(head + 'service = { command = ["serve", "{port}"], scope = "series" }\n')
    assert message.startswith('PR024: experiment "e": with scope = "series" all repeats talk to one server')
    assert "n = 1" in message


def test_files_of_what_is_run_here_are_a_feature() -> None:
    keys = 'fixture = "reward_barrier"\nrepeats = 3\ndata = ["a.csv"]\nsubject = ["src/**"]\n'
    assert told(EXPERIMENT.partition("metrics")[0] + keys) == []


def test_a_command_with_what_is_read_of_it_is_a_feature() -> None:
    read = 'read = { file = "r.json", format = "json" }\n'
    text = EXPERIMENT + 'command = ["ls", "{x}"]\nrepeats = 3\narms.a = { x = 1 }\n' + read
    assert load(text).experiments["e"].kind == "command"
    assert told(text) == []


@pytest.mark.parametrize(
    "line",
    [
        "sweep = { cols = [1, 2] }",
        "repeats = { looks = [5, 10] }",
        'repeats = { max = 30, stopping = "anytime" }',
        "bounds = { t = [0, 1] }",
    ],
)
def test_sweeps_stopping_rules_and_bounds_can_be_registered(line: str) -> None:
    assert told(EXPERIMENT + line + "\n") == []


def test_registrations_in_a_pull_request_of_their_own_can_be_asked_for() -> None:
    assert told(predicted().replace('id = "s"', 'id = "s"\nregistration = "separate"')) == []


def test_a_family_calibration_a_basis_and_what_must_come_first_are_taken() -> None:
    text = predicted(basis="model").replace('id = "s"', 'id = "s"\nfamily = "holm"')
    table = predicted(requires=["p"], follows="p").split("\n\n")[-1].replace("predictions.p", "predictions.q")
    text += table + '[instruments.clock]\ncalibrated-by = ["p"]\n'
    assert told(text) == []


def test_a_price_of_what_nothing_runs_on_is_no_price() -> None:
    head, rest = EXPERIMENT.split("[experiments", 1)
    assert told(f"{head}prices = {{ local = 0.5 }}\n[experiments{rest}") == []
    assert told(f"{head}prices = {{ modal = 0.5 }}\n[experiments{rest}") == []
    (message,) = told(f"{head}prices = {{ locl = 0.5 }}\n[experiments{rest}")
    assert 'PR007: study "prices": no executor is called "locl"; did you mean "local"?' in message
