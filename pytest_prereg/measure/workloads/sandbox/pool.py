"""All sandboxes of a supervisor: which are made, which run what, and whose time is over."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

from pytest_prereg.measure.workloads.sandbox import staging
from pytest_prereg.measure.workloads.sandbox.boxes import Box
from pytest_prereg.measure.workloads.sandbox.messages import Created, Done, End, TestEnd
from pytest_prereg.measure.workloads.sandbox.weaker import WeakBox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_prereg.measure.workloads.sandbox.boxes import Recipe
    from pytest_prereg.measure.workloads.sandbox.messages import Setup, ToClient, Work
    from pytest_prereg.measure.workloads.sandbox.reactor import Reactor

WORKLOAD_VERSION = "1"

_LOOK_SECONDS = 0.03
_REST = 4.0
"""Time between looks at all sandboxes, in times of what a look takes."""
_PATIENCE = 20.0
"""Seconds for a sandbox to become ready, and for one that was killed to be gone."""
_TRIES = 2
"""How often a sandbox may fail to be made, in a row, before a completion is given up."""


class Pool:
    """Makes sandboxes as they are wanted, and tells the client what comes of them."""

    def __init__(
        self,
        recipe: Recipe,
        users: list[int],
        setup: Setup,
        reactor: Reactor,
        tell: Callable[[ToClient], None],
    ) -> None:
        self._recipe, self._setup, self._reactor, self._tell = recipe, setup, reactor, tell
        self._users: list[int | None] = [*users] or [None] * staging.USERS
        self._waiting: deque[Work] = deque()
        self._starting: set[Box] = set()
        self._idle: deque[Box] = deque()
        self._busy: set[Box] = set()
        self._look_at = 0.0
        self.failures: list[str] = []
        """Why sandboxes could not be made since the last that was."""

    def __iter__(self) -> Iterator[Box]:
        return iter([*self._starting, *self._idle, *self._busy])

    def add(self, work: Work) -> None:
        """Run ``work`` when its turn comes."""
        self._waiting.append(work)

    def try_one(self) -> str | None:
        """Make a sandbox, and return what was wrong with it; it is kept only if some are to be kept."""
        self._make()
        while self._starting:
            self._reactor.turn(1.0)
            self._enforce(time.monotonic())
        if self.failures:
            return self.failures.pop()
        if not self._setup.warm:
            self.end()
        return None

    def tend(self) -> float:
        """Do what is due; return in how many seconds something will be again."""
        now = time.monotonic()
        self._enforce(now)
        if self._busy and now >= self._look_at:
            self._look(now)
        self._assign()
        nearest = min((box.deadline for box in self._busy if box.killed_at is None), default=now + 1)
        return min(nearest - now, _LOOK_SECONDS if self._busy else 1.0)

    def _look(self, began: float) -> None:
        """Hold what all take against their limits, but spend no more than a part of the time on it."""
        for box in [*self._busy]:
            if began - box.taken_at >= _LOOK_SECONDS:
                box.look()
                self._enforce(time.monotonic())
        now = time.monotonic()
        self._look_at = now + max(_LOOK_SECONDS, _REST * (now - began))

    def end(self) -> None:
        """End all sandboxes, and wait until nothing is left of them."""
        self._waiting.clear()
        began = time.monotonic()
        for box in self:
            box.kill()
        while [*self]:
            self._reactor.turn(0.1)
            if time.monotonic() - began > _PATIENCE:
                for box in self:
                    box.force()

    def is_ready(self, box: Box) -> None:
        """Take note that a sandbox can take a program."""
        self.failures.clear()
        self._starting.discard(box)
        self._idle.append(box)
        self._tell(Created(began=box.began, ready=box.ready_at))

    def is_gone(self, box: Box, status: int) -> None:
        """Take note that nothing is left of a sandbox."""
        self._users.append(box.user)
        if box in self._busy:
            self._busy.discard(box)
            self._tell(box.done(status))
        elif box in self._idle:
            self._idle.remove(box)
        else:
            self._starting.discard(box)
            self._failed(box.errors() or (f"status {status}" if box.cause is None else box.cause[1]))

    def _failed(self, why: str) -> None:
        self.failures.append(why)
        if len(self.failures) >= _TRIES and self._waiting:
            self._tell(_given_up(self._waiting.popleft(), f"no sandbox could be made: {why}"))
            self.failures.clear()

    def _enforce(self, now: float) -> None:
        for box in [*self._busy]:
            if box.killed_at is None and now >= box.deadline:
                box.stop(End.DEADLINE, f"no end after {now - box.taken_at:.3f} s")
        for box in [*self._starting]:
            if box.cause is None and now - box.began > _PATIENCE:
                box.stop(End.LOST, f"it was not ready after {_PATIENCE:g} s")
        for box in self:
            if box.killed_at is not None and now - box.killed_at > _PATIENCE:
                box.force()

    def _assign(self) -> None:
        """Give work to ready sandboxes, and make as many as will be wanted."""
        while self._waiting and self._idle and len(self._busy) < self._setup.workers:
            box = self._idle.popleft()
            self._busy.add(box)
            box.take(self._waiting.popleft())
        wanted = min(len(self._waiting), self._setup.workers - len(self._busy))
        if self._waiting or not self.failures:  # else nothing shows that another would be made
            wanted += self._setup.warm
        for _ in range(wanted - len(self._idle) - len(self._starting)):
            self._make()

    def _make(self) -> None:
        if self._users:
            kind = Box if self._recipe.contained else WeakBox
            try:
                self._starting.add(kind(self._recipe, self._users[-1], self._reactor, self))
            except OSError as error:
                self._failed(str(error))
            else:
                self._users.pop()


def _given_up(work: Work, why: str) -> Done:
    return Done(
        number=work.number,
        tests=tuple(TestEnd(end=End.LOST, text=why.encode()) for _ in work.inputs),
        evidence=why,
        taken=time.monotonic(),
        seconds=0.0,
        creation=0.0,
        peak_memory=0,
    )
