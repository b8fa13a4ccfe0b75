"""What goes wrong on purpose, and how often still."""

from __future__ import annotations

import asyncio
import collections
import time
from dataclasses import dataclass, field

from grpclib import GRPCError, Status

STRIKES = ("preempt", "kill", "internal_failure", "lose")
"""What can befall an input that runs: SIGINT, then SIGKILL and the input again; the container's end; the machine's
end as the service tells it; the loss of what it answers."""


@dataclass
class RequestFault:
    """A request is answered late and with an error, the next ``times`` times; with status ``OK`` only late.

    It is late to be taken (``delay``), or what it asked for is done at once and only its answer late (``linger``).
    """

    rpc: str
    status: str = "UNAVAILABLE"
    message: str = "injected by the stand-in"
    times: int = 1
    delay: float = 0.0
    linger: float = 0.0


@dataclass
class Rate:
    """So many requests a second are answered, and as many at once as ``burst``: a token bucket."""

    rpc: str
    per_second: float
    burst: float = 1.0
    left: float = 0.0
    at: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.left = self.burst

    def take(self) -> bool:
        now = time.monotonic()
        self.left, self.at = min(self.burst, self.left + (now - self.at) * self.per_second), now
        if self.left < 1:
            return False
        self.left -= 1
        return True


@dataclass
class Strike:
    """What befalls an input, so many seconds after a container has begun it."""

    how: str
    after: float = 0.0
    grace: float = 2.0

    def __post_init__(self) -> None:
        if self.how not in STRIKES:
            raise ValueError(f"no such strike: {self.how!r}; there are {', '.join(STRIKES)}")


@dataclass
class Faults:
    requests: list[RequestFault] = field(default_factory=list)
    rates: dict[str, Rate] = field(default_factory=dict)
    strikes: collections.deque[Strike] = field(default_factory=collections.deque)
    """For the next inputs that begin, one each."""
    crashes: int = 0
    """Containers that end before they ask for an input."""
    queue_seconds: float = 0.0
    """How long a container takes until it starts."""
    python: str = ""
    lacking: list[str] = field(default_factory=list)
    image_failures: list[str] = field(default_factory=list)
    """What the next builds of an image say, and fail."""

    async def meet(self, rpc: str) -> float:
        """Raises what that request is answered with, if it is an error; returns how late its answer is."""
        for fault in self.requests:
            if fault.rpc == rpc and fault.times > 0:
                fault.times -= 1
                await asyncio.sleep(fault.delay)
                if fault.status == "OK":
                    return fault.linger
                raise GRPCError(Status[fault.status], fault.message)
        rate = self.rates.get(rpc)
        if rate and not rate.take():
            message = f"{rpc} rate limit ({rate.per_second:g}/s) exceeded"
            raise GRPCError(Status.RESOURCE_EXHAUSTED, message)
        return 0.0
