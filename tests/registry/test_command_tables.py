"""A command that could not be run, or would not yield its metrics, is refused where it is written."""

from __future__ import annotations

import msgspec
import pytest
from study_texts import load, refusals

from pytest_prereg.registry.commands import BUILT_IN, commanded
from pytest_prereg.registry.sources import source_digest

TEXT = """\
[study]
id = "s"
[experiments.e]
repeats = 3
params = {{ {params} }}
{lines}
"""
READ = 'read = { file = "r.json", format = "json" }\nmetrics = { t = "s" }'


PARAMS = {"size": "8", "names": '["a", "b"]', "table": "{ x = 1 }"}


def text(lines: str) -> str:
    """A study with those of the parameters that these lines name."""
    named = (
        f"{name} = {value}" for name, value in PARAMS.items() if f"{{{name}}}" in lines.replace("{{", "")
    )
    return TEXT.format(lines=lines, params=", ".join(named))


def refused(lines: str) -> list[str]:
    return refusals(text(lines))


@pytest.mark.parametrize(
    "lines",
    [
        'command = ["run"]',
        'command = ["run", "{size}", "x={size}", "{names}", "{out}/a", "--port={port}"]',
        'command = ["run", \'{"a": {"b": 1}}\', "{{size}}", "{", "}", "{}"]',
        'command = ["sh", "-c", "a | b > c && d"]',
        'command = ["find", ".", "-exec", "ls", "{}", ";"]',
        'command = ["{names}"]',
        'command = ["run"]\n' + READ,
        'command = ["run"]\nread = { file = "-", format = "pyperf", select = "x" }\nmetrics = { t = "s" }',
        'command = ["run"]\nread = { file = "{size}/r.csv", format = "csv" }\nmetrics = { t = "s" }',
        'command = ["run"]\nmetrics = { exit_code = "1" }',
        'command = ["run"]\nmetrics = { wall = { unit = "s", resolution = 0.001 } }',
        'command = ["run", "{n}"]\narms = { a = { n = 1 }, b = { n = 2 } }',
        'command = ["run", "{n}"]\nsweep = { n = [1, 2] }',
        'command = ["run"]\narms = { a = { n = 1, env = { N = "1" } }, b = { n = 2, env = { N = "2" } } }',
        'command = ["run", "{port}"]\nservice = { command = ["serve", "{port}"] }',
    ],
)
def test_a_command_that_can_be_run_is_taken(lines: str) -> None:
    assert refused(lines) == []


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("command = []", '"command" names no program to run'),
        (
            'command = ["run", "{to}"]\narms = { a = { to = "{out}/x" } }',
            '"to" has "{out}" in "{out}/x", and nothing is filled in there',
        ),
        ('command = ["run"]\nenv = { TO = "{port}" }', '"TO" has "{port}" in "{port}", and nothing'),
        ('command = ["", "x"]', '"command" names no program to run'),
        ('command = ["{none}"]\narms = { a = { none = "" } }', "names no program"),
        ('command = ["run", "{sise}", "{size}"]', 'has unknown "{sise}"; did you mean "size"?'),
        ('command = ["run", "--x={names}"]', '"{names}", a list, within "--x={names}"; it must stand alone'),
        ('command = ["run", "{table}"]', '"{table}", which is a table'),
        ('command = ["run", "{n}"]\narms = { a = { n = 1 }, b = {} }', 'arm "b": "command" has unknown "{n}"'),
        ('command = ["run", "{out}"]\narms = { a = { out = 1 } }', 'may have "{out}", which is its own'),
        ('command = ["a", "|", "b"]', 'has the argument "|", which only a shell acts on'),
        ('command = ["a", "&&", "b"]', '["sh", "-c", "…"]'),
        ('command = ["a", ">", "b"]', 'the argument ">"'),
        ('command = ["{c}"]\narms = { a = { c = ["x", "|", "y"] } }', 'has the argument "|"'),
        ('command = ["a\\u0000"]', "has a NUL"),
        (
            'command = ["run", "{port}"]\nservice = { command = ["serve"], ready = "up" }',
            "the command of its service has not",
        ),
        ('command = ["run"]\npreload = ["torch"]', "nothing is imported for it"),
        ('command = ["run"]\nread = { file = " ", format = "json" }\nmetrics = { t = "s" }', '"file" " "'),
        (
            'command = ["run"]\nread = { file = "{x}.json", format = "json" }\nmetrics = { t = "s" }',
            '"file" has unknown "{x}"',
        ),
        (
            'command = ["run"]\nread = { file = "{names}", format = "json" }\nmetrics = { t = "s" }',
            "a list, within",
        ),
        ('command = ["run"]\nread = { file = "r", format = "csv" }', "declares no metric that is read"),
        ('command = ["run"]\nmetrics = { wal = "s" }', 'neither built in nor read from a file; did you mean "wall"?'),
        ('command = ["run"]\nmetrics = { loss = "nat" }', 'built in: "wall", "user", "system", "max_rss" and'),
        ('command = ["run"]\nmetrics = { wall = { unit = "s", from = "mean" } }', "is read from no file"),
        (
            'command = ["run"]\nmetrics = { wall = { unit = "s", instrument = "cuda-events" } }',
            'is read by wall-clock, not by "cuda-events"',
        ),
        ('command = ["run"]\narms = { a = { n = 1 }, b = { n = 2 } }', 'names no "{n}", so "n" changes nothing'),
    ],
)  # fmt: skip
def test_one_that_cannot_is_refused(lines: str, told: str) -> None:
    messages = refused(lines)
    assert messages, "taken"
    assert all(": PR136: " in message for message in messages), messages
    assert told in messages[0], messages


def test_a_built_in_metric_keeps_its_unit() -> None:
    (message,) = refused('command = ["run"]\nmetrics = { wall = "ms" }')
    assert 'PR005: experiment "e": every command has metric "wall" in "s", not "ms"' in message


def test_a_command_without_a_file_or_a_format_is_told_which_is_missing() -> None:
    (message,) = refused('command = ["run"]\nread = { format = "json" }\nmetrics = { t = "s" }')
    assert 'lacks "file"' in message


def test_all_that_is_wrong_with_a_command_is_told_at_once() -> None:
    lines = 'command = ["run", "{x}"]\nread = { file = "{y}", format = "z" }\npreload = ["a"]\nmetrics = { t = "s" }'
    codes = [message.split(": ")[:2] for message in refused(lines)]
    assert codes == [["6", "PR136"], ["7", "PR136"], ["8", "PR136"]]


def test_every_command_has_the_built_in_metrics_and_what_reads_them() -> None:
    experiment = load(text('command = ["run"]')).experiments["e"]
    assert experiment.metrics == dict(BUILT_IN)
    assert experiment.metrics["wall"].instrument == "wall-clock"
    assert experiment.metrics["exit_code"].exact


@pytest.mark.parametrize(
    "change",
    [
        ('"run"', '"walk"'),
        ("r.json", "s.json"),
        ('"json"', '"csv"'),
        ('"make"', '"remake"'),
        ('"serve"', '"sell"'),
    ],
)
def test_all_that_says_what_is_run_counts_in_the_digest_of_the_source(change: tuple[str, str]) -> None:
    lines = f'command = ["run"]\nbuild = ["make"]\nservice = {{ command = ["serve", "{{port}}"] }}\n{READ}\n'
    lines += 'arms = { a = { ref = "HEAD" } }'
    study, other = load(text(lines)), load(text(lines.replace(*change)))
    assert source_digest(study, study.experiments["e"]) != source_digest(other, other.experiments["e"])


def test_how_long_a_server_may_take_counts_in_no_digest() -> None:
    lines = 'command = ["run"]\nservice = { command = ["serve", "{port}"] }'
    patient = lines.replace("] }", '], timeout = "9 min" }')
    first, second = (load(text(each)).experiments["e"].table for each in (lines, patient))
    assert commanded(first) == commanded(second)
    assert msgspec.json.encode(commanded(first))


@pytest.mark.parametrize("beside", ["", 'arms = { a = { env = { N = "1" } }, b = {} }'])
def test_a_parameter_that_nothing_names_is_refused_wherever_it_is_written(beside: str) -> None:
    lines = f'command = ["run"]\n{beside}'
    (told,) = refusals(TEXT.format(params="size = 8", lines=lines))
    assert told.startswith(
        '5: PR136: experiment "e", "params": "command" names no "{size}", so "size" changes nothing'
    )


def test_a_parameter_that_nothing_names_is_told_what_to_do_where_it_was_registered() -> None:
    (told,) = refusals(TEXT.format(params="size = 8", lines='command = ["run"]'))
    assert "If it is registered like that, leave it out and say so" in told
    assert "pytest-prereg amend --experiment e --reason" in told
