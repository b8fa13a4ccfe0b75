"""Trajectories: nothing of what was sampled is lost on the way to a batch, and no token is counted twice."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from trajectories import trajectory  # noqa: E402

from pytest_prereg.measure.workloads.language.completions import (  # noqa: E402
    Completions,
    Kind,
    Sampling,
    Stop,
)
from pytest_prereg.measure.workloads.learning.rollouts import (  # noqa: E402
    TokenAccount,
    account_of,
    batch_of,
    trajectories_of,
)

pytestmark = pytest.mark.torch

PAD = 7
SEGMENTS = st.lists(st.tuples(st.sampled_from([Kind.RESPONSE, Kind.TOOL]), st.integers(1, 3)), max_size=4)


@st.composite
def rows(draw):
    """Ids, kinds and log-probabilities of a sequence, prompt first; the middle may be padded as well."""
    kinds = [Kind.PROMPT] * draw(st.integers(1, 4)) + [Kind.RESPONSE]
    for kind, length in draw(SEGMENTS):
        kinds += [kind] * length
    ids = draw(st.lists(st.integers(0, 2**40), min_size=len(kinds), max_size=len(kinds)))
    numbers = st.floats(-100, 0, width=32)
    return ids, kinds, [draw(numbers) if kind == Kind.RESPONSE else 0.0 for kind in kinds]


def padded(sequences, holes=0):
    """Completions as they are sampled: prompts end together, and padding may stand anywhere after them."""
    left = max(kinds.count(Kind.PROMPT) for _, kinds, _ in sequences)
    width = left + holes + max(len(kinds) - kinds.count(Kind.PROMPT) for _, kinds, _ in sequences)
    ids = torch.full((len(sequences), width), PAD)
    kinds = torch.zeros(ids.shape, dtype=torch.uint8)
    log_probs = torch.zeros(ids.shape)
    for row, (numbers, found, scores) in enumerate(sequences):
        prompt = found.count(Kind.PROMPT)
        places = [*range(left - prompt, left), *range(left + holes, left + holes + len(found) - prompt)]
        ids[row, places] = torch.tensor(numbers)
        kinds[row, places] = torch.tensor([int(kind) for kind in found], dtype=torch.uint8)
        log_probs[row, places] = torch.tensor(scores, dtype=torch.float32)
    stops = tuple(list(Stop)[row % 3] for row in range(len(sequences)))
    return Completions(ids=ids, kinds=kinds, log_probs=log_probs, stops=stops)


def told(completions, **fields):
    made = {
        "step": 3,
        "prompts": range(len(completions.ids)),
        "group": 1,
        "version": 5,
        "sampling": Sampling(),
    }
    return trajectories_of(completions, **{**made, **fields})


@given(st.lists(rows(), min_size=1, max_size=4))
@settings(max_examples=60)
def test_what_was_sampled_comes_back_as_it_was(sequences):
    completions = padded(sequences)
    batch = batch_of(told(completions), pad=PAD)
    assert torch.equal(batch.ids, completions.ids)
    assert torch.equal(batch.kinds, completions.kinds)
    assert torch.equal(batch.behaviour, completions.log_probs)
    assert batch.behaviour.dtype == torch.float32


@given(st.lists(rows(), min_size=1, max_size=4), st.integers(1, 3))
@settings(max_examples=30)
def test_padding_is_no_part_of_a_trajectory_wherever_it_stood(sequences, holes):
    assert told(padded(sequences, holes)) == told(padded(sequences))


def test_a_trajectory_says_whose_it_is():
    prompt, kinds = [9, 8], [Kind.PROMPT, Kind.PROMPT, Kind.RESPONSE]
    completions = padded([([*prompt, row], kinds, [0, 0, -row]) for row in range(4)])
    found = told(completions, prompts=[10, 11], group=2)
    assert [each.id for each in found] == ["3/10/0", "3/10/1", "3/11/0", "3/11/1"]
    assert [each.group for each in found] == ["3/10", "3/10", "3/11", "3/11"]
    assert [each.prompt for each in found] == [10, 10, 11, 11]
    assert {each.version for each in found} == {5}
    assert [each.stop for each in found] == [Stop.ENDED, Stop.CAPPED, Stop.TRUNCATED, Stop.ENDED]


def test_rows_that_belong_to_no_prompt_are_refused():
    with pytest.raises(ValueError, match="2 completions, and 1 prompts with 3 each"):
        told(padded([([1, 2], [Kind.PROMPT, Kind.RESPONSE], [0, 0])] * 2), prompts=[0], group=3)


def test_the_digest_is_of_ids_and_kinds():
    made = trajectory()
    assert made.digest == trajectory("9/9/9", log_probs=(0.0, 0.0, -1.0, -2.0)).digest
    others = [
        trajectory(response=(4, 3)),
        trajectory(kinds=bytes([1, 1, 3, 2])),
        trajectory(prompt=(1,), response=(2, 3, 4)),
        trajectory(response=(3, 4, 0)),
    ]
    assert made.digest not in {each.digest for each in others}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"ids": (1, 2, 3)}, "3 ids, 4 kinds and 4 log-probabilities"),
        ({"kinds": bytes([1, 1, 2, 0])}, "padding is no token"),
    ],
)
def test_a_trajectory_that_does_not_fit_together_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        trajectory(**fields)


def test_every_token_has_one_place_in_the_account():
    with_tool = trajectory("0/0/1", response=(3, 4, 5), kinds=bytes([1, 1, 2, 3, 2]))
    account = account_of([trajectory(), with_tool], trained=[with_tool], scored=2)
    assert account == TokenAccount(prompt=4, generated=4, tool=1, scored=2, trained=2, discarded=2)
    assert account + account == TokenAccount(prompt=8, generated=8, tool=2, scored=4, trained=4, discarded=4)


@pytest.mark.parametrize(
    "counts", [{"generated": 3, "trained": 1, "discarded": 1}, {"trained": 1}, {"prompt": -1}]
)
def test_an_account_that_does_not_add_up_is_refused(counts):
    with pytest.raises(ValueError, match=r"tokens were generated|below 0"):
        TokenAccount(**counts)
