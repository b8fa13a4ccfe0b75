"""The pipeline: published figures, closed forms, bounds, and what no schedule may do."""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_prereg.measure.workloads.barrier_models import stale_makespan
from pytest_prereg.measure.workloads.pipeline_models import (
    Discipline,
    Schedule,
    Stage,
    in_order_makespan,
    in_order_period,
    longest_span,
    makespan_bounds,
    period_bounds,
    schedule,
    steady_period,
)

ROUND = (60, 20, 30, 10)
WORK_CONSERVING = [Discipline.FIRST_COME, Discipline.OLDEST_BATCH]
few = settings(max_examples=60)


def line(seconds, resources) -> list[Stage]:
    return [
        Stage(name=f"stage {place}", seconds=taken, resource=resource)
        for place, (taken, resource) in enumerate(zip(seconds, resources, strict=True))
    ]


INDEPENDENT = line(ROUND, ["rollout", "verify", "update", "sync"])
SHARED = line(ROUND, ["gpu", "verify", "gpu", "gpu"])

# Awkward fractions on purpose: 0.1 + 0.2 must not decide who comes first.
lines = st.lists(
    st.tuples(st.integers(1, 9).map(lambda tenths: tenths / 10), st.sampled_from("abc")),
    min_size=1,
    max_size=5,
).map(lambda pairs: line(*zip(*pairs, strict=True)))
disciplines = st.sampled_from(Discipline)
batch_counts = st.integers(1, 6)
limits = st.none() | st.integers(1, 4)


def on_their_own(stages: list[Stage]) -> list[Stage]:
    return line([stage.seconds for stage in stages], [stage.name for stage in stages])


def passes(made: Schedule) -> dict[int, list]:
    found = defaultdict(list)
    for service in made.services:
        found[service.batch].append(service)
    return found


def test_a_synchronous_round_takes_the_sum_of_its_stages():
    assert schedule(INDEPENDENT, 1).makespan == 120
    assert schedule(SHARED, 10, in_flight=1).makespan == 10 * 120


def test_ten_batches_on_four_resources_are_less_than_twice_as_fast():
    made = schedule(INDEPENDENT, 10)
    assert made.makespan == 660
    assert made.speed_up == pytest.approx(1.818, abs=5e-4)
    assert (made.fill, made.drain) == (0, 60)
    assert made.idle == {"rollout": 60, "verify": 460, "update": 360, "sync": 560}


def test_the_first_batch_is_no_faster_than_without_a_pipeline():
    first = passes(schedule(INDEPENDENT, 10))[0]
    assert first[-1].end == 120


def test_the_bound_of_sixty_needs_four_independent_resources():
    assert period_bounds(INDEPENDENT).highest == 60
    assert period_bounds(SHARED).highest == 100


@pytest.mark.parametrize("discipline", WORK_CONSERVING)
def test_on_a_shared_gpu_two_batches_in_flight_reach_the_bound_of_a_hundred(discipline: Discipline):
    assert steady_period(SHARED, in_flight=2, discipline=discipline) == 100
    assert schedule(SHARED, 10, in_flight=2, discipline=discipline).makespan == 1000


def test_on_a_shared_gpu_that_is_served_in_order_nothing_is_gained():
    made = schedule(SHARED, 10, discipline=Discipline.IN_ORDER)
    assert made.makespan == made.synchronous == 1200
    assert longest_span(SHARED) == 120


@pytest.mark.parametrize(("in_flight", "period"), [(1, 120), (2, 60), (3, 60)])
@pytest.mark.parametrize("discipline", Discipline)
def test_without_staleness_there_is_no_overlap(discipline: Discipline, in_flight: int, period: float):
    assert steady_period(INDEPENDENT, in_flight=in_flight, discipline=discipline) == period


def test_one_who_waits_longest_comes_first():
    """At 60 both the update of batch 0 is asked for and batch 1 has long waited for its rollout."""
    stages = line([60, 30], ["gpu", "gpu"])
    order = [(service.batch, service.stage) for service in schedule(stages, 2).services]
    assert order == [(0, "stage 0"), (1, "stage 0"), (0, "stage 1"), (1, "stage 1")]


def test_the_oldest_batch_comes_first_even_if_others_have_waited_longer():
    stages = line([60, 30], ["gpu", "gpu"])
    made = schedule(stages, 2, discipline=Discipline.OLDEST_BATCH)
    order = [(service.batch, service.stage) for service in made.services]
    assert order == [(0, "stage 0"), (0, "stage 1"), (1, "stage 0"), (1, "stage 1")]


@given(lines, batch_counts, disciplines, limits)
@few
def test_no_resource_serves_two_at_once_and_stages_keep_their_order(stages, batches, discipline, in_flight):
    made = schedule(stages, batches, discipline=discipline, in_flight=in_flight)
    by_resource = defaultdict(list)
    for service in made.services:
        by_resource[service.resource].append(service)
    for served in by_resource.values():
        assert all(before.end <= after.start for before, after in pairwise(served))
    for passed in passes(made).values():
        assert [service.stage for service in passed] == [stage.name for stage in stages]
        assert all(before.end <= after.start for before, after in pairwise(passed))
    assert len(made.services) == batches * len(stages)
    assert max(service.end for service in made.services) == made.makespan


@given(lines, batch_counts, disciplines, limits)
@few
def test_never_more_batches_are_in_flight_than_allowed(stages, batches, discipline, in_flight):
    passed = passes(schedule(stages, batches, discipline=discipline, in_flight=in_flight)).values()
    spans = [(services[0].start, services[-1].end) for services in passed]
    most = max(sum(start <= at < end for start, end in spans) for at, _ in spans)
    assert most <= (in_flight or batches)


@given(lines, batch_counts, st.sampled_from(WORK_CONSERVING))
@few
def test_a_resource_serves_who_comes_first_by_its_discipline_and_never_waits(stages, batches, discipline):
    """Replayed from the outside: at every start nobody with a better claim was waiting."""
    made = schedule(stages, batches, discipline=discipline)
    came = {
        (service.batch, service.stage): services[place - 1].end if place else 0.0
        for services in passes(made).values()
        for place, service in enumerate(services)
    }
    for service in made.services:
        claim = came[service.batch, service.stage], service.batch
        for other in made.services:
            if (
                other.resource == service.resource
                and came[other.batch, other.stage] <= service.start < other.start
            ):
                theirs = came[other.batch, other.stage], other.batch
                better = claim < theirs if discipline is Discipline.FIRST_COME else claim[1] < theirs[1]
                assert better
        at_work = [each.end for each in made.services if each.resource == service.resource]
        assert service.start in {claim[0], *at_work}


@given(lines, batch_counts, disciplines, limits)
@few
def test_a_makespan_lies_between_every_bound_and_one_batch_after_another(
    stages, batches, discipline, in_flight
):
    made = schedule(stages, batches, discipline=discipline, in_flight=in_flight)
    assert makespan_bounds(stages, batches, in_flight=in_flight).highest <= made.makespan <= made.synchronous
    assert made.speed_up >= 1


@given(lines, batch_counts, disciplines, limits)
@few
def test_what_is_busy_and_what_is_idle_make_up_the_makespan(stages, batches, discipline, in_flight):
    made = schedule(stages, batches, discipline=discipline, in_flight=in_flight)
    for resource, busy in made.busy.items():
        served = [service for service in made.services if service.resource == resource]
        assert math.fsum(service.end - service.start for service in served) == pytest.approx(busy)
        assert busy + made.idle[resource] == pytest.approx(made.makespan)
    there = [service for service in made.services if service.resource == made.bottleneck]
    assert made.busy[made.bottleneck] == max(made.busy.values())
    assert made.fill == there[0].start
    assert made.drain == pytest.approx(made.makespan - there[-1].end)


@given(lines, batch_counts, limits)
@few
def test_in_order_the_closed_form_is_exact(stages, batches, in_flight):
    made = schedule(stages, batches, discipline=Discipline.IN_ORDER, in_flight=in_flight)
    assert made.makespan == in_order_makespan(stages, batches, in_flight=in_flight)


@given(lines, batch_counts, disciplines, limits)
@few
def test_with_independent_resources_every_discipline_has_the_closed_form(
    stages, batches, discipline, in_flight
):
    stages = on_their_own(stages)
    made = schedule(stages, batches, discipline=discipline, in_flight=in_flight)
    assert made.makespan == in_order_makespan(stages, batches, in_flight=in_flight)
    if in_flight is None:
        seconds = [stage.seconds for stage in stages]
        assert made.makespan == pytest.approx(sum(seconds) + (batches - 1) * max(seconds))


@given(lines, batch_counts, disciplines, limits)
@few
def test_with_one_resource_every_discipline_takes_the_whole_work(stages, batches, discipline, in_flight):
    stages = line([stage.seconds for stage in stages], ["gpu"] * len(stages))
    made = schedule(stages, batches, discipline=discipline, in_flight=in_flight)
    assert made.makespan == made.synchronous == in_order_makespan(stages, batches, in_flight=in_flight)


@given(lines, disciplines, st.integers(1, 3))
@few
def test_a_steady_period_is_what_many_batches_take_each(stages, discipline, in_flight):
    period = steady_period(stages, in_flight=in_flight, discipline=discipline)
    assert period >= period_bounds(stages, in_flight=in_flight).highest
    few_batches, many = (
        schedule(stages, batches, discipline=discipline, in_flight=in_flight).makespan for batches in (20, 80)
    )
    passing = sum(stage.seconds for stage in stages)
    assert (many - few_batches) / 60 == pytest.approx(period, abs=2 * in_flight * passing / 60)


@given(lines, st.integers(1, 4))
@few
def test_the_period_in_order_has_a_closed_form(stages, in_flight):
    period = steady_period(stages, in_flight=in_flight, discipline=Discipline.IN_ORDER)
    assert period == pytest.approx(in_order_period(stages, in_flight=in_flight), rel=1e-12)


def test_a_period_that_does_not_settle_is_an_error_and_no_guess():
    stages = line([10.1, 50.9, 2.0, 50.1, 55.4001], "bbcac")
    with pytest.raises(ArithmeticError, match=r"nothing repeats within .* take the period from a schedule"):
        steady_period(stages, in_flight=4)
    assert steady_period(stages, in_flight=4, discipline=Discipline.IN_ORDER) == 107.5001


@given(lines, batch_counts, limits, st.data())
@few
def test_in_order_a_resource_more_a_shorter_stage_and_a_higher_limit_never_hurt(
    stages, batches, in_flight, data
):
    def makespan(changed, limit=in_flight):
        return schedule(changed, batches, discipline=Discipline.IN_ORDER, in_flight=limit).makespan

    place = data.draw(st.integers(0, len(stages) - 1))
    stage = stages[place]
    before = makespan(stages)
    for better in (
        Stage(name=stage.name, seconds=stage.seconds, resource="new"),
        Stage(name=stage.name, seconds=stage.seconds / 2, resource=stage.resource),
    ):
        assert makespan([*stages[:place], better, *stages[place + 1 :]]) <= before
    if in_flight is not None:
        assert makespan(stages, in_flight + 1) <= before


@pytest.mark.parametrize("discipline", WORK_CONSERVING)
def test_out_of_order_a_resource_more_can_hurt(discipline: Discipline):
    """The first stage of batch 1 ends sooner, so that its second stage gets in the way of batch 0's last."""
    seconds = [2, 1, 1, 2]
    shared = schedule(line(seconds, "acac"), 2, discipline=discipline)
    of_its_own = schedule(line(seconds, "bcac"), 2, discipline=discipline)
    assert (shared.makespan, of_its_own.makespan) == (9, 10)


@pytest.mark.parametrize("discipline", WORK_CONSERVING)
def test_out_of_order_a_shorter_stage_can_hurt(discipline: Discipline):
    long, short = (
        schedule(line(seconds, "aba"), 3, discipline=discipline, in_flight=2).makespan
        for seconds in ([1, 4, 3], [1, 3, 3])
    )
    assert (long, short) == (16, 17)


def test_first_come_more_batches_in_flight_can_hurt():
    two, three = (schedule(SHARED, 10, in_flight=limit).makespan for limit in (2, 3))
    assert (two, three) == (1000, 1020)


@pytest.mark.parametrize("staleness", [0, 1, 2, 3])
def test_oldest_first_is_the_stale_trainer_of_the_barrier_models(staleness: int):
    """While no two batches wait for rewards at once, which there take no resource."""
    stages = line([12.5, 2, 12.25], ["gpu", "rewards", "gpu"])
    made = schedule(stages, 40, discipline=Discipline.OLDEST_BATCH, in_flight=staleness + 1)
    (whole,) = stale_makespan(np.full((1, 40), 2.0), staleness=staleness, generation=12.5, training=12.25)
    assert made.makespan == pytest.approx(whole)


@pytest.mark.parametrize("seconds", [0, -1, math.inf, math.nan, 1e308, True])
def test_a_stage_takes_a_time(seconds: float):
    with pytest.raises(ValueError, match=r"stage 'sync'.* (give a time from 0 to|leave out a stage)"):
        Stage(name="sync", seconds=seconds, resource="gpu")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: schedule([], 1), "a pipeline without stages"),
        (lambda: schedule(SHARED, 0), "batches = 0"),
        (lambda: schedule(SHARED, 1, in_flight=0), "in_flight = 0"),
        (lambda: steady_period(SHARED, in_flight=0), "in_flight = 0"),
        (lambda: makespan_bounds(SHARED, -1), "batches = -1"),
        (lambda: period_bounds(SHARED, in_flight=0), "in_flight = 0"),
        (lambda: in_order_makespan(SHARED, 0), "batches = 0"),
        (lambda: schedule(SHARED, math.nan), "batches = nan"),
        (lambda: schedule(SHARED, 2.5), r"batches = 2\.5"),
        (lambda: schedule(SHARED, math.inf), "batches = inf"),
        (lambda: schedule(SHARED, 10**6), "batches = 1000000: give a whole number from 1 to 250,000"),
        (lambda: schedule(SHARED, 2, in_flight=1.5), r"in_flight = 1\.5"),
        (lambda: steady_period(SHARED, in_flight=math.inf), "in_flight = inf"),
        (lambda: period_bounds(SHARED, in_flight=math.nan), "in_flight = nan"),
        (lambda: in_order_makespan(SHARED, 5, in_flight=math.nan), "in_flight = nan"),
    ],
)
def test_what_makes_no_pipeline_is_refused(call, said: str):
    with pytest.raises(ValueError, match=said):
        call()
