"""How many groups a batch takes, and which of them have a signal."""

from __future__ import annotations

from itertools import count, cycle, islice

import pytest

from experiments.filtered_groups import (
    filtered_batches,
    groups_needed,
    has_signal,
    modelled_batches,
    record,
    sampled,
)
from pytest_prereg import Repeat


@pytest.mark.parametrize("right", [[True] * 8, [False] * 8])
def test_where_all_are_right_or_all_are_wrong_there_is_no_signal(right):
    assert not has_signal(right)
    assert has_signal([*right[1:], not right[0]])


def test_a_batch_takes_groups_up_to_the_last_that_it_keeps_and_the_next_begins_behind_it():
    signals = [False, True, True, True, False, False, True, True, True, False]
    assert groups_needed(signals, batches=3, kept=2) == [3, 4, 2]


def test_of_every_fourth_group_a_batch_of_64_takes_256():
    assert groups_needed(cycle([False, False, False, True]), batches=5, kept=64) == [256] * 5


def test_no_more_is_sampled_than_the_last_batch_takes():
    taken = []
    groups_needed((taken.append(1) or True for _ in count()), batches=2, kept=3)
    assert len(taken) == 6


def test_what_the_average_and_the_margin_fill_is_counted():
    found = Repeat(metrics=filtered_batches.metrics)
    record(found, [10, 20, 22, 28], kept=5, margin=1.1)
    assert found.readings().values == {
        "batches": 4,
        "within_average": 2,
        "within_margin": 3,
        "retention": 0.25,
    }


def test_a_repeat_of_the_model_records_all_and_equal_seeds_the_same():
    readings = []
    for seed in (1, 1, 2):
        found = Repeat(metrics=modelled_batches.metrics, seed=seed)
        modelled_batches(found, batches=50, kept=8)
        readings.append(found.readings())
    assert all(each.problems == each.missing == [] for each in readings)
    assert readings[0].values == readings[1].values != readings[2].values


@pytest.mark.torch
def test_a_repeat_samples_a_policy_and_its_groups_depend_on_the_seed(monkeypatch):
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    monkeypatch.setattr("experiments.filtered_groups.SAMPLED_AT_ONCE", 20)
    threads = torch.get_num_threads()
    try:
        found = Repeat(metrics=filtered_batches.metrics, seed=5)
        filtered_batches(found, batches=3, kept=4, group=3, prompt_tokens=3, new_tokens=2)
        one, same, other = (
            list(islice(sampled(seed, group=2, prompt_tokens=3, new_tokens=2), 40)) for seed in (6, 6, 7)
        )
    finally:
        torch.set_num_threads(threads)
    assert found.readings().problems == found.readings().missing == []
    assert found.readings().values["batches"] == 3
    assert one == same != other
