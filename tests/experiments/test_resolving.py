"""The work of which seven repeats are to tell a tenth more."""

from __future__ import annotations

import pytest

from experiments import resolving
from experiments.resolving import KINDS, repeated_work
from pytest_prereg import Repeat


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_done_and_timed(kind, monkeypatch):
    monkeypatch.setattr(resolving, "COPIED", 1 << 10)
    repeat = Repeat(metrics=repeated_work.metrics)
    repeated_work(repeat, kind=kind, rounds=2)
    readings = repeat.readings()
    assert readings.problems == readings.missing == []
    assert readings.values["t_work"] > 0
    assert readings.instruments == {"t_work": "wall-clock"}


@pytest.mark.parametrize(("percent", "done"), [(100, 20), (110, 22)])
def test_a_tenth_more_is_a_tenth_more_rounds_and_one_is_not_timed(percent, done, monkeypatch):
    rounds = []
    monkeypatch.setitem(KINDS, "counted", lambda: lambda: rounds.append(1))
    repeated_work(Repeat(metrics=repeated_work.metrics), kind="counted", rounds=20, percent=percent)
    assert len(rounds) == done + 1
