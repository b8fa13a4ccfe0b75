"""In what order predictions are judged that rest on each other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pytest_prereg.audit.dependencies import in_order


def test_a_chain_may_be_longer_than_the_stack_is_deep():
    length = 20_000

    order = in_order([length], lambda number: [number - 1] if number else [])

    assert order == list(range(length + 1))


@given(st.dictionaries(st.integers(0, 20), st.lists(st.integers(0, 20), max_size=4), min_size=1))
def test_each_comes_once_and_after_all_that_it_rests_on_unless_they_form_a_circle(below):
    forward = {name: [other for other in others if other < name] for name, others in below.items()}

    order = in_order(below, lambda name: forward.get(name, []))

    assert len(order) == len(set(order))
    assert set(below) <= set(order)
    for place, name in enumerate(order):
        assert set(forward.get(name, [])) <= set(order[:place])


def test_of_a_circle_the_first_that_is_met_comes_last():
    assert in_order("a", {"a": "b", "b": "c", "c": "a"}.__getitem__) == ["c", "b", "a"]
