"""What a run of the reward barrier may be asked for."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

WORKLOAD_VERSION = "1"

_LEAST = {"completions": 1, "steps": 1, "group": 1, "staleness": 0, "workers": 0}
_TIMES = ("generation", "training", "reward", "deadline", "creation")
_POSITIVE = ("scale", "deadline")
_WORDS = {"barrier": ("batch", "group"), "pool": ("warm", "cold")}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The parameters of ``reward_barrier``, as explained there; times in seconds, the rate in 1/s.

    Raises:
        ValueError: One of them, or two together, can't be run; the message says what to write.
    """

    timeout_rate: float
    completions: int
    steps: int
    scale: float
    generation: float
    training: float
    reward: float
    deadline: float
    spread: float
    barrier: str
    group: int
    staleness: int
    pool: str
    workers: int
    creation: float
    rate: float

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            self._check_count(name, least)
        for name in ("scale", "rate", "spread", *_TIMES):
            self._check_number(name)
        for name, words in _WORDS.items():
            self._check_word(name, words)
        if not (_is_number(self.timeout_rate) and 0 <= self.timeout_rate <= 1):
            raise ValueError(f"timeout_rate = {self.timeout_rate!r}: give a share, from 0 to 1")
        self._check_barrier()
        self._check_pool()

    @property
    def cold(self) -> bool:
        """Whether each completion needs a process of its own."""
        return self.pool == "cold"

    @property
    def grouped(self) -> bool:
        """Whether groups train one by one."""
        return self.barrier == "group"

    @property
    def in_flight(self) -> int:
        """How many rewards can be awaited at a time."""
        return self.completions * (self.staleness + 1)

    @property
    def at_once(self) -> int:
        """How many programs run at a time."""
        return self.workers or self.in_flight

    def scaled(self) -> Setting:
        """Return the same with every time multiplied, and the rate divided, by the scale."""
        times = {name: getattr(self, name) * self.scale for name in _TIMES}
        return replace(self, scale=1.0, rate=self.rate / self.scale, **times)

    def _check_count(self, name: str, least: int) -> None:
        value = getattr(self, name)
        if not isinstance(value, int) or value < least:
            raise ValueError(f"{name} = {value!r}: give a whole number of at least {least}")

    def _check_number(self, name: str) -> None:
        value = getattr(self, name)
        if not (_is_number(value) and 0 <= value < math.inf) or (name in _POSITIVE and value == 0):
            kind = "above 0" if name in _POSITIVE else "of at least 0"
            raise ValueError(f"{name} = {value!r}: give a finite number {kind}")

    def _check_word(self, name: str, words: tuple[str, ...]) -> None:
        value = getattr(self, name)
        if value not in words:
            raise ValueError(f'{name} = "{value}": give {" or ".join(map(repr, words))}'.replace("'", '"'))

    def _check_barrier(self) -> None:
        if self.grouped and self.completions % self.group:
            raise ValueError(
                f"group = {self.group} does not divide completions = {self.completions}: give a divisor"
            )
        if self.grouped and self.staleness:
            raise ValueError(
                f'staleness = {self.staleness} with barrier = "group": a run has one of them; '
                'give staleness = 0, or barrier = "batch"'
            )

    def _check_pool(self) -> None:
        if self.rate and not self.cold:
            raise ValueError(
                f'rate = {self.rate!r} with pool = "warm", which creates nothing while rewards are awaited: '
                'give rate = 0, or pool = "cold"'
            )
        # What queues for a worker or a creation behind another group or step is in no model.
        batch_wide = not self.grouped and not self.staleness
        if not batch_wide and self.at_once < self.in_flight:
            raise ValueError(
                f"workers = {self.workers}, and {self.in_flight} rewards can be in flight: give workers = 0, "
                'or barrier = "batch" and staleness = 0'
            )
        if not batch_wide and self.rate:
            raise ValueError(f'rate = {self.rate!r}: give rate = 0, or barrier = "batch" and staleness = 0')


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)
