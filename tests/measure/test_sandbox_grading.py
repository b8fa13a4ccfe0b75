"""Answers of programs that nobody has read, held against what was expected."""

from __future__ import annotations

import copy
import json
import math
import sys
import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pytest_prereg.measure.workloads.sandbox.checking import DEEPEST, completion_problems
from pytest_prereg.measure.workloads.sandbox.completions import CallTest, Completion, ScriptTest
from pytest_prereg.measure.workloads.sandbox.grading import compare, printable, verifier_digest
from pytest_prereg.measure.workloads.sandbox.outcomes import Outcome

MEBIBYTE = 2**20

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def call(expected, **fields) -> CallTest:
    return CallTest(function="solve", expected=expected, **fields)


def graded(expected, answer: bytes | str, **fields) -> Outcome:
    raw = answer if isinstance(answer, bytes) else answer.encode()
    return compare(call(expected, **fields), raw)[0]


def passes(expected, answer: bytes | str, **fields) -> bool:
    return graded(expected, answer, **fields) is Outcome.PASS


def places(value, path=()):
    """The places of all leaves, and of the lists and objects that are empty."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    inner = [place for key, each in items for place in places(each, (*path, key))]
    return inner or [path]


def changed(value, path, new):
    if not path:
        return new
    made = copy.copy(value)
    made[path[0]] = changed(value[path[0]], path[1:], new)
    return made


@given(VALUES)
def test_a_value_equals_itself(value):
    assert passes(value, json.dumps(value))
    assert passes(value, json.dumps(value, indent=1, sort_keys=True))


@given(VALUES, st.data())
def test_a_value_with_one_leaf_changed_is_another(value, data):
    path = data.draw(st.sampled_from(places(value)))
    old = value
    for key in path:
        old = old[key]
    new = data.draw(LEAVES | st.just([]) | st.just({}))
    numbers = [isinstance(each, int | float) and not isinstance(each, bool) for each in (old, new)]
    assume(old != new if all(numbers) or type(old) is type(new) else True)
    assert not passes(value, json.dumps(changed(value, path, new)))


@given(VALUES, st.floats(0, 0.5))
def test_a_tolerance_never_turns_what_passes_into_a_failure(value, tolerance):
    assert passes(value, json.dumps(value), tolerance=tolerance)


@given(st.binary(max_size=200), VALUES)
def test_whatever_bytes_arrive_there_is_an_outcome_and_printable_evidence(answer, expected):
    for test in (call(expected), ScriptTest(expected="x")):
        outcome, evidence = compare(test, answer)
        assert outcome in {Outcome.PASS, Outcome.FAIL}
        assert evidence.isprintable()
        assert len(evidence) < 600


@pytest.mark.parametrize(
    ("expected", "answer"),
    [
        (1, "true"),
        (0, "false"),
        (True, "1"),
        (False, "0"),
        (True, "1.0"),
        ([1], "[true]"),
        (None, "false"),
        (None, "0"),
        (None, '""'),
        ("1", "1"),
        (1, '"1"'),
        ([], "{}"),
        ({}, "[]"),
        ([1, 2], "[2, 1]"),
        ([1, 2], "[1, 2, 3]"),
        ([1, 2], "[1]"),
        ({"a": 1}, '{"a": 1, "b": 2}'),
        ({"a": 1, "b": 2}, '{"a": 1}'),
        ({"a": 1}, '{"A": 1}'),
        ("a", '["a"]'),
        ("\u00e9", '"e\u0301"'),
        (2**53 + 1, str(float(2**53))),
        (1, "1.0000000000000002"),
    ],
)
@pytest.mark.parametrize("tolerance", [0.0, 1e-20])
def test_what_only_looks_alike_is_no_pass(expected, answer, tolerance):
    assert not passes(expected, answer, tolerance=tolerance)


@pytest.mark.parametrize(
    ("expected", "answer"),
    [
        (1, "1.0"),
        (1.0, "1"),
        (0, "-0.0"),
        (100, "1e2"),
        ((1, (2, 3)), "[1, [2, 3]]"),
        ({"a": 1, "b": 2}, '{"b": 2, "a": 1}'),
        (2**63, "9223372036854775808"),
        ("\ud800", r'"\ud800"'),
        ("a\0b", r'"a\u0000b"'),
        ([], " [ ] \n"),
    ],
)
def test_what_is_written_otherwise_and_means_the_same_passes(expected, answer):
    assert passes(expected, answer)


@pytest.mark.parametrize("tolerance", [0.0, 0.1, 10.0, 1e308])
@pytest.mark.parametrize(
    "answer", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400", '"NaN"', "[NaN]", "nan", "null"]
)
@pytest.mark.parametrize("expected", [0, 1.5, sys.float_info.max, 10**400])
def test_what_is_not_finite_equals_no_number_at_any_tolerance(expected, answer, tolerance):
    assert not passes(expected, answer, tolerance=tolerance)


@pytest.mark.parametrize(
    ("expected", "answer", "tolerance", "outcome"),
    [
        (1000.0, "1000.9", 1e-3, "pass"),
        (1000.0, "1001.1", 1e-3, "fail"),
        (0.5, "0.5009", 1e-3, "pass"),
        (0.5, "0.5011", 1e-3, "fail"),
        (0, "0.001", 1e-3, "pass"),
        (-1000, "-1000.9", 1e-3, "pass"),
        # By the expected value: one of the answer's own could be made as wide as it likes.
        (1.0, "1e9", 1.0, "fail"),
        (10**400, str(10**400 + 10**390), 1e-3, "pass"),
        (10**400, str(10**400 + 10**399), 1e-3, "fail"),
        ({"x": [1.0, "a"]}, '{"x": [1.0005, "a"]}', 1e-3, "pass"),
        (True, "0.9999", 1e-3, "fail"),
        (1, "true", 1.0, "fail"),
        ("1", '"1.0"', 1.0, "fail"),
    ],
)
def test_a_tolerance_is_relative_or_absolute_and_for_numbers_alone(expected, answer, tolerance, outcome):
    assert graded(expected, answer, tolerance=tolerance) == outcome


def test_whole_numbers_beyond_what_python_takes_for_text_are_compared_by_value():
    digits = "7" * 5000
    value = 7 * (10**5000 - 1) // 9
    assert passes(value, digits)
    assert not passes(value, digits[:-1] + "8")
    outcome, evidence = compare(call([value]), b"[1]")
    assert outcome is Outcome.FAIL
    assert "at [0]: answered 1, expected" in evidence
    assert not passes(value, "9" * MEBIBYTE)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "it is no JSON"),
        (b"\xff\xfe", "its byte 0 is no UTF-8"),
        (b'"\xed\xa0\x80"', "its byte 1 is no UTF-8"),
        (b"\xef\xbb\xbf1", "it is no JSON"),
        (b"1 2", "it is no JSON"),
        (b"1\0", "it is no JSON"),
        (b'"a\0"', "it is no JSON"),
        (b"{'a': 1}", "it is no JSON"),
        (b"01", "it is no JSON"),
        (b"PASS", "it is no JSON"),
        (b'{"a": 2, "a": 1}', "an object has the same key twice"),
        (b'{"a": NaN}', "NaN is no number in JSON"),
        (b'{"a": [1]}', "it is nested 2 deep, and the expected answer 1"),
        (b"1" * 2000, "a number has 2000 digits"),
        (b"\x1b[2J\x1b]0;owned\x07", r"\x1b[2J\x1b]0;owned\x07"),
    ],
)
def test_what_is_no_answer_fails_and_says_why(answer, why):
    outcome, evidence = compare(call({"a": 1}), answer)
    assert outcome is Outcome.FAIL
    assert why in evidence
    assert evidence.isprintable()


JUNK = {
    "brackets": b"[" * MEBIBYTE,
    "closed brackets": b"[" * (MEBIBYTE // 2) + b"]" * (MEBIBYTE // 2),
    "objects": b'{"a":' * (MEBIBYTE // 5),
    "quotes": b'"' * MEBIBYTE,
    "escaped quotes": b'"' + b'\\"' * (MEBIBYTE // 2),
    "backslashes": b'"' + b"\\" * MEBIBYTE,
    "digits": b"9" * MEBIBYTE,
    "digits of a fraction": b"1." + b"3" * MEBIBYTE,
    "an exponent": b"1e" + b"9" * MEBIBYTE,
    "zeros": b"\0" * MEBIBYTE,
    "blanks": b" " * MEBIBYTE,
    "bytes": bytes(range(256)) * (MEBIBYTE // 256),
    "text": b'"' + b"a" * MEBIBYTE + b'"',
    "surrogates": b'"' + rb"\udfff" * (MEBIBYTE // 6) + b'"',
    "empty lists": b"[" + b"[]," * (MEBIBYTE // 3) + b"[]]",
    "numbers": b"[" + b"1," * (MEBIBYTE // 2) + b"1]",
}


@pytest.mark.parametrize("junk", JUNK.values(), ids=JUNK)
def test_a_mebibyte_of_junk_fails_and_keeps_nobody_waiting(junk):
    """Where a list in a list is expected, so that little of it is refused unread."""
    began = time.process_time()
    outcome, evidence = compare(call([[1.0], {"a": "b"}], tolerance=0.1), junk)
    assert outcome is Outcome.FAIL
    assert evidence.isprintable()
    assert len(evidence) < 600
    assert time.process_time() - began < 5.0, "what takes quadratic time takes minutes"


def test_a_deep_answer_is_graded_wherever_in_a_program_that_is_asked():
    def below(frames: int):
        return below(frames - 1) if frames else compare(call([1]), b"[" * 100_000)

    assert below(500)[0] is Outcome.FAIL


@pytest.mark.parametrize(
    ("expected", "answer", "said"),
    [
        (5, "4", "answered 4, expected 5"),
        ([1, 2], "[1, 3]", "at [1]: answered 3, expected 2"),
        ({"a": [0]}, '{"a": [1]}', 'at ["a"][0]: answered 1, expected 0'),
        ([1], "[1, 2]", "answered [1, 2], expected [1]"),
        ("x", r'"\u001b[31mx\u202e"', r'answered "\\u001b[31mx\u202e", expected "x"'),
    ],
)
def test_the_evidence_names_the_first_difference_and_its_place(expected, answer, said):
    assert compare(call(expected), answer.encode()) == (Outcome.FAIL, said)


@pytest.mark.parametrize(
    ("expected", "wrote"),
    [
        ("1 2\n3\n", b"1 2\n3"),
        ("1 2\n3", b"1 2  \r\n3\t\n\n\n"),
        ("", b" \n \n"),
        ("  a", b"  a"),
        ("a\n\nb", b"a\n \nb"),
        ("ü\n", "ü".encode()),
    ],
)
def test_white_space_at_the_ends_of_lines_and_of_the_whole_does_not_count(expected, wrote):
    assert compare(ScriptTest(expected=expected), wrote)[0] is Outcome.PASS


@pytest.mark.parametrize(
    ("expected", "wrote", "said"),
    [
        ("a", b" a", 'line 1: wrote " a", expected "a"'),
        ("a b", b"a  b", 'line 1: wrote "a  b", expected "a b"'),
        ("a\nb", b"a", 'line 2: wrote nothing, expected "b"'),
        ("a", b"a\nb", 'line 2: wrote "b", expected nothing'),
        ("a\nb", b"a\n\nb", 'line 2: wrote "", expected "b"'),
        ("a", b"a\0", r'line 1: wrote "a\x00", expected "a"'),
        ("a", b"\xffa\x1b[0m", r'line 1: wrote "\xffa\x1b[0m", expected "a"'),
        ("a", b"a\x85", r'line 1: wrote "a\x85", expected "a"'),
        ("a", b"PASS", 'line 1: wrote "PASS", expected "a"'),
    ],
)
def test_another_output_fails_and_the_evidence_names_the_line(expected, wrote, said):
    assert compare(ScriptTest(expected=expected), wrote) == (Outcome.FAIL, said)


@given(st.binary(max_size=100) | st.text(max_size=100), st.integers(3, 120))
def test_what_is_shown_is_printable_and_no_longer_than_asked(text, most):
    shown = printable(text, most)
    assert shown.isprintable()
    assert len(shown) <= most


@given(st.text(max_size=60), st.text(max_size=60))
def test_different_texts_are_shown_differently(one, other):
    assume(one != other)
    assert printable(one, 10_000) != printable(other, 10_000)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 漢", "plain é 漢"),
        ("a\nb\tc\rd", r"a\nb\tc\rd"),
        (b"\x00\xff\x7f", r"\x00\xff\x7f"),
        ("\x1b[31m", r"\x1b[31m"),
        ("\u202eabc\u2066", r"\u202eabc\u2066"),
        ("\u200b\ufeff", r"\u200b\ufeff"),
        ("\ud800", r"\ud800"),
        ("\U000e0001", r"\U000e0001"),
        ("a\\x00", r"a\\x00"),
        ("x" * 201, "x" * 197 + "..."),
        ("x" * 200, "x" * 200),
        (b"\0" * 10**6, r"\x00" * 49 + "..."),
    ],
)
def test_what_a_terminal_would_act_on_is_written_as_an_escape(text, shown):
    assert printable(text) == shown


def completion(*tests, program: str = "pass") -> Completion:
    return Completion(program=program, tests=tests)


def nested(depth: int) -> list:
    value: list = []
    for _ in range(depth - 1):
        value = [value]
    return value


def test_what_can_be_graded_has_no_problem():
    tests = (
        call(nested(DEEPEST), args=[1, {"a": None}], kwargs={"key": 2.5}, tolerance=1e-6),
        ScriptTest(stdin="1\n", expected="2"),
    )
    assert completion_problems(completion(*tests)) == []


def test_a_value_as_deep_as_is_allowed_is_compared_wherever_that_is_asked():
    def below(frames: int) -> bool:
        return below(frames - 1) if frames else passes(nested(DEEPEST), json.dumps(nested(DEEPEST)))

    assert below(500)


@pytest.mark.parametrize(
    ("test", "problem"),
    [
        (call(math.nan), 'expected holds "nan", float: give plain JSON'),
        (call([math.inf]), 'expected holds "inf", float'),
        (call({1: 2}), 'expected holds the key "1", which is no text'),
        (call({1, 2}), 'expected holds "{1, 2}", set'),
        (call(b"x"), "bytes: give plain JSON"),
        (call(nested(DEEPEST + 2)), f"expected holds something nested over {DEEPEST} deep"),
        (call(1, args=[print]), "builtin_function_or_method: give plain JSON"),
        (call(1, tolerance=-1.0), "tolerance = -1.0: give a finite number of at least 0"),
        (call(1, tolerance=math.nan), "tolerance = nan: give a finite number of at least 0"),
        (call(1, tolerance=True), "tolerance = True"),
        (CallTest(function="a b", expected=1), 'function = "a b": give the name of a function'),
        (CallTest(function="class", expected=1), 'function = "class": give the name of a function'),
        (ScriptTest(expected="\ud800"), "expected holds half of a surrogate pair"),
        (ScriptTest(stdin="\udfff", expected=""), "stdin holds half of a surrogate pair"),
    ],
)
def test_a_test_that_cannot_be_graded_is_named_with_what_to_write(test, problem):
    (said,) = completion_problems(completion(call(1), test))
    assert said.startswith("test 2: ")
    assert problem in said


def test_all_problems_of_a_completion_are_told_at_once():
    said = completion_problems(completion(program="\ud800"))
    assert said == [
        "program holds half of a surrogate pair, which no UTF-8 has: leave it out",
        "tests is empty: give at least one",
    ]


def test_the_verifier_is_named_by_version_and_digest():
    name, _, digest = verifier_digest().partition(", sha256:")
    assert name == "sandbox 1"
    assert len(digest) == 64
    assert int(digest, 16)
