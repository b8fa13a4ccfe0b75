"""Sessions whose repeats a service runs: each says where it ran, and is paid for by itself."""

from __future__ import annotations

import pytest
from loop_bench import FAULT, OK, Bench, Script, finished
from msgspec.structs import replace

from pytest_prereg.evidence.model import Outcome
from pytest_prereg.measure.limits import Forecast, Limits, Meter, Need

DOLLAR = 3600.0
"""USD an hour: a dollar a second."""
L4 = {"gpu": ["NVIDIA L4"], "driver": "550.1", "region": "us-east", "backend": "modal"}


@pytest.fixture
def bench(laboratory, monkeypatch) -> Bench:
    bench = Bench(laboratory, monkeypatch)
    here = bench.header
    bench.header = lambda **fields: here(**{"executor": "modal", **fields})
    return bench


def ran(**more):
    return replace(OK, **{"environment": L4, **more})


def test_each_repeat_is_of_the_machine_that_it_says(bench):
    lines = bench.run(Script(ran(environment={}), then=ran()))
    machines = [line.machine for line in finished(lines)]
    assert machines == [None, *["NVIDIA L4 | 550 | us-east | modal"] * (len(machines) - 1)]
    assert [one.machine for one in bench.series().repeats] == machines


def test_conditions_are_held_against_where_it_ran_and_what_never_began_broke_none(bench):
    bench.declare(conditions={"gpu": "*H100*", "region": "us-*"})
    lines = finished(bench.run(Script(FAULT, then=ran())))
    assert lines[0].outcome is Outcome.INFRASTRUCTURE
    assert lines[0].outside is None
    assert {line.outside for line in lines[1:]} == {'gpu is "NVIDIA L4", and the conditions want "*H100*"'}


def test_what_lies_between_repeats_costs_nothing(bench):
    """Each is two seconds; the clock runs an hour beside them."""
    bench.arrange(timeout=None)
    limits = Limits(budget=9.0, clock=iter(range(0, 10**9, 3600)).__next__)
    header = bench.header(rates={"a": DOLLAR, "b": DOLLAR})
    lines = bench.run(Script(then=ran()), header=header, limits=limits)
    assert len(finished(lines)) == 4
    assert (
        bench.stopped == "$8.00 of the budget of $9.00 are spent, and the next repeat is likely to cost $2.00"
    )
    assert limits.usd == pytest.approx(8.0)


def test_where_it_does_not_say_what_it_took_the_queue_is_left_out(bench):
    lines = finished(bench.run(Script(then=ran(seconds={"queue": 1e6}))))
    assert {line.seconds["total"] for line in lines} == {0.0}


def test_a_meter_of_a_service_counts_no_builds_and_no_waiting():
    meter = Meter({"a": DOLLAR}, iter([0, 50, 100]).__next__, before=40.0, elsewhere=True)
    meter.add("a", 2.0)
    meter.add("free", 8.0)
    assert meter.usd == 2.0


def test_side_by_side_they_take_less_time_and_as_much_money(bench):
    forecast = Forecast(bench.experiment, {"a": DOLLAR, "b": DOLLAR}, parallel=4)
    forecast.learn("a", 10.0)
    forecast.learn("b", 2.0)
    assert forecast.whole(["a", "b"] * 8) == Need(seconds=24.0, usd=96.0)
    assert forecast.of(["a", "b"]) == Need(seconds=10.0, usd=12.0)
