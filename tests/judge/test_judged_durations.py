from __future__ import annotations

import pytest

from pytest_prereg.judge.durations import is_duration
from pytest_prereg.registry.model import Metric
from pytest_prereg.registry.quantities import parse_quantity

METRICS = {
    "gen": Metric(name="gen", unit="s"),
    "train": Metric(name="train", unit="ms"),
    "loss": Metric(name="loss", unit="nat"),
}


@pytest.mark.parametrize(
    "text",
    [
        "gen",
        "gen + train",
        "2 * gen",
        "gen * 3",
        "gen / 2",
        "max(gen, train)",
        "quantile(gen, 0.9)",
        "sum(gen) / 4",
    ],
)
def test_what_grows_with_times_alone_is_a_duration(text):
    assert is_duration(parse_quantity(text, METRICS).node, METRICS)


@pytest.mark.parametrize(
    "text",
    [
        "loss",
        "gen / train",
        "gen - train",
        "-1 * gen",
        "1 / gen",
        "gen * loss",
        "gen ** 2",
        "std(gen)",
        "gen <= 3",
    ],
)
def test_what_a_longer_time_could_lower_is_none(text):
    assert not is_duration(parse_quantity(text, METRICS).node, METRICS)
