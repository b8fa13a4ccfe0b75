"""A service or a cache that could never work is refused where it is written, before anything is started."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from study_texts import load, refusals

from pytest_prereg.registry.digest import registration_digest
from pytest_prereg.registry.placeholders import fill, filled, placeholders

ONLY_ARM = """\
[study]
id = "s"
[experiments.e]
command = ["run", "{{size}}", "{{names}}"]
metrics = {{ t = "s" }}
repeats = 3
params = {{ size = 8, names = ["a", "b"]{more} }}
{line}
read = {{ file = "r.json", format = "json" }}
[experiments.e.arms]
small = {{ extra = 1, env = {{ SIZE = "1" }} }}
large = {{ extra = 2, only = 3 }}
"""


def refused(line: str) -> list[str]:
    more = ", table = { x = 1 }" if "{table}" in line else ""
    return refusals(ONLY_ARM.format(line=line, more=more))


@pytest.mark.parametrize(
    "service",
    [
        'command = ["serve", "--port", "{port}"]',
        'command = ["serve", "{port}", "{size}", "{extra}", "{names}"]',
        'command = ["serve", "{port}", \'{"a": {"b": 1}}\', "{{size}}", "{", "}", "{}"]',
        'command = ["serve"], ready = "http://localhost:8000/health"',
        'command = ["serve", "{port}"], ready = "http://127.0.0.1:{port}/x?size={size}"',
        'command = ["serve"], ready = "ready to serve {size}"',
        'command = ["serve", "{port}"], ready = "tcp", timeout = "10 min"',
    ],
)
def test_a_service_that_can_be_started_is_taken(service: str) -> None:
    assert refused(f"service = {{ {service} }}") == []


@pytest.mark.parametrize(
    ("service", "told"),
    [
        ('command = ["serve", "{prot}"]', 'PR007: .*"{prot}"; did you mean "port"?'),
        (
            'command = ["serve", "{port}", "{only}"]',
            'arm "small": "command" of "service" has unknown "{only}"',
        ),
        (
            'command = ["serve", "{port}"], ready = "size {siez}"',
            '"ready" of "service" has unknown "{siez}"; did you mean "size"?',
        ),
        (
            'command = ["serve", "{port}", "--x={names}"]',
            '"{names}", a list, within "--x={names}"; it must stand alone',
        ),
        ('command = ["serve", "{port}"], ready = "{names}"', "a list, within"),
        ('command = ["serve", "{port}", "{table}"]', "which is a table"),
        ("command = []", '"command" of "service" is empty'),
        ('command = ["serve"]', 'has no "{port}", so its port can\'t be watched'),
        ('command = ["serve", "{{port}}"], ready = "tcp"', 'has no "{port}"'),
        ('command = ["serve"], ready = " "', '"ready" of "service" is empty'),
        (
            'command = ["serve"], ready = "https://localhost/"',
            'is "https://localhost/"; write "http://localhost:{port}/health"',
        ),
        ('command = ["serve", "{port}"], ready = "http://"', 'is "http://"; write'),
        ('command = ["serve", "{port}"], timeout = "soon"', '"timeout" of "service": "soon" is no duration'),
        ('command = ["serve", "{port}"], scope = "run"', "scope"),
        ('command = ["serve", "{port}"], redy = "tcp"', '"redy"; did you mean "ready"?'),
    ],
)
def test_one_that_cannot_is_refused_at_its_line(service: str, told: str) -> None:
    (message,) = refused(f"service = {{ {service} }}")
    assert message.startswith("8: PR"), message
    for part in told.split(".*"):
        assert part.removeprefix("PR007: ") in message


def test_a_parameter_called_port_is_refused_where_the_port_is_meant() -> None:
    line = 'service = { command = ["serve", "{port}"] }'
    (message,) = refusals(ONLY_ARM.format(line=line, more=", port = 8"))
    assert "which is the free port and a parameter; rename the parameter" in message


def test_what_is_fed_by_import_talks_to_no_server() -> None:
    line = 'service = { command = ["serve", "{port}"] }'
    text = f'[study]\nid = "s"\n[experiments.e]\nmetrics = {{ t = "s" }}\n{line}\n'
    (message,) = refusals(text)
    assert "what is fed by import talks to no server" in message


def test_a_cache_cannot_be_fresh_and_given() -> None:
    line = 'cache = "fresh"\nenv = { TRITON_CACHE_DIR = "/warm" }'
    (message,) = refused(line)
    assert (
        message
        == '8: PR005: experiment "e": "env" sets "TRITON_CACHE_DIR", which cache = "fresh" sets; leave one out'
    )
    assert refused('env = { TRITON_CACHE_DIR = "/warm" }') == []


PREDICTED = """\
[study]
id = "s"
[experiments.e]
fixture = "reward_barrier"
repeats = 3
{line}
[predictions.p]
claim = "c"
experiment = "e"
quantity = "idle"
predicts = "<= 1 s"
falsifier = "> 2 s"
"""


def digest(line: str) -> str:
    study = load(PREDICTED.format(line=line))
    return registration_digest(study, study.predictions["p"])


def test_a_service_and_running_alone_are_registered_and_a_cache_is_not() -> None:
    plain = digest("")
    service = 'service = { command = ["serve", "{port}"] }'
    assert digest('cache = "fresh"') == digest("exclusive = true") == plain
    assert (
        len({plain, digest(service), digest(service.replace("serve", "other")), digest("exclusive = false")})
        == 4
    )
    for said in (', scope = "repeat" }', ', timeout = "10 min" }'):
        assert digest(service.replace(" }", said)) == digest(service), "it says nothing of what is measured"
    assert digest(service.replace(" }", ', ready = "up" }')) != digest(service)


# Placeholders


def test_values_take_the_place_of_names() -> None:
    values = {"n": 8, "x": 0.5, "flag": True, "names": ["a", 1], "none": []}
    command = ["run", "{n}", "--x={x}", "{flag}", "{names}", "{none}", "{{n}}", "{other}", '{"n": {n}}']
    assert filled(command, values) == ["run", "8", "--x=0.5", "true", "a", "1", "{n}", "{other}", '{"n": 8}']
    assert placeholders('{"n": {n}} {{x}} {y}') == ["n", "y"]


@given(st.text(alphabet='{}"ab :1', max_size=20))
def test_a_text_without_placeholders_is_taken_as_it_is(text: str) -> None:
    if not placeholders(text) and "{{" not in text:
        assert fill(text, {"a": "x", "b": "x"}) == text


@given(st.text(alphabet="{}\\ax", max_size=12))
def test_a_value_is_put_in_once_and_never_read_again(value: str) -> None:
    assert fill("<{p}>", {"p": value, "a": "?", "x": "?"}) == f"<{value}>"
