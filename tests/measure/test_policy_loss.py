"""The clipped loss and what goes into it, against values worked out by pen."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from pytest_prereg.measure.workloads.learning.policy_loss import (  # noqa: E402
    group_advantages,
    mismatch,
    policy_loss,
    token_weights,
)

pytestmark = pytest.mark.torch

MASK = torch.tensor([[True, True, False], [True, True, True]])
REWARDS = st.lists(st.floats(-1e3, 1e3, width=32), min_size=4, max_size=4)


def by_ratios(*rows):
    """Log-probabilities whose ratio to an old probability of one half is as given."""
    return (torch.tensor(rows, dtype=torch.float64) / 2).log().requires_grad_()


# Advantages


def test_an_advantage_is_the_distance_from_the_mean_in_standard_deviations_of_the_group():
    # 1, 0, 0, 1: the mean is 1/2, all squared distances 1/4; of a sample: 4/4 / (4 - 1) = 1/3.
    first = 0.5 / (math.sqrt(1 / 3) + 1e-4)
    # 0, 0, 0, 4: the mean is 1; (1 + 1 + 1 + 9) / 3 = 4, whose root is 2.
    second = [-1 / 2.0001] * 3 + [3 / 2.0001]
    found = group_advantages(torch.tensor([1, 0, 0, 1, 0, 0, 0, 4]), 4)
    assert found.values.dtype == torch.float32
    assert found.values.tolist() == pytest.approx([first, -first, -first, first, *second], rel=1e-6)
    assert found.zero_variance == (False, False)


def test_unscaled_advantages_stay_in_the_unit_of_the_reward():
    found = group_advantages(torch.tensor([0.0, 0.0, 0.0, 4.0]), 4, scale=False)
    assert found.values.tolist() == [-1, -1, -1, 3]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_group_of_equal_rewards_has_no_advantage_whatever_their_mean_rounds_to(dtype):
    rewards = torch.tensor([0.1] * 3 + [1.0, 0.0, 0.0], dtype=dtype)
    found = group_advantages(rewards, 3)
    assert found.values[:3].tolist() == [0, 0, 0]
    assert found.zero_variance == (True, False)


def test_rewards_that_differ_by_rounding_are_not_equal_and_move_nothing():
    rewards = torch.tensor([0.1 + 0.2, 0.3, 0.3], dtype=torch.float64)
    found = group_advantages(rewards, 3)
    assert found.zero_variance == (False,)
    assert 0 < found.values.abs().max() < 1e-11


def test_a_group_of_one_equals_its_mean():
    found = group_advantages(torch.tensor([1.0, 0.0]), 1)
    assert found.values.tolist() == [0, 0]
    assert found.zero_variance == (True, True)


@given(REWARDS, REWARDS)
@settings(max_examples=30, deadline=None)
def test_a_group_adds_up_to_nothing_and_is_no_concern_of_another(rewards, others):
    alone = group_advantages(torch.tensor(rewards, dtype=torch.float64), 4)
    beside = group_advantages(torch.tensor(others + rewards, dtype=torch.float64), 4)
    assert alone.values.sum().abs() < 1e-6
    assert torch.allclose(alone.values, beside.values[4:], rtol=1e-12, atol=1e-12)
    assert alone.zero_variance == (len(set(rewards)) == 1,)


@pytest.mark.parametrize(
    ("rewards", "group", "said"),
    [
        ([1.0, math.nan, math.inf], 3, "rewards: 2 of 3 are not finite, the first nan at 1"),
        ([1.0, 0.0, 1.0], 2, r"group = 2, and rewards are of shape \(3,\): .* divides their number"),
        ([1.0], 0, "group = 0"),
        ([], 1, "give one reward per sample"),
        ([[1.0, 0.0]], 1, r"shape \(1, 2\)"),
    ],
)
def test_rewards_without_advantages_are_refused(rewards, group, said):
    with pytest.raises(ValueError, match=said):
        group_advantages(torch.tensor(rewards), group)


# Weights


def test_a_token_mean_weighs_all_tokens_alike():
    found = token_weights(MASK, "token-mean")
    assert found.values.flatten().tolist() == pytest.approx([1 / 5, 1 / 5, 0, *[1 / 5] * 3])
    assert (found.denominator, found.denominator_is) == (5, "tokens that bear loss: 5")


def test_a_sequence_mean_weighs_all_sequences_alike():
    found = token_weights(MASK, "sequence-mean")
    assert found.values.flatten().tolist() == pytest.approx([1 / 4, 1 / 4, 0, *[1 / 6] * 3])
    assert (found.denominator, found.denominator_is) == (2, "sequences: 2")


def test_a_sequence_without_loss_dilutes_a_sequence_mean_and_not_a_token_mean():
    mask = torch.cat([MASK, torch.zeros(1, 3, dtype=torch.bool)])
    found = token_weights(mask, "sequence-mean")
    assert found.values.sum() == pytest.approx(2 / 3)
    assert found.denominator_is == "sequences: 3, 1 of them without a token that bears loss"
    assert token_weights(mask, "token-mean").values.sum() == pytest.approx(1)


@pytest.mark.parametrize("reduction", ["token-mean", "sequence-mean"])
def test_where_no_token_bears_loss_every_weight_is_0(reduction):
    assert token_weights(torch.zeros_like(MASK), reduction).values.tolist() == [[0] * 3] * 2


def test_an_unknown_reduction_is_told_the_nearest():
    with pytest.raises(ValueError, match='loss = "token_mean"; did you mean "token-mean"'):
        token_weights(MASK, "token_mean")


@pytest.mark.parametrize("mask", [MASK.int(), MASK[0]])
def test_a_mask_is_of_booleans_per_sequence_and_position(mask):
    with pytest.raises(ValueError, match=r"give booleans \(batch, positions\)"):
        token_weights(mask, "token-mean")


def test_of_ratios_that_are_all_below_1_the_largest_is_below_1():
    found = policy_loss(
        by_ratios([0.5, 0.7, 9.0], [0.9, 0.6, 0.8]), OLD, ADVANTAGES, token_weights(MASK, "token-mean")
    )
    assert found.ratio_largest == pytest.approx(0.9)
    none = token_weights(torch.zeros_like(MASK), "token-mean")
    assert policy_loss(by_ratios([0.5] * 3, [0.5] * 3), OLD, ADVANTAGES, none).ratio_largest == 1


# Loss
#
# ratio            1.5      0.7    (9)  |  1.3      0.6     1.0
# advantage        2        2           |  -1       -1      -1
# ratio x A        3.0      1.4         |  -1.3     -0.6    -1.0
# clipped x A      2.4      1.6         |  -1.2     -0.8    -1.0      (0.8 to 1.2)
# the lesser       2.4 cut  1.4         |  -1.3     -0.8 cut  -1.0
# its derivative   0        1.4         |  -1.3     0       -1.0      (by log p current)

ADVANTAGES = torch.tensor([2.0, -1.0])
OLD = torch.full((2, 3), 0.5, dtype=torch.float64).log()


def ratios_of_both_sides():
    return by_ratios([1.5, 0.7, 9.0], [1.3, 0.6, 1.0])


@pytest.mark.parametrize(
    ("reduction", "loss", "gradient"),
    [
        (
            "token-mean",
            -(2.4 + 1.4 - 1.3 - 0.8 - 1.0) / 5,
            [0, -1.4 / 5, 0, 1.3 / 5, 0, 1 / 5],
        ),
        (
            "sequence-mean",
            -((2.4 + 1.4) / 2 + (-1.3 - 0.8 - 1.0) / 3) / 2,
            [0, -1.4 / 4, 0, 1.3 / 6, 0, 1 / 6],
        ),
    ],
)
def test_loss_and_gradient_are_those_worked_out_by_pen(reduction, loss, gradient):
    current = ratios_of_both_sides()
    found = policy_loss(current, OLD, ADVANTAGES, token_weights(MASK, reduction))
    found.loss.backward()
    assert found.loss.item() == pytest.approx(loss, rel=1e-6)
    assert current.grad.flatten().tolist() == pytest.approx(gradient, rel=1e-6)


def test_a_token_is_clipped_where_the_clip_took_its_gradient():
    found = policy_loss(ratios_of_both_sides(), OLD, ADVANTAGES, token_weights(MASK, "token-mean"))
    assert found.cut.tolist() == [[True, False, False], [False, True, False]]
    assert (found.clipped_tokens, found.tokens, found.clipped) == (2, 5, 2 / 5)
    assert found.ratio_largest == pytest.approx(1.5)  # the 9 bears no loss


def test_each_side_has_a_bound_of_its_own():
    weights = token_weights(MASK, "token-mean")
    high = policy_loss(ratios_of_both_sides(), OLD, ADVANTAGES, weights, clip_high=0.6)
    assert high.cut.tolist() == [[False, False, False], [False, True, False]]
    assert high.loss.item() == pytest.approx(-(3.0 + 1.4 - 1.3 - 0.8 - 1.0) / 5, rel=1e-6)
    low = policy_loss(ratios_of_both_sides(), OLD, ADVANTAGES, weights, clip_low=0.5)
    assert low.cut.tolist() == [[True, False, False], [False, False, False]]
    assert low.loss.item() == pytest.approx(-(2.4 + 1.4 - 1.3 - 0.6 - 1.0) / 5, rel=1e-6)


def test_what_bears_no_loss_has_no_effect_even_if_it_is_no_number():
    current, old = ratios_of_both_sides(), OLD.clone()
    plain = policy_loss(current, old, ADVANTAGES, token_weights(MASK, "token-mean")).loss
    broken = current.detach().masked_fill(~MASK, math.nan).requires_grad_()
    old[0, 2] = math.inf
    found = policy_loss(broken, old, ADVANTAGES, token_weights(MASK, "token-mean"))
    found.loss.backward()
    assert found.loss.item() == plain.item()
    assert broken.grad[0, 2] == 0


def test_a_sequence_without_loss_gives_no_loss_and_no_nan():
    nothing = torch.zeros_like(MASK)
    found = policy_loss(ratios_of_both_sides(), OLD, ADVANTAGES, token_weights(nothing, "sequence-mean"))
    assert (found.loss.item(), found.clipped, found.ratio_largest) == (0, 0, 1)


def test_no_gradient_flows_into_what_the_policy_was():
    current = ratios_of_both_sides()
    found = policy_loss(current, current, ADVANTAGES, token_weights(MASK, "token-mean"))
    found.loss.backward()  # ratios of 1: by each log-probability -A / 5
    assert current.grad[0, 0] == pytest.approx(-2 / 5, rel=1e-6)
    assert current.grad[1, 0] == pytest.approx(1 / 5, rel=1e-6)


@pytest.mark.parametrize("reduction", ["token-mean", "sequence-mean"])
@given(st.data())
@settings(max_examples=25, deadline=None)
def test_the_parts_of_a_mini_batch_add_up_to_it(reduction, data):
    batch = data.draw(st.integers(1, 6))
    size = data.draw(st.integers(1, 6))
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 99)))
    mask = torch.rand(batch, 4, generator=generator) < 0.6
    current, old = torch.randn(2, batch, 4, generator=generator, dtype=torch.float64)
    advantages = torch.randn(batch, generator=generator)
    weights = token_weights(mask, reduction)
    whole = policy_loss(current, old, advantages, weights)
    parts = [
        policy_loss(current[rows], old[rows], advantages[rows], weights.rows(rows))
        for rows in (slice(start, start + size) for start in range(0, batch, size))
    ]
    assert sum(part.loss for part in parts) == pytest.approx(whole.loss.item(), rel=1e-9, abs=1e-12)
    assert sum(part.clipped_tokens for part in parts) == whole.clipped_tokens
    assert sum(part.tokens for part in parts) == whole.tokens == weights.tokens


@pytest.mark.parametrize("advantages", [torch.ones(3), torch.ones(2, 1), torch.ones(1)])
def test_advantages_that_would_be_broadcast_to_other_tokens_are_refused(advantages):
    with pytest.raises(ValueError, match=r"advantages .* give .*batch, positions"):
        policy_loss(OLD, OLD, advantages, token_weights(MASK, "token-mean"))


@pytest.mark.parametrize(
    ("bounds", "said"), [({"clip_low": 1.2}, "from 0 to 1"), ({"clip_high": -1}, "at least 0")]
)
def test_bounds_that_are_none_are_refused(bounds, said):
    with pytest.raises(ValueError, match=said):
        policy_loss(OLD, OLD, ADVANTAGES, token_weights(MASK, "token-mean"), **bounds)


# Mismatch


def test_a_mismatch_is_told_by_its_mean_its_largest_and_a_divergence():
    # Ratios 1.5 and 0.5: (1.5 - 1) - log 1.5 = 0.0945349, (0.5 - 1) - log 0.5 = 0.1931472.
    mask = torch.tensor([[True, True, False]])
    found = mismatch(by_ratios([1.5, 0.5, 9.0]), OLD[:1], mask)
    assert found.kl == pytest.approx((0.0945349 + 0.1931472) / 2, rel=1e-6)
    assert found.mean_absolute == pytest.approx((math.log(1.5) + math.log(2)) / 2)
    assert found.largest == pytest.approx(math.log(2))
    assert found.tokens == 2


def test_over_tokens_as_often_as_they_are_drawn_the_estimate_is_the_divergence():
    """Drawn evenly from four, each comes up once: KL = sum of 1/4 log(1/4 / p)."""
    one = torch.tensor([[0.1, 0.2, 0.3, 0.4]], dtype=torch.float64)
    divergence = sum(0.25 * math.log(0.25 / p) for p in one[0].tolist())
    drawn_from = torch.full_like(one, 0.25).log()
    assert mismatch(one.log(), drawn_from, one > 0).kl == pytest.approx(divergence)


@given(st.lists(st.floats(-20, 0, width=32), min_size=2, max_size=6))
@settings(max_examples=30, deadline=None)
def test_a_divergence_is_never_negative_and_0_for_equal_policies(log_probs):
    one = torch.tensor([log_probs])
    mask = torch.ones_like(one, dtype=torch.bool)
    assert mismatch(one, one, mask).kl == 0
    assert mismatch(one, one.flip(1), mask).kl >= 0


@pytest.mark.parametrize(
    ("one", "mask", "said"),
    [
        (OLD, torch.zeros_like(MASK), "no token to compare"),
        (OLD[:, :2], MASK, "give one shape"),
        (OLD, MASK.int(), "mask of booleans"),
        (OLD.masked_fill(MASK, -math.inf), MASK, "5 of 5 are not finite"),
    ],
)
def test_what_cannot_be_compared_is_refused(one, mask, said):
    with pytest.raises(ValueError, match=said):
        mismatch(one, OLD, mask)
