"""A batch with programs that never end: on time, with nothing left, and a count that would have seen it."""

from __future__ import annotations

import pytest

from experiments.deadline import reward_deadline
from pytest_prereg.measure.repeat import Repeat


def readings(**params: object):
    repeat = Repeat(metrics=reward_deadline.metrics)
    reward_deadline(repeat, completions=3, deadline=0.6, **params)
    return repeat.readings()


@pytest.mark.parametrize("isolation", ["processes", "auto"])
def test_what_never_ends_times_out_and_neither_it_nor_its_child_is_left(isolation: str) -> None:
    found = readings(hung=2, isolation=isolation)
    assert not found.problems
    assert not found.missing
    assert found.values["t_batch"] >= 0.6
    assert (found.values["timed_out"], found.values["survivors"]) == (2, 0)
    assert (found.diagnostics["isolation"] == "namespaces") == (not _lacks_namespaces(found))


def _lacks_namespaces(found) -> bool:
    return any(sentence.startswith("no namespaces") for sentence in found.diagnostics["missing"])


def test_a_batch_in_which_all_end_is_not_waited_for_to_the_deadline() -> None:
    found = readings(hung=0)
    assert not found.problems
    assert (found.values["timed_out"], found.values["survivors"]) == (0, 0)


def test_a_count_that_would_see_nothing_makes_the_repeat_invalid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.deadline.NEVER_ENDS", "while True: pass")
    assert "none seen afterwards is no news" in readings(hung=1).problems[0]
