"""Of what is wrong with what is run, that is told and not what follows from it; and what was meant is written out."""

from __future__ import annotations

import pytest
from study_texts import refusals

TEXT = """\
[study]
id = "s"
[experiments.e]
repeats = 5
LINES
[predictions.p]
claim = "c"
experiment = "e"
quantity = "QUANTITY"
predicts = "<= 1 s"
falsifier = ">= 2 s"
"""
READS = '\nmetrics = { t = "s" }'
SERVED = 'command = ["run", "{port}"]\n'


def refused(lines: str) -> list[str]:
    quantity = "t" if lines.endswith(READS) else "wall"
    return refusals(TEXT.replace("LINES", lines).replace("QUANTITY", quantity))


@pytest.mark.parametrize(
    ("lines", "wrong", "meant"),
    [
        ('command = "sleep 1"', '"command" is "sleep 1"', 'command = ["sleep", "1"]'),
        (
            'command = "sleep {n}"\nparams = { n = 1 }',
            '"command" is "sleep {n}"',
            'command = ["sleep", "{n}"]',
        ),
        ('command = "a | b"', '"command" is "a | b"', 'command = ["sh", "-c", "a | b"]'),
        ('command = ["sleep", 1.5]', "a list with 1.5, which is no text", 'command = ["sleep", "1.5"]'),
        (f'command = "a b"\nread = {{ file = "r", format = "csv" }}{READS}', "", 'command = ["a", "b"]'),
        (
            f'command = ["run"]\nread = "r.json"{READS}',
            '"read" is "r.json"',
            'read = { file = "r.json", format = "json" }',
        ),
        (
            f'command = ["run"]\nread = ["r.csv"]{READS}',
            '"read" is a list',
            'read = { file = "r.csv", format = "csv" }',
        ),
        (
            f'{SERVED}service = {{ command = "serve {{port}}" }}',
            "must be a list of text",
            'command = ["serve", "{port}"]',
        ),
        (
            f'{SERVED}service = ["serve", "{{port}}"]',
            '"service" is a list',
            'service = { command = ["serve", "{port}"] }',
        ),
        ('command = ["run"]\nbuild = "make all"', '"build" is "make all"', 'build = ["make", "all"]'),
    ],
)  # fmt: skip
def test_a_value_of_the_wrong_kind_is_one_error_with_what_was_meant(
    lines: str, wrong: str, meant: str
) -> None:
    (told,) = refused(lines)
    assert "PR005" in told
    assert wrong in told
    assert told.splitlines()[1] == f"    Write {meant}"


@pytest.mark.parametrize("value", ["3", "[]", '["a", { b = 1 }]', '"\'"', '""'])
def test_nothing_is_made_up_where_nobody_can_tell_what_was_meant(value: str) -> None:
    (told,) = refused(f"command = {value}")
    assert "Write command" not in told


@pytest.mark.parametrize(
    ("lines", "wrong"),
    [
        ('command = ["run", "{dely}"]\nparams = { delay = 1 }', '"command" has unknown "{dely}"'),
        (
            f'{SERVED}params = {{ delay = 1 }}\nservice = {{ command = ["serve", "{{port}}", "{{dely}}"] }}',
            '"command" of "service" has unknown "{dely}"; did you mean "delay"?',
        ),
        ('command = ["run", "{delay}"]\nparams = "delay"', '"params" is "delay"'),
        ('command = ["run", "{delay}"]\nparms = { delay = 1 }', 'unknown key "parms"'),
        ('comand = ["run"]', 'unknown key "comand"; did you mean "command"?'),
        ('comand = "run"', 'unknown key "comand"; did you mean "command"?'),
        (f'{SERVED}service = {{ comand = ["serve", "{{port}}"] }}', 'unknown key "comand"'),
        (f'command = ["run"]\nreed = {{ file = "r", format = "json" }}{READS}', 'unknown key "reed"'),
    ],
)
def test_a_misspelling_is_one_error(lines: str, wrong: str) -> None:
    (told,) = refused(lines)
    assert wrong in told
