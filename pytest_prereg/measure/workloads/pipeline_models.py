"""An exact model of a pipeline: batches pass through stages, each on a resource that serves one at a time.

Rollout, verification, update and weight synchronisation take their seconds one after another for one batch;
batches overlap where the resources that they need differ. Times are whole ticks of a common denominator, so
that no rounding breaks a tie, and become floats at the end. Every stage takes the same time in each batch:
what stragglers cost is the subject of the barrier's models.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from itertools import count
from typing import TYPE_CHECKING

from pytest_prereg.measure.workloads.models.checks import check_count, check_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

WORKLOAD_VERSION = "1"

_MOST_INSTANTS = 50_000
"""A line that has not repeated itself until then is given up."""
_MOST_SERVICES = 10**6
_MOST_IN_FLIGHT = 1000
"""Of an endless run, whose state is compared after every batch."""


class Discipline(StrEnum):
    """Which of the batches that wait a free resource serves next.

    No discipline is slower than one batch after another. In order, a shorter stage, a resource more or a
    higher limit of batches in flight never makes a run longer. With the others each of them can, as what is
    served sooner may stand in the way of what matters more (Graham 1969, Bounds on multiprocessing timing
    anomalies).
    """

    FIRST_COME = "first-come"
    """The one that has waited longest; of those that came together, the oldest."""
    OLDEST_BATCH = "oldest-batch"
    """The one that entered the pipeline first."""
    IN_ORDER = "in-order"
    """Batch after batch with all their stages on it, as a program calls them one after another or a stream
    holds them: what is not ready holds up all that stands behind it."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One stage of a batch: its name, its seconds, and the resource that it occupies meanwhile.

    Raises:
        ValueError: The seconds are not a positive number, of at most ten to the fifteen.
    """

    name: str
    seconds: float
    resource: str

    def __post_init__(self) -> None:
        check_seconds(**{f"stage {self.name!r}: seconds": self.seconds})
        if self.seconds == 0:
            raise ValueError(f"stage {self.name!r} takes 0 s: leave out a stage that takes none")


@dataclass(frozen=True, kw_only=True)
class Service:
    """One stage of one batch as it was served, in seconds from the start of the pipeline."""

    batch: int
    stage: str
    resource: str
    start: float
    end: float


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """What came of a run; times in seconds from its start."""

    services: tuple[Service, ...]
    """In order of their starts; those of one instant by batch."""
    makespan: float
    """Until the last batch has passed the last stage."""
    synchronous: float
    """What the same batches take one after another."""
    busy: dict[str, float]
    """By resource: how long it serves."""
    idle: dict[str, float]
    """By resource: how long it does not, until the makespan."""
    bottleneck: str
    """The resource that is busy longest; of equals, the one that is needed first."""
    fill: float
    """Until the bottleneck serves for the first time."""
    drain: float
    """From the last time that it serves until the makespan."""

    @property
    def speed_up(self) -> float:
        """How many times faster than one batch after another."""
        return self.synchronous / self.makespan


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What no discipline can beat, in seconds, for a makespan or per batch."""

    resources: dict[str, float]
    """By resource: its work, and where a makespan is bounded the way to it and from it."""
    in_flight: float
    """What the limit of batches in flight leaves; without one, what a single batch takes."""

    @property
    def highest(self) -> float:
        """The largest of them, which binds."""
        return max(self.in_flight, *self.resources.values())


def schedule(
    stages: Sequence[Stage],
    batches: int,
    *,
    discipline: Discipline = Discipline.FIRST_COME,
    in_flight: int | None = None,
) -> Schedule:
    """Run ``batches`` through ``stages``, all of them there from the start, and say when each was served.

    Args:
        stages: In the order in which a batch passes them.
        batches: How many there are.
        discipline: Which batch a free resource serves next.
        in_flight: How many batches may have entered and not yet passed the last stage; 1 is the synchronous
            loop, and ``k + 1`` lets samples be ``k`` updates old. ``None``: all of them.

    Raises:
        ValueError: No stage, no batch, more services than can be listed, or a limit below 1.
    """
    plan = _Plan(stages)
    check_count(batches=batches, most=_MOST_SERVICES // len(plan.stages))
    line = _Line(plan, discipline, batches=batches, limit=_limit(batches, in_flight))
    while line.advance():
        pass
    return _summary(plan, line, batches)


def steady_period(
    stages: Sequence[Stage], *, in_flight: int, discipline: Discipline = Discipline.FIRST_COME
) -> float:
    """Seconds per batch once an endless run has settled, exact: over one whole cycle of what repeats.

    Without a limit the first stages may run ever further ahead, and nothing repeats; the period is then that
    of a limit which is large enough.

    In order it always settles. With the others few pipelines don't in any useful time: two cycles that share
    a resource and have hardly a common measure drift past each other.

    Raises:
        ValueError: No stage, or a limit below 1 or above 1000.
        ArithmeticError: Nothing had repeated after a long time.
    """
    plan = _Plan(stages)
    check_count(in_flight=in_flight, most=_MOST_IN_FLIGHT)
    line = _Line(plan, discipline, batches=None, limit=in_flight)
    seen: dict[object, tuple[int, int]] = {}
    for _ in range(_MOST_INSTANTS):
        passed = line.passed
        line.advance()
        if line.passed == passed:
            continue
        time, batches = seen.setdefault(line.state(), (line.now, line.passed))
        if batches < line.passed:
            return plan.seconds(Fraction(line.now - time, line.passed - batches))
    raise ArithmeticError(
        f"nothing repeats within {line.passed} batches: take the period from a schedule instead"
    )


def makespan_bounds(stages: Sequence[Stage], batches: int, *, in_flight: int | None = None) -> Bounds:
    """Seconds that ``batches`` take at least, whichever batch is served when.

    A resource works off all batches, no sooner than the first has reached it, and the last that it serves
    still has the stages behind it to pass. Of k batches in flight the next can't enter before one has left,
    so that the j-th to leave does so at least one whole pass later than the (j - k)-th.

    Raises:
        ValueError: No stage, no batch, or a limit below 1.
    """
    plan = _Plan(stages)
    check_count(batches=batches)
    resources = {
        resource: plan.seconds(
            sum(plan.ticks[: places[0]]) + batches * plan.work(resource) + sum(plan.ticks[places[-1] + 1 :])
        )
        for resource, places in plan.places.items()
    }
    rounds = -(-batches // _limit(batches, in_flight))
    return Bounds(resources=resources, in_flight=plan.seconds(rounds * plan.passing))


def period_bounds(stages: Sequence[Stage], *, in_flight: int | None = None) -> Bounds:
    """Seconds per batch that no discipline can beat in the long run: work by resource, and the limit's share.

    Raises:
        ValueError: No stage, or a limit below 1.
    """
    plan = _Plan(stages)
    if in_flight is not None:
        check_count(in_flight=in_flight)
    return Bounds(
        resources={resource: plan.seconds(plan.work(resource)) for resource in plan.places},
        in_flight=0.0 if in_flight is None else plan.seconds(Fraction(plan.passing, in_flight)),
    )


def longest_span(stages: Sequence[Stage]) -> float:
    """Seconds for which serving in order reserves the resource that it reserves longest.

    From the first stage of a batch on it to the last, with whatever lies between. A stage with a resource of
    its own spans its own seconds; a GPU that both samples and synchronises weights spans the whole round.

    Raises:
        ValueError: No stage.
    """
    plan = _Plan(stages)
    return plan.seconds(plan.span)


def in_order_makespan(stages: Sequence[Stage], batches: int, *, in_flight: int | None = None) -> float:
    """Seconds for ``batches`` in closed form: one pass, and for every further batch what holds it up most.

    In order a schedule is the longest path through its services (a max-plus system; Baccelli, Cohen, Olsder,
    Quadrat 1992, Synchronization and Linearity, chapter 2). Each batch is held up by a resource for its span,
    or every k-th by the limit of k in flight for a whole pass. With independent resources and no limit this
    is ``sum + (batches - 1) * longest``, with a single one ``batches * sum``. It holds for
    :attr:`Discipline.IN_ORDER` always, and for every discipline where each stage has a resource of its own or
    all have the same one.

    Raises:
        ValueError: No stage, no batch, or a limit below 1.
    """
    plan = _Plan(stages)
    check_count(batches=batches)
    rounds, others = divmod(batches - 1, _limit(batches, in_flight))
    held_up = max((batches - 1) * plan.span, rounds * plan.passing + others * plan.span)
    return plan.seconds(plan.passing + held_up)


def in_order_period(stages: Sequence[Stage], *, in_flight: int | None = None) -> float:
    """Seconds per batch in the long run, wherever :func:`in_order_makespan` holds.

    Raises:
        ValueError: No stage, or a limit below 1.
    """
    return max(longest_span(stages), period_bounds(stages, in_flight=in_flight).in_flight)


class _Plan:
    """What a batch passes, in ticks."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        if not stages:
            raise ValueError("a pipeline without stages: give at least one")
        # As it is written: the float 0.1 is a little more than a tenth, and would break ties.
        exact = [Fraction(str(stage.seconds)) for stage in stages]
        self._tick = Fraction(1, math.lcm(*(seconds.denominator for seconds in exact)))
        self.stages = tuple(stages)
        self.ticks = [int(seconds / self._tick) for seconds in exact]
        self.passing = sum(self.ticks)
        self.places: dict[str, list[int]] = {}
        """By resource, the places of its stages."""
        for place, stage in enumerate(stages):
            self.places.setdefault(stage.resource, []).append(place)
        self.span = max(sum(self.ticks[places[0] : places[-1] + 1]) for places in self.places.values())

    def work(self, resource: str) -> int:
        """For how long a batch occupies a resource."""
        return sum(self.ticks[place] for place in self.places[resource])

    def seconds(self, ticks: int | Fraction) -> float:
        """Ticks as seconds."""
        return float(ticks * self._tick)


class _Line:
    """A pipeline at work: where each batch is, what serves it until when, and who waits where."""

    def __init__(self, plan: _Plan, discipline: Discipline, *, batches: int | None, limit: int) -> None:
        self._plan, self._discipline = plan, discipline
        self._batches, self._limit = batches, limit
        self.now = 0
        self.passed = 0
        """How many batches have passed the last stage."""
        self.services: list[tuple[int, int, int]] = []
        """Start, batch and place of the stage."""
        self._entered = 0
        self._ends: list[tuple[int, int, int]] = []
        self._waiting: dict[str, list[tuple[int, int, int]]] = {resource: [] for resource in plan.places}
        """By resource, a heap of what comes first, batch and place."""
        self._free = set(plan.places)
        self._orders = {resource: _order(places) for resource, places in plan.places.items()}
        self._turns = {resource: next(order) for resource, order in self._orders.items()}
        """By resource, the batch and place that it serves next in order."""
        self._go_on()

    def advance(self) -> bool:
        """Go on to the next end of a service and to all that follows from it; false if there is none."""
        if not self._ends:
            return False
        self.now = self._ends[0][0]
        while self._ends and self._ends[0][0] == self.now:
            _, batch, place = heapq.heappop(self._ends)
            self._free.add(self._plan.stages[place].resource)
            if place + 1 < len(self._plan.stages):
                self._wait(batch, place + 1)
            else:
                self.passed += 1
        self._go_on()
        return True

    def state(self) -> tuple[object, ...]:
        """All that the rest of an endless run depends on, counted from now and from the next batch to enter.

        Of those that wait only their order counts: whoever comes later stands behind them, however long they
        have waited.
        """
        served = sorted((batch - self._entered, place, end - self.now) for end, batch, place in self._ends)
        waiting = (
            (batch - self._entered, place)
            for line in self._waiting.values()
            for _, batch, place in sorted(line)
        )
        turns = ((batch - self._entered, place) for batch, place in self._turns.values())
        return (tuple(served), tuple(waiting), tuple(turns) if self._in_order else ())

    @property
    def _in_order(self) -> bool:
        return self._discipline is Discipline.IN_ORDER

    def _go_on(self) -> None:
        """Let in what may enter, and let every free resource serve what may come next."""
        while self._entered - self.passed < self._limit and self._entered != self._batches:
            self._wait(self._entered, 0)
            self._entered += 1
        for resource, line in self._waiting.items():
            if resource in self._free and line and self._may_serve(resource, line[0]):
                _, batch, place = heapq.heappop(line)
                self._free.remove(resource)
                self.services.append((self.now, batch, place))
                heapq.heappush(self._ends, (self.now + self._plan.ticks[place], batch, place))

    def _wait(self, batch: int, place: int) -> None:
        since = self.now if self._discipline is Discipline.FIRST_COME else 0
        heapq.heappush(self._waiting[self._plan.stages[place].resource], (since, batch, place))

    def _may_serve(self, resource: str, first: tuple[int, int, int]) -> bool:
        if not self._in_order:
            return True
        if first[1:] != self._turns[resource]:
            return False
        self._turns[resource] = next(self._orders[resource])
        return True


def _order(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Batches and places in the order in which a program would call a resource."""
    return ((batch, place) for batch in count() for place in places)


def _limit(batches: int, in_flight: int | None) -> int:
    if in_flight is None:
        return batches
    check_count(in_flight=in_flight)
    return min(in_flight, batches)


def _summary(plan: _Plan, line: _Line, batches: int) -> Schedule:
    made = sorted(line.services)
    work = {resource: batches * plan.work(resource) for resource in plan.places}
    bottleneck = max(work, key=lambda resource: work[resource])
    there = [service for service in made if service[2] in plan.places[bottleneck]]
    first, last = there[0][0], there[-1][0] + plan.ticks[there[-1][2]]
    return Schedule(
        services=tuple(_served(plan, *service) for service in made),
        makespan=plan.seconds(line.now),
        synchronous=plan.seconds(batches * plan.passing),
        busy={resource: plan.seconds(ticks) for resource, ticks in work.items()},
        idle={resource: plan.seconds(line.now - ticks) for resource, ticks in work.items()},
        bottleneck=bottleneck,
        fill=plan.seconds(first),
        drain=plan.seconds(line.now - last),
    )


def _served(plan: _Plan, start: int, batch: int, place: int) -> Service:
    stage = plan.stages[place]
    return Service(
        batch=batch,
        stage=stage.name,
        resource=stage.resource,
        start=plan.seconds(start),
        end=plan.seconds(start + plan.ticks[place]),
    )
