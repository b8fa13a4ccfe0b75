"""A batch held against its own sequences: right ones pass, and what is wrong around a path is caught."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from pytest_prereg.measure.workloads.language.causal_lm import TOY, load  # noqa: E402
from pytest_prereg.measure.workloads.language.completions import Kind  # noqa: E402
from pytest_prereg.measure.workloads.language.read_alone import read_alone  # noqa: E402
from pytest_prereg.measure.workloads.language.scoring import response_log_probs  # noqa: E402

pytestmark = pytest.mark.torch

every_dtype = pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
PROMPT, LONGEST = 4, 24


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Threads that wait for each other on busy cores take a hundred times as long."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def batch(dtype, *, left=0):
    """Five sequences with responses of 1 to 24 tokens, some behind ``left`` padding."""
    model = load(TOY, seed=1, dtype=dtype)
    generator = torch.Generator().manual_seed(2)
    ids = torch.randint(64, (5, left + PROMPT + LONGEST), generator=generator)
    kinds = torch.full_like(ids, Kind.PAD, dtype=torch.uint8)
    kinds[:, left : left + PROMPT] = Kind.PROMPT
    for row, length in enumerate((7, LONGEST, 1, 3, 12)):
        kinds[row, left + PROMPT :][:length] = Kind.RESPONSE
    return model, ids, kinds


@torch.no_grad()
def scored(model, ids, kinds, **options):
    return response_log_probs(model, ids, kinds, **options)


@every_dtype
@pytest.mark.parametrize("left", [0, 3])
def test_what_is_scored_in_a_batch_is_what_each_sequence_has_alone(dtype, left):
    given = batch(dtype, left=left)
    assert read_alone(*given).problems(scored(*given)) == []


def test_the_shortest_the_longest_and_the_last_are_read_up_to_their_ends():
    model, ids, kinds = batch("float32")
    alone = read_alone(model, ids, kinds)
    assert alone.rows.tolist() == [1] * 16 + [2] + [4] * 12
    assert alone.positions[15] == PROMPT + LONGEST - 1
    assert alone.spread == pytest.approx(0.2, rel=0.2)


@every_dtype
def test_a_number_in_the_place_of_the_token_before_is_caught(dtype):
    given = batch(dtype)
    problems = read_alone(*given).problems(scored(*given).roll(-1, 1))
    assert "of its sequences on their own" in problems[0]


@every_dtype
def test_padding_that_is_read_is_caught(dtype):
    model, ids, kinds = batch(dtype, left=3)
    read = torch.where(kinds == Kind.PAD, int(Kind.PROMPT), kinds)
    assert read_alone(model, ids, kinds).problems(scored(model, ids, read)) != []


def test_a_temperature_that_is_2_percent_off_is_caught():
    given = batch("float32")
    assert read_alone(*given).problems(scored(*given, temperature=1.02)) != []


def test_what_is_no_number_is_caught():
    given = batch("float32")
    assert read_alone(*given).problems(torch.full(given[1].shape, math.nan)) != []
