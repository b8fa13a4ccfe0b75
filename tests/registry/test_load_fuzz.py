"""Whatever is in a prediction file, it loads or says what is wrong with it; nothing else is ever raised."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pytest_prereg.errors import StudyError
from pytest_prereg.registry.load import load_study
from pytest_prereg.registry.positions import Positions
from pytest_prereg.registry.supported import not_yet

if TYPE_CHECKING:
    from pathlib import Path

VALID = """\
[study]
id = "s"
confidence = 0.9
[constants.busy]
value = 2.0
unit = "s"
source = "a table"
[instruments.clock]
trusted = 'it is "the" clock'
[experiments.e]
metrics = { t = "s", n = { unit = "token", exact = true, instrument = "clock" }, "w" = "s" }
params = { size = [1, 2], deep = { a = 1.5 } }
repeats = 5 # often
timeout = "5 min"
[experiments.e.arms]
a = { x = 1 }
b = { x = 2, timeout = 3, env = { A = "1" } }
[experiments."f"]
fixture = "grpo_step"
repeats = 7
[predictions.ratio]
claim = '''
[not.a.table]
'''
experiment = "e"
contrast = "a / b"
quantity = "t / (n + constants.busy) ** 2"
predicts = "<= 0.25"
falsifier = "otherwise"
cv = 0.05
[experiments.g]
metrics = { t = "s" }
pairing = "block"
repeats = { looks = [5, 10] }
sweep = { cols = [1024, 4096], rows = [1, 2] }
bounds = { t = [0, 60] }
[predictions.swept]
claim = "c"
experiment = "g"
contrast = "exponent(cols)"
quantity = "t"
predicts = "within 0.1 of 1"
falsifier = "otherwise"
for-each = ["rows"]
[predictions.reduced]
claim = "c"
experiment = "g"
quantity = "t"
predicts = "<= 1 s"
falsifier = "> 2 s"
over = ["cols", "rows"]
statistic = "min"
[predictions.summed]
claim = "c"
experiment = "e"
arm = "a"
numerator = "t"
denominator = "w"
predicts = "<= 1"
falsifier = "> 2"
[predictions]
plain.claim = "c"
plain.experiment = "e"
plain.arm = "b"
plain.quantity = "share(w < 0.5)"
plain.statistic = "median"
plain.predicts = "within 5% of 0.5"
plain.falsifier = "outside [0.1, 0.9]"
"""

WORDS = [
    *sorted(set(VALID.split())),
    *[
        '"',
        "'",
        "[",
        "]",
        "[[",
        "]]",
        "{",
        "}",
        "=",
        ",",
        ".",
        "#",
        "\n",
        "\\",
        '"""',
        "́",
        "é",
        "\x00",
        "\x1b",
        "nan",
        "inf",
        "1e999",
        "-1",
        "true",
        "1979-05-27",
        "[[predictions]]",
    ],
    "<<<<<<< HEAD\n",
    ">>>>>>> x\n",
    "99999999999999999999",
    "[predictions.ratio]\n",
    "[a" * 60,
    "((((((" * 40,
    "all = ['x']\n",
    "kind = 'guard'\n",
    "repeats = { looks = [3, 2] }\n",
    "sweep = { x = [1, true] }\n",
    "for-each = 'cols'\n",
    "over = 'rows'\n",
    "contrast = 'plateau(a, b)'\n",
    "statistic = 'quantile(0.9)'\n",
]


@st.composite
def mutated(draw: st.DrawFn) -> str:
    text = VALID
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.sampled_from([0, 0, 1, 2, 5, 20, 60])))
        text = text[:start] + draw(st.sampled_from(WORDS) | st.text(max_size=3)) + text[end:]
    return text


@st.composite
def revalued(draw: st.DrawFn) -> str:
    """A file that is valid TOML, with a value that a key does not expect."""
    lines = VALID.splitlines()
    index = draw(st.sampled_from([i for i, line in enumerate(lines) if " = " in line and "'''" not in line]))
    key = lines[index].split(" = ")[0]
    value = draw(
        st.sampled_from(
            ["1", "-1.5", "true", '""', "[]", "[1]", "{}", "{ a = 1 }", "[{}]", "[[1, 2]]", '"a - a"', '"%"']
        )
        | st.text(
            st.characters(codec="utf-8", exclude_characters="\\\"'\n\r", exclude_categories=["Cc"])
        ).map('"{}"'.format)
    )
    lines[index] = (
        f"{draw(st.sampled_from([key, key + 'x', key.upper(), 'plain.unit', 'repeats', 'all']))} = {value}"
    )
    return "\n".join(lines)


def load_or_refuse(text: str, folder: Path) -> bool:
    try:
        study = load_study(folder / "predictions.toml", text=text)
    except StudyError as error:
        for problem in error.problems:
            assert str(problem).split(": ")[1].startswith("PR0")
            assert problem.message
            assert str(problem).isprintable() or "\n" in str(problem)
        return False
    not_yet(study)
    return True


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(mutated() | revalued())
@example(VALID)
@example("")
@example("\ufeff" + VALID)
@example("a = " + "[" * 3000)
@example("a.b" * 500 + " = 1")
@example(VALID.replace("0.25", "9" * 5000))
@example(VALID.replace("cv = 0.05", "cv = " + "9" * 5000))
@example(VALID.replace("t / (n", "-" * 900 + "t / (n"))
def test_a_file_loads_or_every_problem_has_a_place_a_code_and_a_message(folder: Path, text: str) -> None:
    load_or_refuse(text, folder)


def test_the_unchanged_file_loads(folder: Path) -> None:
    assert load_or_refuse(VALID, folder)


def paths(value: object, keys: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [keys, *(path for key, each in inner for path in paths(each, (*keys, key)))]


@settings(max_examples=60, deadline=None)
@given(mutated() | revalued())
def test_every_key_of_a_valid_file_has_a_line_that_holds_it(text: str) -> None:
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError):
        return
    positions, lines = Positions(text), text.split("\n")
    for path in paths(data)[1:]:
        line = lines[positions.line(*path) - 1]
        names = [key for key in path if isinstance(key, str)]
        assert isinstance(path[-1], int) or names[-1] in line or "\\" in line or '"' in line
    assert positions.duplicates() == []
