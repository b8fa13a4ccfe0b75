"""What a run may spend, what it has spent, and what the next repeat is likely to take.

A limit stops a run before the repeat that would exceed it: what is bought is kept, and nothing of it is seen.
"""

from __future__ import annotations

import math
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from pytest_prereg.evidence.cost import HOUR, Taken, dollars, price, price_of_repeats, taken

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping

    from pytest_prereg.evidence.files import SessionFile
    from pytest_prereg.registry.model import Experiment


class Need(NamedTuple):
    """What some repeats are likely to take; ``None`` is unknown."""

    seconds: float | None
    usd: float | None


class Forecast:
    """How long the repeats of an experiment are likely to take, by what each of its arms has taken so far."""

    def __init__(
        self,
        experiment: Experiment,
        rates: Mapping[str, float],
        files: Iterable[SessionFile] = (),
        *,
        executor: str | None = None,
        parallel: int = 1,
    ) -> None:
        self.rates = rates
        self._parallel = parallel
        """How many run side by side."""
        self._known = taken(files, executor)
        self._timeouts = {name: arm.timeout for name, arm in experiment.arms.items()}

    def learn(self, arm: str, seconds: float) -> None:
        """Take in what an attempt took."""
        before = self._known.get(arm, Taken())
        self._known[arm] = Taken(seconds=before.seconds + seconds, attempts=before.attempts + 1)

    def of(self, arms: Iterable[str]) -> Need:
        """Return what a repeat of each of ``arms`` is likely to take together; an arm may be there twice.

        Of an arm that has taken nothing yet it is the timeout, the most that a body may take.
        """
        return self._together(arms, self._timeouts)

    def whole(self, arms: Iterable[str]) -> Need:
        """Return the same of a whole series: an arm that has taken nothing yet is like the others."""
        means = [mean for arm in self._known if (mean := self._known[arm].mean) is not None]
        other = math.fsum(means) / len(means) if means else None
        return self._together(arms, dict.fromkeys(self._timeouts, other))

    def _together(self, arms: Iterable[str], otherwise: Mapping[str, float | None]) -> Need:
        seconds, usd, longest = _Sum(), _Sum(), 0.0
        for arm, count in Counter(arms).items():
            known = self._known.get(arm)
            each = (known.mean if known else None) or otherwise.get(arm)
            longest = max(longest, each or 0.0)
            seconds.add(count, each)
            usd.add(count, self._usd(arm, each))
        lasts = None if seconds.total is None else max(longest, seconds.total / self._parallel)
        return Need(lasts, usd.total)

    def _usd(self, arm: str, seconds: float | None) -> float | None:
        rate = self.rates.get(arm, 0.0)
        return 0.0 if not rate else None if seconds is None else seconds * rate / HOUR


class Meter:
    """What one session has taken so far."""

    def __init__(
        self,
        rates: Mapping[str, float],
        clock: Callable[[], float] = monotonic,
        *,
        before: float = 0.0,
        elsewhere: bool = False,
    ) -> None:
        self._rates = rates
        self._elsewhere = elsewhere
        """Whether only what repeats take is paid for, and not what lies between them."""
        self._clock = clock
        self._began = clock() - before
        self._lasted: float | None = None
        self._totals: dict[str, float] = {}

    def add(self, arm: str, seconds: float) -> None:
        """Count an attempt."""
        self._totals[arm] = self._totals.get(arm, 0.0) + seconds

    def stop(self) -> None:
        """Let no more time count."""
        self._lasted = self.seconds

    @property
    def seconds(self) -> float:
        """How long it has lasted."""
        return self._clock() - self._began if self._lasted is None else self._lasted

    @property
    def usd(self) -> float:
        """What that costs."""
        if self._elsewhere:
            return price_of_repeats(self._totals, self._rates)
        return price(self.seconds, self._totals, self._rates)


@dataclass
class Limits:
    """What a run may spend over all its studies and experiments; ``None`` is as much as it takes."""

    budget: float | None = None
    """USD."""
    time: float | None = None
    """Seconds of measuring, with what starting and waiting take."""
    reached: str | None = None
    """Which limit has stopped the run; then nothing more is bought in it."""
    clock: Callable[[], float] = monotonic
    """Seconds, never going back."""
    _meters: list[Meter] = field(default_factory=list)
    _seconds: float = 0.0
    _since: float | None = None

    @property
    def are_set(self) -> bool:
        """Whether there is any: else nothing needs to be forecast."""
        return self.budget is not None or self.time is not None

    @contextmanager
    def measuring(self) -> Generator[None]:
        """Count the time that passes inside."""
        self._since = self.clock()
        try:
            yield
        finally:
            self._seconds, self._since = self.seconds, None

    def meter(self, rates: Mapping[str, float], *, before: float = 0.0, elsewhere: bool = False) -> Meter:
        """Return a meter for one more session, whose cost counts; ``before`` it began it took seconds."""
        self._meters.append(Meter(rates, self.clock, before=before, elsewhere=elsewhere))
        return self._meters[-1]

    @property
    def seconds(self) -> float:
        """What measuring has taken so far."""
        return self._seconds + (self.clock() - self._since if self._since is not None else 0.0)

    @property
    def usd(self) -> float:
        """What all sessions of the run have cost so far."""
        return math.fsum(meter.usd for meter in self._meters)

    def refuses(self, need: Need) -> bool:
        """Whether what is left does not suffice; what takes an unknown time is let through while any is left.

        Once refused is refused for the run: where it stopped is where the next one goes on.
        """
        limits = (
            ("budget", self.budget, dollars, self.usd, need.usd),
            ("time", self.time, duration_text, self.seconds, need.seconds),
        )
        for what, limit, text, spent, needed in limits if self.reached is None else ():
            if limit is not None and _exceeds(limit, spent, needed):
                self.reached = self.reached or _said(what, text, limit, spent, needed)
        return self.reached is not None


def duration_text(seconds: float) -> str:
    """Return a duration in the unit that a person would choose: ``45 s``, ``90 min``, ``2.5 h``."""
    for unit, length in (("h", HOUR), ("min", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds:.3g} s"


def _exceeds(limit: float, spent: float, need: float | None) -> bool:
    return spent >= limit if need is None else spent + need > limit


def _said(what: str, shown: Callable[[float], str], limit: float, spent: float, need: float | None) -> str:
    if need is not None and spent < limit:
        verb = "cost" if what == "budget" else "take"
        spent_ = f"{shown(spent)} of the {what} of {shown(limit)} are spent"
        return f"{spent_}, and the next repeat is likely to {verb} {shown(need)}"
    return f"the {what} of {shown(limit)} is spent ({shown(spent)})"


class _Sum:
    """A sum that is not known once one of its parts isn't."""

    def __init__(self) -> None:
        self.total: float | None = 0.0

    def add(self, count: int, each: float | None) -> None:
        self.total = None if self.total is None or each is None else self.total + count * each
