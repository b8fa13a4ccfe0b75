"""Order and seeds are drawn from the registration, and the same everywhere."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_prereg.measure.schedule import Slot, block_order, repeat_seed, seed_base, sequential_order

PINNED = [("a", 1), ("c", 1), ("b", 1), ("c", 2), ("b", 2), ("a", 2), ("b", 3), ("a", 3)]
PLANS = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 8), min_size=1)


@given(PLANS, st.text(max_size=5))
def test_every_slot_is_scheduled_once_in_its_block(planned, seed):
    order = block_order(planned, seed)
    expected = {Slot(arm, index, index) for arm, n in planned.items() for index in range(1, n + 1)}
    assert len(order) == len(expected)
    assert set(order) == expected
    assert [slot.block for slot in order] == sorted(slot.block for slot in order)


@given(PLANS, st.randoms())
def test_the_order_does_not_depend_on_how_arms_are_declared(planned, random):
    names = list(planned)
    random.shuffle(names)
    assert block_order({name: planned[name] for name in names}, "x") == block_order(planned, "x")


def test_the_order_is_pinned():
    order = block_order({"a": 3, "b": 3, "c": 2}, "sha256:00")
    assert [(slot.arm, slot.index) for slot in order] == PINNED


def test_every_order_of_three_arms_is_as_likely():
    blocks = block_order(dict.fromkeys("abc", 6000), "seed")
    orders = Counter("".join(slot.arm for slot in blocks[start : start + 3]) for start in range(0, 18_000, 3))
    assert len(orders) == 6
    # χ² with 5 degrees of freedom; 20.5 is its 0.999 quantile.
    assert sum((count - 1000) ** 2 / 1000 for count in orders.values()) < 20.5


def test_arms_with_fewer_repeats_leave_the_later_blocks():
    order = block_order({"a": 1, "b": 3}, "seed")
    assert [slot.arm for slot in order[2:]] == ["b", "b"]


def test_sequential_order_is_arm_after_arm_as_declared():
    order = sequential_order({"b": 2, "a": 1})
    assert order == [Slot("b", 1, 1), Slot("b", 2, 2), Slot("a", 1, 1)]


def test_seeds_differ_between_all_blocks_of_a_series_and_fit_numpy():
    seeds = {repeat_seed("sha256:00", block) for block in range(1, 20_001)}
    assert len(seeds) == 20_000
    assert all(0 <= seed < 2**32 for seed in seeds)


def test_seeds_differ_between_series_and_registrations():
    bases = {seed_base(["sha256:a"], 1), seed_base(["sha256:a"], 2), seed_base(["sha256:b"], 1)}
    assert len(bases) == 3
    assert len({repeat_seed(base, 1) for base in bases}) == 3


@pytest.mark.parametrize("digests", [["a", "b"], ["b", "a"], ["a", "b", "a"]])
def test_the_seed_does_not_depend_on_the_order_of_predictions(digests):
    assert seed_base(digests, 1) == seed_base(["a", "b"], 1)
    assert seed_base(digests, 1).startswith("sha256:")
