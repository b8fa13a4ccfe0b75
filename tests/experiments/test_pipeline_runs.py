"""The real pipeline: what its threads do, beside what the models of pipelines say that they do."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from experiments.pipeline import LAYOUTS, STAGES, Line, pipeline
from pytest_prereg.measure.repeat import Repeat
from pytest_prereg.measure.workloads.pipeline_models import Discipline, Stage, schedule

if TYPE_CHECKING:
    from experiments.pipeline import Service

SCALE, BATCHES = 0.0005, 4
ARMS = [(layout, order) for layout in LAYOUTS for order in ("first-come", "in-order")]


def run(layout: str, order: str, in_flight: int) -> list[Service]:
    seconds = {stage: long * SCALE for stage, long in STAGES.items()}
    line = Line(seconds, LAYOUTS[layout], batches=BATCHES, in_flight=in_flight, order=order)
    with line.running():
        line.begin()
        line.wait_for(BATCHES)
    return line.served


@pytest.mark.parametrize(("layout", "order"), ARMS)
def test_resources_serve_what_the_models_serve_in_the_same_order(layout: str, order: str) -> None:
    stages = [Stage(name=name, seconds=long, resource=LAYOUTS[layout][name]) for name, long in STAGES.items()]
    modelled = schedule(stages, BATCHES, discipline=Discipline(order), in_flight=2).services
    served = run(layout, order, 2)
    for resource in {*LAYOUTS[layout].values()}:
        ours = [(each.batch, each.stage) for each in served if LAYOUTS[layout][each.stage] == resource]
        assert ours == [(each.batch, each.stage) for each in modelled if each.resource == resource]


@pytest.mark.parametrize(("layout", "order"), ARMS)
@pytest.mark.parametrize("in_flight", [1, 2])
def test_no_resource_serves_two_at_once_and_no_batch_is_in_two_stages(
    layout: str, order: str, in_flight: int
) -> None:
    served = run(layout, order, in_flight)
    assert len(served) == BATCHES * len(STAGES)
    for shared in (lambda each: LAYOUTS[layout][each.stage], lambda each: each.batch):
        for value in {shared(each) for each in served}:
            own = sorted((each.began, each.ended) for each in served if shared(each) == value)
            assert all(before[1] <= after[0] for before, after in pairwise(own))


def test_one_batch_in_flight_is_one_after_another() -> None:
    served = run("apart", "first-come", 1)
    assert [each.batch for each in served] == [batch for batch in range(BATCHES) for _ in STAGES]


def test_a_repeat_times_the_first_batch_the_second_half_and_the_whole() -> None:
    repeat = Repeat(metrics=pipeline.metrics)
    pipeline(repeat, batches=4, scale=0.0001)
    found = repeat.readings()
    assert not found.problems
    assert found.values["t_first"] + found.values["t_middle"] <= found.values["t_run"]
    assert found.values["t_run"] >= 4 * 60 * 0.0001
