"""A pool that runs rewards in forked processes, first in, first out, and holds each to its deadline.

Everything happens in the thread that waits: it blocks until a program ends, a deadline passes or a creation
may begin, and stamps what ends when it ends. So there is no thread to fork beside, and no second process to
trust. An accelerator that is busy meanwhile is a wait as well (:meth:`RewardPool.serve`).

Processes are forked ahead, while nothing is due. A warm pool uses them again and again; a cold pool uses each
once, and what a platform takes for the creation is *stated* and slept in it: this machine's fork, which has
nothing to do with that, must not come on top.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from dataclasses import dataclass
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple, Self

from pytest_prereg.measure.workloads.reward_workers import FOREVER, Crew, Worker

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["FOREVER", "Batch", "Gate", "RewardPool"]

WORKLOAD_VERSION = "1"

_SPARES = 32
"""How many processes a cold pool keeps ready beyond those at work: what a round that ends at once takes."""
_MENDING = 0.005
"""Seconds that must be left until the next thing is due: forking and reaping a process takes less."""
_LULL = 0.001
"""Seconds of silence that tell that a burst of answers is over."""


@dataclass(kw_only=True, eq=False)
class Batch:
    """Programs that were submitted together; moments are on the monotonic clock, in seconds."""

    submitted: float
    ends: list[float]
    """When each program ended: by itself, or killed and reaped; ``nan`` until then."""
    unfinished: int
    cut: int = 0
    """How many programs the deadline cut off."""

    @property
    def done(self) -> bool:
        """Whether every program has ended."""
        return not self.unfinished

    @property
    def ended(self) -> float:
        """When the last program ended; ``nan`` until then."""
        return max(self.ends, default=self.submitted) if self.done else math.nan


class _Program(NamedTuple):
    batch: Batch
    place: int
    duration: float
    deadline: float

    @property
    def has_ended(self) -> bool:
        return not math.isnan(self.batch.ends[self.place])

    def end(self) -> None:
        self.batch.ends[self.place] = monotonic()
        self.batch.unfinished -= 1


class _Due(NamedTuple):
    """When a program that still runs is to be killed; sorts by that."""

    moment: float
    order: int
    worker: Worker
    program: _Program


class Gate:
    """Lets one creation begin every ``1 / rate`` seconds; ``None`` lets all through.

    What queued and passes late, because this machine was, doesn't put off what queues behind it.
    """

    def __init__(self, rate: float | None) -> None:
        self.opens = -math.inf
        """The moment from which on the next may pass."""
        self._interval = 1 / rate if rate else 0.0
        self._queued = False

    def passes(self, now: float) -> bool:
        """Whether one may begin ``now``; then it has."""
        if now < self.opens:
            self._queued = True
            return False
        self.opens = (self.opens if self._queued else now) + self._interval
        self._queued = False
        return True


class RewardPool:
    """Runs at most ``workers`` programs at a time; no process is left when its block ends.

    Args:
        workers: How many programs run at a time.
        warm: Whether a process runs one program after another, or a single one after its creation.
        creation: Seconds that the creation of a cold process takes, while it occupies a worker; the
            program's clock starts after it.
        rate: How many creations a second may begin; ``None`` for no limit.
    """

    def __init__(
        self, workers: int, *, warm: bool = True, creation: float = 0.0, rate: float | None = None
    ) -> None:
        self._workers = workers
        self._warm = warm
        self._creation = 0.0 if warm else creation
        self._gate = Gate(None if warm else rate)
        self._crew = Crew(workers if warm else workers + min(workers, _SPARES))
        self._queue: deque[_Program] = deque()
        self._running: dict[Worker, _Program] = {}
        self._dues: list[_Due] = []
        self._orders = count()
        self._quiet = False

    def __enter__(self) -> Self:
        try:
            self.refill()
            if self._warm:  # a process is slower at its first program: it copies the memory that it touches
                self.wait(self.submit([0.0] * self._workers, deadline=math.inf))
        except BaseException:
            self._crew.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._crew.close()

    def refill(self) -> None:
        """Replace at once what was killed or used up; for the time in which no program runs."""
        while not self._crew.complete:
            self._crew.mend()

    def submit(self, durations: Sequence[float], *, deadline: float) -> Batch:
        """Queue one program per duration, behind all that are queued; begin those that can begin.

        Each is killed ``deadline`` seconds after it began, if it still runs. A warm one begins when it is
        handed to its worker, a cold one when its creation is over.

        Raises:
            ChildProcessError: A worker died of something else; so do the methods that wait.
        """
        batch = Batch(submitted=monotonic(), ends=[math.nan] * len(durations), unfinished=len(durations))
        self._queue.extend(
            _Program(batch, place, duration, deadline) for place, duration in enumerate(durations)
        )
        self._hand_out()
        return batch

    def wait(self, batch: Batch) -> None:
        """Return when every program of the batch has ended or was cut off."""
        while not batch.done:
            self._turn(math.inf)

    def wait_any(self, batches: Iterable[Batch], *, until: float = math.inf) -> list[Batch]:
        """Return the batches that are done, first ended first: at least one, or none once it is ``until``."""
        batches = list(batches)
        while not (done := [batch for batch in batches if batch.done]) and monotonic() < until:
            self._turn(until)
        return sorted(done, key=lambda batch: batch.ended)

    def serve(self, until: float) -> None:
        """Return at the moment ``until``, having served the pool meanwhile."""
        while monotonic() < until:
            self._turn(until)

    def _turn(self, until: float) -> None:
        """Wait for the next thing that happens, or for the moment ``until``, and see to it."""
        left = min(until, self._next_due(), self._next_creation()) - monotonic()
        # Where somebody waits for a batch alone, forks that no program wants yet would only be in its way.
        wanted = until < math.inf or len(self._crew.idle) < len(self._queue)
        mends = wanted and left > _MENDING and not self._crew.complete
        heard = self._crew.heard_from(self._patience() if mends else left)
        for worker in heard:
            self._take_answer(worker)
        self._cut_off()
        self._hand_out()
        if mends and not heard:
            self._crew.mend()
        self._quiet = not heard

    def _patience(self) -> float:
        """How long to listen before mending: a burst of answers, and what it sets off, comes first."""
        return 0.0 if self._quiet or (self._queue and not self._crew.idle) else _LULL

    def _take_answer(self, worker: Worker) -> None:
        worker.take_answer()
        self._running.pop(worker).end()
        if self._warm:
            self._crew.idle.append(worker)
        else:
            self._crew.retire(worker)

    def _cut_off(self) -> None:
        late = []
        while self._next_due() <= monotonic():
            late.append(heapq.heappop(self._dues))
        self._crew.kill([due.worker for due in late])
        for due in late:
            self._running.pop(due.worker).end()
            due.program.batch.cut += 1

    def _hand_out(self) -> None:
        while self._can_begin() and self._gate.passes(monotonic()):
            program, worker = self._queue.popleft(), self._crew.idle.popleft()
            worker.begin(creation=self._creation, duration=program.duration)
            self._running[worker] = program
            moment = monotonic() + self._creation + program.deadline
            heapq.heappush(self._dues, _Due(moment, next(self._orders), worker, program))

    def _can_begin(self) -> bool:
        return bool(self._queue and self._crew.idle and len(self._running) < self._workers)

    def _next_due(self) -> float:
        while self._dues and self._dues[0].program.has_ended:
            heapq.heappop(self._dues)
        return self._dues[0].moment if self._dues else math.inf

    def _next_creation(self) -> float:
        return self._gate.opens if self._can_begin() else math.inf
