from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_prereg.errors import StudyError
from pytest_prereg.registry.positions import Positions
from pytest_prereg.registry.toml import parse

TEXT = '''\
# [comment.header]
title = "a # [no] comment"
[a.b] # trailing
text = """
[not.a.header]
quote \\""" and ""inside""""
literal = \'\'\'
key = "not one"
\'\'\'
"q.r".s = { x = 1, y.z = [1,
  2, {u = 3}] }
nested = [
  ["[in]", '[[x]]'],
  [  # ]
  "a"]
]
[[t]]
n = 1
[[t]]
n = 2
[t.sub]
when = 1979-05-27 07:32:00
[a]
"\\u00e9t\\u00e9" = 1
[ "odd . key" . 'k' ]
last = -1
'''
LINES = {
    ("title",): 2,
    ("a",): 3,
    ("a", "b"): 3,
    ("a", "b", "text"): 4,
    ("a", "b", "literal"): 7,
    ("a", "b", "q.r"): 10,
    ("a", "b", "q.r", "s", "x"): 10,
    ("a", "b", "q.r", "s", "y", "z"): 10,
    ("a", "b", "q.r", "s", "y", "z", 1): 11,
    ("a", "b", "q.r", "s", "y", "z", 2, "u"): 11,
    ("a", "b", "nested"): 12,
    ("a", "b", "nested", 0, 1): 13,
    ("a", "b", "nested", 1): 14,
    ("a", "b", "nested", 1, 0): 15,
    ("t",): 17,
    ("t", 0, "n"): 18,
    ("t", 1, "n"): 20,
    ("t", 1, "sub", "when"): 22,
    ("a", "été"): 24,
    ("odd . key", "k", "last"): 26,
}


@pytest.mark.parametrize("keys", LINES, ids=str)
def test_the_line_of_any_key_is_found_wherever_it_is_written(keys: tuple[str | int, ...]) -> None:
    tomllib.loads(TEXT)
    assert Positions(TEXT).line(*keys) == LINES[keys]


def test_a_key_that_is_not_there_is_placed_at_the_table_around_it() -> None:
    positions = Positions(TEXT)
    assert positions.line("a", "b", "missing") == 3
    assert positions.line("t", 1, "missing", "deeper") == 19
    assert positions.line("missing") == 1


def test_lines_are_the_same_with_carriage_returns() -> None:
    positions = Positions(TEXT.replace("\n", "\r\n"))
    assert {keys: positions.line(*keys) for keys in LINES} == LINES


KEYS = st.text("ab.[]#'\"= é", max_size=4).map(lambda key: "k" + key)
VALUES = st.recursive(
    st.sampled_from(['"x # [y]"', "'[z]'", "1.5", "true", '"""\n[h]\n"""', "'''\n\n'''", "1979-05-27"]),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: "[\n" + " ,# c ]\n".join(items) + "]")
        | st.lists(inner, max_size=3).map(
            lambda items: "{" + ", ".join(f"i{n} = {item}" for n, item in enumerate(items)) + "}"
        )
    ),
    max_leaves=6,
)


def escaped(key: str) -> str:
    return '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'


@given(
    st.lists(
        st.tuples(KEYS, st.lists(st.tuples(KEYS, VALUES), max_size=4, unique_by=lambda pair: pair[0])),
        max_size=4,
        unique_by=lambda pair: pair[0],
    )
)
def test_every_table_and_key_is_where_it_was_written(tables: list[tuple[str, list[tuple[str, str]]]]) -> None:
    text, expected = "", {}
    for table, pairs in tables:
        expected[(table,)] = text.count("\n") + 1
        text += f"[{escaped(table)}]\n"
        for key, value in pairs:
            expected[(table, key)] = text.count("\n") + 1
            text += f"{escaped(key)} = {value}\n"
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:  # inline tables may not span lines
        return
    positions = Positions(text)
    assert {keys: positions.line(*keys) for keys in reversed(expected)} == expected
    assert positions.duplicates() == []


def complaints(text: str) -> list[str]:
    with pytest.raises(StudyError) as refused:
        parse(text, "p.toml")
    return [str(problem) for problem in refused.value.problems]


def test_every_duplicate_of_a_file_is_told_with_both_lines() -> None:
    text = '[predictions.x]\nclaim = "a"\nclaim = "b"\n[predictions.y]\n[predictions.x]\n[e]\na = { b = 1, b = 2 }\n'
    assert complaints(text) == [
        'p.toml:3: PR002: "claim" in "predictions.x" is given twice, first on line 2; keep one',
        'p.toml:5: PR002: "x" in "predictions" is given twice, first on line 1; keep one',
        'p.toml:7: PR002: "b" in "e.a" is given twice, first on line 7; keep one',
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = 1\na.b = 2\n", "p.toml:2: PR002"),
        ("a.b = 1\n[a]\n", "p.toml:2: PR002"),
        ("a = [[\n", "PR001: not valid TOML"),
        ("x = 1\ny = \n", 'p.toml:2: PR001: not valid TOML at "y =": Invalid value'),
        ("a = " + "[" * 3000, "p.toml: PR001: is nested too deeply"),
        ("a = " + "9" * 5000, "p.toml:1: PR001"),
        ("x = 1\na = nan\n", 'p.toml:2: PR009: "a" is "nan", which is not a finite number'),
        ("a = { b = [1, -inf] }", 'p.toml:1: PR009: "a.b.1" is "-inf"'),
        ("a = 1e999", "PR009"),
        ("a = 9007199254740993", "PR009"),
        ("a = 0x20_0000_0000_0001", "PR009"),
        ("a = 1e1_00_0", "PR009"),
        ("a = 2020-01-01", "PR005"),
        ("a = 07:32:00", "PR005"),
        ("\na = 'e\u0301'", "p.toml:2: PR009"),
        ('a = "e\\u0301"', "p.toml:1: PR009"),
        ('"u\u0308" = 1', "p.toml:1: PR009: key"),
        ('"a\\n" = 1', 'p.toml:1: PR006: key "a\\n"'),
        ("a = 1\n<<<<<<< HEAD\nb = 1\n=======\nb = 2\n>>>>>>> other\n", 'p.toml:2: PR010: merge-conflict marker "<<<<<<<"'),
    ],
)  # fmt: skip
def test_what_is_wrong_with_the_text_is_told_with_its_line(text: str, message: str) -> None:
    assert message in complaints(text)[0]


def test_a_ruler_in_a_text_is_no_conflict_marker() -> None:
    assert parse('a = """\n=======\n"""\n', "p.toml")[0] == {"a": "=======\n"}


def find_every_line(size: int) -> None:
    positions = Positions("".join(f'[predictions.p{i}]\nclaim = "[{i}]"\nx = [\n1]\n' for i in range(size)))
    assert [positions.line("predictions", f"p{i}", "x", 0) for i in (0, size - 1)] == [4, 4 * size]
    for i in range(size):
        positions.line("predictions", f"p{i}", "x", 0)


def test_finding_every_line_is_work_in_proportion(count_calls) -> None:
    assert count_calls(lambda: find_every_line(800)) < 9 * count_calls(lambda: find_every_line(100))
