"""What repeats took and cost: body time, what a session was charged for, and money; pilots, too."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.evidence.series import handed_on

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pytest_prereg.evidence.files import SessionFile
    from pytest_prereg.evidence.model import Header
    from pytest_prereg.registry.model import Experiment, Study

HOUR = 3600.0


class Account(msgspec.Struct, kw_only=True, frozen=True):
    """What some sessions took, whatever became of their repeats."""

    busy: float = 0.0
    """Seconds in bodies."""
    charged: float = 0.0
    """Seconds that sessions lasted, builds included; of one that never ended, what its repeats took, and of
    one whose repeats a service ran these alone: nobody pays for waiting in a queue."""
    usd: float = 0.0
    """Charged time at the rate of its arm."""
    unknown: int = 0
    """Attempts that nobody knows the time of: their session was killed with them, or they were stopped."""
    open_ended: int = 0
    """Sessions without an end: they lasted longer than what they are charged for."""

    @property
    def idle(self) -> float:
        """Charged seconds in which no body ran."""
        return max(0.0, self.charged - self.busy)

    @property
    def is_least(self) -> bool:
        """Whether it took more than is known."""
        return self.unknown > 0 or self.open_ended > 0

    def __add__(self, other: Account) -> Account:
        return Account(
            busy=self.busy + other.busy,
            charged=self.charged + other.charged,
            usd=self.usd + other.usd,
            unknown=self.unknown + other.unknown,
            open_ended=self.open_ended + other.open_ended,
        )


class Taken(msgspec.Struct, kw_only=True, frozen=True):
    """Attempts at one arm, and what they took from launch to end."""

    seconds: float = 0.0
    attempts: int = 0

    @property
    def mean(self) -> float | None:
        """Seconds an attempt, or ``None`` where nothing is known of any."""
        return self.seconds / self.attempts if self.attempts and self.seconds else None


def account(files: Iterable[SessionFile]) -> Account:
    """Return what all sessions in ``files`` took together; what was imported was not bought here."""
    bought = list(_bought(files))
    known = Counter({name: len(attempts) for name, attempts in handed_on(bought).items()})
    every = (_of_session(file.header, file, known[file.path.name]) for file in bought if file.header)
    return sum(every, Account())


def series_account(files: Iterable[SessionFile], number: int) -> Account:
    """Return what one series of an experiment took, with all that was run again; no pilots.

    Args:
        files: The session files of the experiment.
        number: That of the series.
    """
    return account(
        file
        for file in files
        if file.header and file.header.series == number and file.header.origin == "measured"
    )


def price(charged: float, totals: Mapping[str, float], rates: Mapping[str, float]) -> float:
    """Return the USD that ``charged`` seconds cost: each arm pays for its share of them.

    Args:
        charged: Seconds that the session lasted.
        totals: What the repeats of each arm took of them, in seconds; where none took any, all is charged at
            the highest rate.
        rates: USD an hour by arm; an arm that is missing costs nothing.
    """
    whole = math.fsum(totals.values())
    if whole <= 0:
        return charged * max(rates.values(), default=0.0) / HOUR
    each = (seconds * rates.get(arm, 0.0) for arm, seconds in totals.items())
    return charged / whole * math.fsum(each) / HOUR


def price_of_repeats(totals: Mapping[str, float], rates: Mapping[str, float]) -> float:
    """Return the USD that repeats cost which a service ran: each its own seconds, at the rate of its arm."""
    return math.fsum(seconds * rates.get(arm, 0.0) for arm, seconds in totals.items()) / HOUR


def rates_of(study: Study, experiment: Experiment, executor: str) -> dict[str, float]:
    """Return USD an hour by arm on an executor, as ``[study.prices]`` has it; free arms are left out."""
    rate = (study.table.prices or {}).get(executor, 0.0)
    return dict.fromkeys(experiment.arms, rate) if rate else {}


def taken(files: Iterable[SessionFile], executor: str | None = None) -> dict[str, Taken]:
    """Return what the attempts took that have an end, by arm: all that were bought, pilots included.

    Args:
        files: The session files of the experiment.
        executor: Where they are to have run; ``None``: wherever.
    """
    found: dict[str, Taken] = {}
    for file in _bought(files):
        if executor is not None and file.header and file.header.executor != executor:
            continue
        launched = Counter(attempt.arm for attempt in file.attempts)
        for arm, spent in file.spent.items():
            before = found.get(arm, Taken())
            count = before.attempts + launched[arm] - spent.unfinished
            found[arm] = Taken(seconds=before.seconds + spent.total, attempts=count)
    return found


def dollars(usd: float) -> str:
    """Return an amount as people write it; what is less than a cent keeps two digits."""
    if 0 < usd < 0.01:  # noqa: PLR2004 - a cent
        return f"${float(f'{usd:.2g}'):.12f}".rstrip("0")
    return f"${usd:.2f}"


def _bought(files: Iterable[SessionFile]) -> Iterator[SessionFile]:
    return (file for file in files if file.header is not None and file.header.origin != "imported")


def _of_session(header: Header, file: SessionFile, known: int) -> Account:
    """Return what a session took; of what it left unfinished, ``known`` attempts ended in later ones."""
    if header.elsewhere:
        return _of_service(header, file, known)
    totals = {arm: spent.total for arm, spent in file.spent.items()}
    lasted = file.footer.seconds if file.footer else None
    charged = header.built + max(lasted or 0.0, math.fsum(totals.values()))
    unfinished = sum(spent.unfinished for spent in file.spent.values())
    return Account(
        busy=math.fsum(spent.busy for spent in file.spent.values()),
        charged=charged,
        usd=price(charged, totals, header.rates),
        unknown=unfinished - known if lasted is None else 0,
        open_ended=lasted is None,
    )


def _of_service(header: Header, file: SessionFile, known: int) -> Account:
    totals = {arm: spent.total for arm, spent in file.spent.items()}
    return Account(
        busy=math.fsum(spent.busy for spent in file.spent.values()),
        charged=math.fsum(totals.values()),
        usd=price_of_repeats(totals, header.rates),
        unknown=sum(spent.unfinished for spent in file.spent.values()) - known,
    )
