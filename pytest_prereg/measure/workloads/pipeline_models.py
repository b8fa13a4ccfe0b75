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

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

WORKLOAD_VERSION = "1"

_MOST_INSTANTS = 200_000
"""A line that has not repeated itself until then is given up."""


class Discipline(StrEnum):
    """Which of the batches that wait a free resource serves next."""

    FIRST_COME = "first-come"
    """The one that has waited longest; of those that came together, the oldest."""
    OLDEST_BATCH = "oldest-batch"
    """The one that entered the pipeline first."""
    IN_ORDER = "in-order"
    """Batch after batch with all their stages on it, as a program calls them one after another or a stream
    holds them: what is not ready holds up all that stands behind it."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One stage of a batch: what it is called, how long it takes, and the resource that it occupies meanwhile.

    Raises:
        ValueError: ``seconds`` is not a positive finite number.
    """

    name: str
    seconds: float
    resource: str

    def __post_init__(self) -> None:
        if not 0 < self.seconds < math.inf:
            raise ValueError(
                f"seconds: stage {self.name!r} must take a positive finite time, got {self.seconds}; "
                "leave out a stage that takes none"
            )


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
        ValueError: No stage, no batch, or a limit below 1.
    """
    line = _Line(stages, _counted("batches", batches), discipline, in_flight)
    while line.advance():
        pass
    return _summary(line, batches)


def steady_period(
    stages: Sequence[Stage], *, in_flight: int, discipline: Discipline = Discipline.FIRST_COME
) -> float:
    """Seconds per batch once an endless run has settled, exact: over one whole cycle of what repeats.

    Without a limit the first stages may run ever further ahead, and nothing repeats; the period is then that
    of a limit which is large enough.

    Raises:
        ValueError: No stage, or a limit below 1.
        ArithmeticError: Nothing had repeated after a long time.
    """
    line = _Line(stages, None, discipline, _counted("in_flight", in_flight))
    seen: dict[object, tuple[int, int]] = {}
    for _ in range(_MOST_INSTANTS):
        passed = line.passed
        line.advance()
        if line.passed == passed:
            continue
        state, here = line.state(), (line.now, line.passed)
        if state in seen:
            time, batches = seen[state]
            return line.seconds(Fraction(line.now - time, line.passed - batches))
        seen[state] = here
    raise ArithmeticError(f"stages: nothing repeats within {line.passed} batches; run a schedule instead")


def makespan_bounds(stages: Sequence[Stage], batches: int, *, in_flight: int | None = None) -> Bounds:
    """Seconds that ``batches`` take at least, whichever batch is served when.

    A resource works off all batches, no sooner than the first has reached it, and the last that it serves
    still has the stages behind it to pass. Of k batches in flight the next can't enter before one has left,
    so that the j-th leaves at least one whole pass later than the (j - k)-th.

    Raises:
        ValueError: No stage, no batch, or a limit below 1.
    """
    line = _Line(stages, _counted("batches", batches), Discipline.FIRST_COME, in_flight)
    resources = {
        resource: line.seconds(
            sum(line.ticks[: places[0]])
            + batches * sum(line.ticks[place] for place in places)
            + sum(line.ticks[places[-1] + 1 :])
        )
        for resource, places in line.places.items()
    }
    rounds = -(-batches // min(line.limit, batches))
    return Bounds(resources=resources, in_flight=line.seconds(rounds * sum(line.ticks)))


def period_bounds(stages: Sequence[Stage], *, in_flight: int | None = None) -> Bounds:
    """Seconds per batch that no discipline can beat in the long run: work by resource, and the limit's share.

    Raises:
        ValueError: No stage, or a limit below 1.
    """
    line = _Line(stages, None, Discipline.FIRST_COME, in_flight)
    work = {
        resource: line.seconds(sum(line.ticks[place] for place in places))
        for resource, places in line.places.items()
    }
    limit = 0.0 if in_flight is None else line.seconds(Fraction(sum(line.ticks), in_flight))
    return Bounds(resources=work, in_flight=limit)


def longest_span(stages: Sequence[Stage]) -> float:
    """Seconds for which serving in order reserves the resource that it reserves longest.

    From the first stage of a batch on it to the last, with whatever lies between. A stage with a resource of
    its own spans its own seconds; a GPU that both samples and synchronises weights spans the whole round.

    Raises:
        ValueError: No stage.
    """
    line = _Line(stages, None, Discipline.IN_ORDER, None)
    return line.seconds(_longest_span(line))


def in_order_makespan(stages: Sequence[Stage], batches: int, *, in_flight: int | None = None) -> float:
    """The makespan in closed form: one pass, and for every further batch what holds it up most.

    In order a schedule is the longest path through its services (a max-plus system; Baccelli, Cohen, Olsder,
    Quadrat 1992, Synchronization and Linearity, chapter 2). Each batch is held up by a resource for its span,
    or, as every k-th, for a whole pass by the limit of k in flight. With independent resources this is ``sum
    + (batches - 1) * longest``, with a single one ``batches * sum``. It holds for :attr:`Discipline.IN_ORDER`
    always, and for every discipline if each stage has a resource of its own, or all have the same one.

    Raises:
        ValueError: No stage, no batch, or a limit below 1.
    """
    line = _Line(stages, _counted("batches", batches), Discipline.IN_ORDER, in_flight)
    limit, passing, span = min(line.limit, batches), sum(line.ticks), _longest_span(line)
    rounds, others = divmod(batches - 1, limit)
    return line.seconds(passing + max((batches - 1) * span, rounds * passing + others * span))


def in_order_period(stages: Sequence[Stage], *, in_flight: int | None = None) -> float:
    """Seconds per batch in the long run where :func:`in_order_makespan` holds.

    Raises:
        ValueError: No stage, or a limit below 1.
    """
    return max(longest_span(stages), period_bounds(stages, in_flight=in_flight).in_flight)


class _Line:
    """A pipeline at work: where each batch is, what serves it until when, and who waits where. In ticks."""

    def __init__(
        self, stages: Sequence[Stage], batches: int | None, discipline: Discipline, in_flight: int | None
    ) -> None:
        if not stages:
            raise ValueError("stages: a pipeline needs at least one")
        self.stages = tuple(stages)
        self.limit = _most(batches, in_flight)
        self.services: list[tuple[int, int, int]] = []
        """Start, batch and place of the stage, in order of starts."""
        self.now = 0
        self.passed = 0
        """How many batches have passed the last stage."""
        exact = [Fraction(stage.seconds) for stage in stages]
        self._tick = Fraction(1, math.lcm(*(seconds.denominator for seconds in exact)))
        self.ticks = [int(seconds / self._tick) for seconds in exact]
        self.places: dict[str, list[int]] = {}
        """By resource, the places of its stages."""
        for place, stage in enumerate(stages):
            self.places.setdefault(stage.resource, []).append(place)
        self._batches, self._discipline = batches, discipline
        self._entered = 0
        self._ends: list[tuple[int, int, int]] = []
        self._waiting: dict[str, list[tuple[tuple[int, int], int, int]]] = {name: [] for name in self.places}
        self._free = set(self.places)
        self._orders = {resource: _order(places) for resource, places in self.places.items()}
        self._turn = {resource: next(order) for resource, order in self._orders.items()}
        self._enter()
        self._serve()

    def seconds(self, ticks: int | Fraction) -> float:
        """Ticks as seconds."""
        return float(ticks * self._tick)

    def advance(self) -> bool:
        """Go on to the next end of a service and to all that follows from it; false if there is none."""
        if not self._ends:
            return False
        self.now = self._ends[0][0]
        while self._ends and self._ends[0][0] == self.now:
            _, batch, place = heapq.heappop(self._ends)
            self._free.add(self.stages[place].resource)
            if place + 1 < len(self.stages):
                self._wait(batch, place + 1)
            else:
                self.passed += 1
        self._enter()
        self._serve()
        return True

    def state(self) -> tuple[object, ...]:
        """All that the rest of an endless run depends on, whenever it is."""
        served = sorted((batch - self._entered, place, end - self.now) for end, batch, place in self._ends)
        waiting = [
            [(batch - self._entered, place) for _, batch, place in sorted(line)]
            for line in self._waiting.values()
        ]
        turns = [(batch - self._entered, place) for batch, place in self._turn.values()]
        in_turn = turns if self._discipline is Discipline.IN_ORDER else []
        return (tuple(served), tuple(map(tuple, waiting)), tuple(in_turn))

    def _enter(self) -> None:
        while self._entered - self.passed < self.limit and self._entered != self._batches:
            self._wait(self._entered, 0)
            self._entered += 1

    def _wait(self, batch: int, place: int) -> None:
        since = self.now if self._discipline is Discipline.FIRST_COME else 0
        heapq.heappush(self._waiting[self.stages[place].resource], ((since, batch), batch, place))

    def _serve(self) -> None:
        for resource, line in self._waiting.items():
            if resource in self._free and line and self._may_serve(resource, line[0][1:]):
                _, batch, place = heapq.heappop(line)
                self._free.remove(resource)
                self.services.append((self.now, batch, place))
                heapq.heappush(self._ends, (self.now + self.ticks[place], batch, place))

    def _may_serve(self, resource: str, first: tuple[int, int]) -> bool:
        if self._discipline is not Discipline.IN_ORDER:
            return True
        if first != self._turn[resource]:
            return False
        self._turn[resource] = next(self._orders[resource])
        return True


def _order(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Batches and places in the order in which a program would call a resource."""
    return ((batch, place) for batch in count() for place in places)


def _counted(name: str, number: int) -> int:
    if number < 1:
        raise ValueError(f"{name}: at least 1, got {number}")
    return number


def _most(batches: int | None, in_flight: int | None) -> int:
    """How many batches may be in flight; an endless run without a limit is never advanced."""
    return (batches or 1) if in_flight is None else _counted("in_flight", in_flight)


def _longest_span(line: _Line) -> int:
    return max(sum(line.ticks[places[0] : places[-1] + 1]) for places in line.places.values())


def _summary(line: _Line, batches: int) -> Schedule:
    made = sorted(line.services)
    work = {resource: sum(line.ticks[place] for place in places) for resource, places in line.places.items()}
    bottleneck = max(work, key=lambda resource: work[resource])
    there = [
        (start, start + line.ticks[place]) for start, _, place in made if place in line.places[bottleneck]
    ]
    return Schedule(
        services=tuple(_served(line, *service) for service in made),
        makespan=line.seconds(line.now),
        synchronous=line.seconds(batches * sum(line.ticks)),
        busy={resource: line.seconds(batches * ticks) for resource, ticks in work.items()},
        idle={resource: line.seconds(line.now - batches * ticks) for resource, ticks in work.items()},
        bottleneck=bottleneck,
        fill=line.seconds(there[0][0]),
        drain=line.seconds(line.now - there[-1][1]),
    )


def _served(line: _Line, start: int, batch: int, place: int) -> Service:
    stage = line.stages[place]
    return Service(
        batch=batch,
        stage=stage.name,
        resource=stage.resource,
        start=line.seconds(start),
        end=line.seconds(start + line.ticks[place]),
    )
