"""The built-in problems: every solution does what its kind says, on whatever tests a seed draws."""

from __future__ import annotations

import contextlib
import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_prereg.measure.workloads.sandbox.checking import completion_problems
from pytest_prereg.measure.workloads.sandbox.completions import CallTest
from pytest_prereg.measure.workloads.sandbox.grading import compare
from pytest_prereg.measure.workloads.sandbox.outcomes import Outcome
from pytest_prereg.measure.workloads.sandbox_problems import PROBLEMS, Kind, completions_of, kinds_of

EACH = pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
SEEDS = st.integers(0, 2**64 - 1)


def answer(program: str, test, monkeypatch) -> bytes:
    """What a program answers that is known to end: it is this package's own."""
    code = compile(program, "program", "exec")
    if isinstance(test, CallTest):
        names: dict = {}
        exec(code, names)
        return json.dumps(names[test.function](*test.args, **test.kwargs)).encode()
    output = io.StringIO()
    with contextlib.redirect_stdout(output), monkeypatch.context() as patch:
        patch.setattr("sys.stdin", io.StringIO(test.stdin))
        exec(code, {})
    return output.getvalue().encode()


def graded(completion, monkeypatch) -> list[Outcome]:
    tests = completion.tests
    return [compare(test, answer(completion.program, test, monkeypatch))[0] for test in tests]


@pytest.fixture(scope="module")
def patched():
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@EACH
@given(seed=SEEDS)
@settings(max_examples=30)
def test_a_right_solution_passes_every_test_and_a_wrong_one_every_other(problem, seed, patched):
    right = problem.completion(Kind.RIGHT, tests=4, seed=str(seed))
    wrong = problem.completion(Kind.WRONG, tests=4, seed=str(seed))
    assert right.tests == wrong.tests
    assert graded(right, patched) == [Outcome.PASS] * 4
    assert graded(wrong, patched) == [Outcome.FAIL, Outcome.PASS] * 2


@EACH
def test_every_problem_has_a_solution_of_each_kind_that_can_be_graded(problem):
    for kind in Kind:
        assert completion_problems(problem.completion(kind, tests=4, seed="1")) == []


@EACH
def test_other_seeds_have_other_inputs(problem):
    drawn = [problem.completion(Kind.RIGHT, tests=1, seed=str(seed)).tests for seed in range(20)]
    assert len({str(tests) for tests in drawn}) == 20


def test_places_of_a_batch_share_neither_problem_nor_inputs_with_the_next():
    batch = completions_of([Kind.RIGHT] * 10, tests=2, seed=3)
    assert len({str(completion.tests) for completion in batch}) == 10
    assert len({completion.program for completion in batch}) == len(PROBLEMS)


@given(SEEDS, st.integers(0, 3), st.integers(0, 3), st.integers(0, 3))
def test_so_many_are_of_each_kind_as_was_asked(seed, wrong, hung, crashing):
    counts = {Kind.WRONG: wrong, Kind.HUNG: hung, Kind.CRASHING: crashing}
    kinds = kinds_of(counts, 10, seed)
    assert {kind: kinds.count(kind) for kind in counts} == counts
    assert len(kinds) == 10
    assert kinds == kinds_of(counts, 10, seed)


@given(SEEDS, st.integers(0, 9))
def test_what_hangs_where_few_do_hangs_where_more_do(seed, few):
    less, more = kinds_of({Kind.HUNG: few}, 10, seed), kinds_of({Kind.HUNG: few + 1}, 10, seed)
    assert all(b is Kind.HUNG for a, b in zip(less, more, strict=True) if a is Kind.HUNG)


def test_the_places_are_drawn():
    assert len({tuple(kinds_of({Kind.HUNG: 1}, 10, seed)) for seed in range(100)}) == 10
