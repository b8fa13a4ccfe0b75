"""A pipeline of training steps for real: threads that hold resources and sleep, in place of accelerators."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from pytest_prereg import experiment

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from pytest_prereg import Repeat

STAGES = {"rollout": 60.0, "verify": 20.0, "update": 30.0, "sync": 10.0}
"""Seconds, in the order in which a batch passes them."""

LAYOUTS = {
    "apart": {"rollout": "rollout", "verify": "verify", "update": "update", "sync": "sync"},
    "one-gpu": {"rollout": "gpu", "verify": "verify", "update": "gpu", "sync": "gpu"},
}
"""What each stage needs, by the name that an arm gives."""


@experiment(metrics={"t_first": "s", "t_middle": "s", "t_run": "s"})
def pipeline(
    repeat: Repeat,
    *,
    layout: str = "apart",
    order: str = "first-come",
    in_flight: int = 2,
    batches: int = 10,
    scale: float = 0.001,
) -> None:
    """Pass ``batches`` through four stages, at most ``in_flight`` at a time, at ``scale`` of their seconds.

    Each resource serves one batch at a time: the one that has waited longest, or with ``order = "in-order"``
    batch after batch with all their stages on it. ``t_run`` is from the first batch's entry to the last one's
    end, ``t_first`` until the first one's end, and ``t_middle`` from the end of the first half to the last.
    """
    seconds = {stage: long * scale for stage, long in STAGES.items()}
    line = Line(seconds, LAYOUTS[layout], batches=batches, in_flight=in_flight, order=order)
    with line.running(), repeat.timer("t_run"):
        with repeat.timer("t_first"):
            line.begin()
            line.wait_for(1)
        line.wait_for(batches // 2)
        with repeat.timer("t_middle"):
            line.wait_for(batches)


class Service(NamedTuple):
    """A stage of a batch as it was served, in seconds of the monotonic clock."""

    batch: int
    stage: str
    began: float
    ended: float


class Call(NamedTuple):
    """A batch that waits for a stage; calls sort by when they came."""

    came: int
    batch: int
    stage: int


class Line:
    """Batches on their way through stages, each stage on a resource that a thread stands for."""

    def __init__(
        self, seconds: dict[str, float], needs: dict[str, str], *, batches: int, in_flight: int, order: str
    ) -> None:
        self.served: list[Service] = []
        """In the order of their ends."""
        self._seconds, self._needs, self._names = seconds, needs, list(seconds)
        self._batches, self._in_flight = batches, in_flight
        self._changed = threading.Condition()
        self._waiting: list[Call] = []
        self._calls = self._entered = self._ended = 0
        self._closed = False
        self._planned = {each: self._plan(each) for each in needs.values()} if order == "in-order" else {}

    def _plan(self, resource: str) -> list[tuple[int, int]]:
        """Return batch and stage of all that a resource serves in order, the last first."""
        own = [place for place, stage in enumerate(self._names) if self._needs[stage] == resource]
        return [(batch, place) for batch in range(self._batches) for place in own][::-1]

    @contextmanager
    def running(self) -> Generator[None]:
        """Start a thread for each resource; end them with the block."""
        threads = [threading.Thread(target=self._serve, args=(each,)) for each in {*self._needs.values()}]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            with self._changed:
                self._closed = True
                self._changed.notify_all()
            for thread in threads:
                thread.join()

    def begin(self) -> None:
        """Let in as many batches as may be in flight."""
        with self._changed:
            for _ in range(min(self._in_flight, self._batches)):
                self._enter()
            self._changed.notify_all()

    def wait_for(self, batches: int) -> None:
        """Wait until so many batches have passed the last stage."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended >= batches)

    def _serve(self, resource: str) -> None:
        while (call := self._next(resource)) is not None:
            began = time.monotonic()
            stage = self._names[call.stage]
            time.sleep(self._seconds[stage])
            with self._changed:
                self.served.append(Service(call.batch, stage, began, time.monotonic()))
                self._pass_on(call)
                self._changed.notify_all()

    def _next(self, resource: str) -> Call | None:
        """Wait for the call that is to be served next, and take it; ``None`` at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._first(resource) is not None)
            call = self._first(resource)
            if call is None or self._closed:
                return None
            self._waiting.remove(call)
            if self._planned:
                self._planned[resource].pop()
            return call

    def _first(self, resource: str) -> Call | None:
        calls: Sequence[Call] = [
            call for call in self._waiting if self._needs[self._names[call.stage]] == resource
        ]
        if self._planned:
            turn = self._planned[resource][-1:]
            calls = [call for call in calls if [(call.batch, call.stage)] == turn]
        return min(calls, default=None)

    def _pass_on(self, call: Call) -> None:
        if call.stage + 1 < len(self._names):
            self._wait(call.batch, call.stage + 1)
            return
        self._ended += 1
        if self._entered < self._batches:
            self._enter()

    def _enter(self) -> None:
        self._wait(self._entered, 0)
        self._entered += 1

    def _wait(self, batch: int, stage: int) -> None:
        self._waiting.append(Call(self._calls, batch, stage))
        self._calls += 1
