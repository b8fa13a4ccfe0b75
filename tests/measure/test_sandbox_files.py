"""Files of completions: what is read of them, and what is said of rows that can't be."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from pytest_prereg.measure.workloads.sandbox.completions import CallTest, ScriptTest
from pytest_prereg.measure.workloads.sandbox_files import read_completions

GOOD = {
    "program": "def double(x):\n    return 2 * x\n",
    "tests": [
        {"type": "call", "function": "double", "args": [2], "expected": 4},
        {"type": "script", "stdin": "", "expected": ""},
    ],
}


@pytest.fixture
def write(tmp_path):
    def write(*rows) -> str:
        path = tmp_path / "completions.jsonl"
        lines = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
        path.write_bytes(b"\n".join(lines) + b"\n")
        return str(path)

    return write


def refusal(path: str) -> list[str]:
    with pytest.raises(ValueError, match=":") as caught:
        read_completions(path)
    return str(caught.value).replace(path, "F").splitlines()


def with_test(**fields) -> dict:
    return {**GOOD, "tests": [{**GOOD["tests"][0], **fields}]}


def test_rows_become_completions_in_their_order_and_blank_lines_nothing(write):
    path = write(GOOD, b"  ", {**GOOD, "program": "1"})
    read = read_completions(path)
    assert [completion.program for completion in read.completions] == [GOOD["program"], "1"]
    call, script = read.completions[0].tests
    assert isinstance(call, CallTest)
    assert (call.function, call.args, call.kwargs, call.expected) == ("double", [2], {}, 4)
    assert isinstance(script, ScriptTest)
    assert read.digest == hashlib.sha256(Path(path).read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (b"{", "it is no JSON: Expecting property name"),
        (b"\xff", "its byte 0 is no UTF-8"),
        (b"[" * 100_000, "it is nested too deeply"),
        (b'{"program": "1", "program": "2"}', "it can't be taken: an object has the same key twice"),
        (b'{"program": NaN}', "it can't be taken: NaN is no number"),
        (b'{"program": ' + b"9" * 5000 + b"}", "it can't be taken: Exceeds the limit"),
        (b"5", "Expected `object`, got `int`"),
        ({"program": "1"}, "Object missing required field `tests`"),
        ({"program": 1, "tests": []}, "Expected `str`, got `int` - at `$.program`"),
        ({**GOOD, "test": 1}, "Object contains unknown field `test`"),
        ({**GOOD, "tests": []}, "tests is empty: give at least one"),
        (with_test(tolerence=1), "Object contains unknown field `tolerence` - at `$.tests[0]`"),
        (with_test(type="cal"), "Invalid value 'cal' - at `$.tests[0].type`"),
        (with_test(tolerance=-1), "test 1: tolerance = -1.0: give a finite number of at least 0"),
        (with_test(function="a b"), 'test 1: function = "a b": give the name of a function'),
        ({**GOOD, "program": "\ud800"}, "program holds half of a surrogate pair"),
    ],
)
def test_a_bad_row_is_told_with_its_line_and_what_it_holds(write, row, said):
    head, line = refusal(write(GOOD, row))
    assert head == 'file = "F" has rows that can\'t be graded; of each what is wrong:'
    assert line.startswith(f"F:2: {said}")
    assert "; it holds " in line
    assert line.isprintable()
    assert len(line) < 400


def test_all_bad_rows_are_told_at_once(write):
    told = refusal(write(b"{", GOOD, b"[", {**GOOD, "tests": []}))
    assert [line.split(": ")[0] for line in told[1:]] == ["F:1", "F:3", "F:4"]


def test_of_very_many_bad_rows_the_number_is_told(write):
    told = refusal(write(*[b"{"] * 50))
    assert len(told) == 22
    assert told[-1] == "and 30 more"


def test_a_file_without_rows_is_refused(write):
    assert refusal(write(b" ")) == [
        'file = "F" has no line: write a {"program": ..., "tests": [...]} per line'
    ]


@pytest.mark.parametrize("name", ["missing.jsonl", ".", "a\0b", "x" * 5000])
def test_a_path_that_can_not_be_read_is_named(name):
    (said,) = refusal(name)
    assert "can't be read" in said
    assert said.isprintable()


def test_a_folder_is_told_from_a_file_that_is_not_there(tmp_path):
    assert "it is no file" in refusal(str(tmp_path))[0]
    assert "there is no such file" in refusal(str(tmp_path / "absent"))[0]
