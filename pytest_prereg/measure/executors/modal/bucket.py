"""A token bucket: so many requests at once, and then so many a second."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Bucket:
    """Starts full; taking from it when it is empty waits."""

    def __init__(
        self,
        *,
        per_second: float,
        burst: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.per_second = per_second
        self.burst = burst
        self._clock = clock
        self._sleep = sleep
        self._left = burst
        self._at = clock()

    def take(self) -> None:
        """Take one, as soon as there is one."""
        if wait := self.seconds_to_one():
            self._sleep(wait)
            self._fill()
        self._left -= 1

    def seconds_to_one(self) -> float:
        """Return how long taking one would wait: for those who have something else to do meanwhile."""
        self._fill()
        return max(0.0, (1 - self._left) / self.per_second)

    def empty(self) -> None:
        """Take all: somebody else has found that there are too many."""
        self._fill()
        self._left = min(self._left, 0.0)

    def _fill(self) -> None:
        now = self._clock()
        self._left = min(self.burst, self._left + (now - self._at) * self.per_second)
        self._at = now
