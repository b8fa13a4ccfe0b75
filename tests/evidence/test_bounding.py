"""Whatever a body leaves beside its metrics, the repeat is kept and the file can be read."""

from __future__ import annotations

import json

import pytest
from evidence_samples import attempt, finished, header, session_bytes, started
from hypothesis import given
from hypothesis import strategies as st

from pytest_prereg.evidence.bounding import CAUSE, DIAGNOSTICS, ERROR, bounded
from pytest_prereg.evidence.lines import encode
from pytest_prereg.evidence.model import Outcome
from pytest_prereg.evidence.sessions import SessionWriter, parse_session, read_session


def nested(depth):
    thing = []
    for _ in range(depth):
        thing = [thing]
    return thing


class Hostile:
    def __repr__(self):
        raise RuntimeError("no")


@pytest.fixture
def keep(tmp_path):
    def keep(**fields):
        with SessionWriter.open(tmp_path, header()) as writer:
            writer.started(started(1))
            writer.finished(finished(1, **fields))
        file = read_session(writer.path)
        assert file.problems == ()
        assert [one.outcome for one in file.attempts] == [Outcome.OK]
        return file.lines[2]

    return keep


def test_what_is_small_is_kept_as_it_is(keep):
    diagnostics = {"note": "warm", "losses": [1.0, 2.0], "deep": nested(20), "x" * 30: {"a": None}}

    assert keep(diagnostics=diagnostics).diagnostics == diagnostics


def test_what_is_large_is_replaced_by_its_size_and_the_rest_stays(keep):
    diagnostics = {"tensor": [0.5] * 100_000, "note": "warm", "text": "x" * 20_000}

    assert keep(diagnostics=diagnostics).diagnostics == {
        "note": "warm",
        "text": "x" * 20_000,
        "tensor": "left out: 400013 bytes",
    }


@pytest.mark.parametrize(
    "odd",
    [nested(100), nested(5000), Hostile(), [Hostile()]],
    ids=lambda odd: type(odd).__name__,
)
def test_what_can_not_be_written_or_read_back_is_replaced(keep, odd):
    assert keep(diagnostics={"odd": odd, "note": "warm"}).diagnostics == {
        "note": "warm",
        "odd": "left out: it could not be written",
    }


def test_of_very_many_only_some_are_told(keep):
    diagnostics = keep(diagnostics={f"{index:05}{'k' * 500}": "v" for index in range(5000)}).diagnostics

    assert diagnostics["…"].endswith(" more were left out")
    assert len(encode(diagnostics)) <= DIAGNOSTICS


VALUES = st.recursive(
    st.none() | st.integers() | st.floats() | st.text(max_size=9) | st.just("x" * 50_000),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=9,
)


@given(st.dictionaries(st.text(max_size=5) | st.just("y" * 70_000), VALUES, max_size=6), st.integers(0, 400))
def test_no_diagnostics_take_more_than_there_is_room_for(diagnostics, more):
    diagnostics |= {f"key-{index}": "z" * index for index in range(more)}

    kept = bounded(diagnostics)

    assert len(encode(kept)) <= DIAGNOSTICS + 1
    json.loads(encode(kept))
    if len(encode(diagnostics)) <= DIAGNOSTICS:
        assert list(kept) == list(diagnostics)


def test_of_an_error_the_end_is_kept_and_of_a_cause_the_beginning(keep):
    line = keep(error="begin" + "x" * 10**6 + "end", cause="because" + "x" * 10**6)

    assert (len(line.error), line.error[0], line.error[-3:]) == (ERROR, "…", "end")
    assert (len(line.cause), line.cause[:7], line.cause[-1]) == (CAUSE, "because", "…")


@pytest.mark.parametrize("wrong", [-1.0, float("nan"), float("inf"), float("-inf")])
def test_a_body_whose_clock_is_wrong_spoils_no_file(keep, wrong):
    assert keep(seconds={"body": wrong, "total": 2.0}).seconds == {"body": 0.0, "total": 2.0}


def test_a_line_that_is_nested_too_deep_is_a_problem_of_that_line(tmp_path):
    lines = session_bytes(*attempt(1, diagnostics={"deep": "HERE"}), *attempt(2), footed=False)
    data = lines.replace(b'"HERE"', b"[" * 10**5 + b"]" * 10**5)

    file = parse_session(data, tmp_path / "gate-a" / "x.jsonl")

    assert [problem.line for problem in file.problems] == [3]
    assert [one.index for one in file.attempts if one.outcome is Outcome.OK] == [2]
