"""What a ``--prereg`` run may do: measure or only verify, record, insist on the lock."""

from __future__ import annotations

import math
import shlex
from typing import Any, NamedTuple

import pytest

from pytest_prereg.measure.limits import Limits
from pytest_prereg.registry.durations import parse_duration
from pytest_prereg.registry.refusals import RefusedError, quoted

LIMITS = (("--prereg-budget", "prereg_budget"), ("--prereg-max-time", "prereg_max_time"))
"""What stops a run, and what it is parsed into."""
WHERE = (("--prereg-executor", "prereg_executor"),)
"""What says where to measure."""
SELECTING = (("-k", "keyword"), ("-m", "markexpr"))
"""Options of pytest that choose among predictions."""


class Mode(NamedTuple):
    """What this session may do, and why."""

    measure: bool
    fresh: bool
    explore: bool
    record: bool
    locked: bool
    why: str

    @classmethod
    def from_options(cls, option: Any, *, ci: bool) -> Mode:
        """Settle the flags.

        Raises:
            pytest.UsageError: they contradict each other or the place.
        """
        if option.prereg_verify and (option.prereg_measure or option.prereg_fresh or option.prereg_explore):
            raise pytest.UsageError("--prereg-verify launches nothing; leave it out to measure")
        if ci and option.prereg_fresh and not option.prereg_measure:
            raise pytest.UsageError("CI is set: --prereg-fresh needs --prereg-measure")
        if ci and option.prereg_record:
            raise pytest.UsageError("CI is set: record verdicts where a person commits them, not in CI")
        _check_limits(option, ci=ci)
        verify = option.prereg_verify or (ci and not option.prereg_measure)
        locked = option.prereg_locked if option.prereg_locked is not None else ci
        return cls(
            measure=not verify and not getattr(option, "setupplan", False),
            fresh=option.prereg_fresh,
            explore=option.prereg_explore,
            record=option.prereg_record,
            locked=locked,
            why=" (CI is set)" if ci and not option.prereg_verify and not option.prereg_measure else "",
        )

    def __str__(self) -> str:
        doing = "measure and judge" if self.measure else f"verify{self.why}"
        extra = [
            name
            for name, on in (("fresh", self.fresh), ("explore", self.explore), ("locked", self.locked))
            if on
        ]
        return " · ".join((doing, *extra))

    def command(self, option: Any) -> str:
        """Return the command that goes on with what this run leaves: what it may do is the same."""
        if not self.measure:
            return "pytest --prereg-verify"
        given = (
            ("--prereg-measure", option.prereg_measure),
            ("--prereg-fresh", self.fresh),
            ("--prereg-explore", self.explore),
            ("--prereg-record", self.record),
        )
        flags = [flag for flag, on in given if on]
        values = ((flag, getattr(option, name)) for flag, name in (*WHERE, *LIMITS, *SELECTING))
        limits = [f"{flag} {shlex.quote(value)}" for flag, value in values if value]
        return " ".join(["pytest --prereg", *flags, *limits])


def limits_of(option: Any) -> Limits:
    """Return what a run may spend.

    Raises:
        pytest.UsageError: an amount or a duration can't be read; it says what to type.
    """
    return Limits(budget=_dollars(option.prereg_budget), time=_seconds(option.prereg_max_time))


def _check_limits(option: Any, *, ci: bool) -> None:
    """Refuse a limit where nothing is bought."""
    for flag, name in LIMITS:
        if getattr(option, name) is None:
            continue
        if option.prereg_verify:
            raise pytest.UsageError(
                f"--prereg-verify buys nothing, so {flag} has nothing to stop: leave it out"
            )
        if ci and not option.prereg_measure:
            raise pytest.UsageError(f"CI is set, so nothing is bought: {flag} needs --prereg-measure")


def _dollars(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        amount = float(text)
    except ValueError:
        amount = math.nan
    if not 0 <= amount < math.inf:
        message = f"--prereg-budget {quoted(text)} is no amount of money; write US dollars as a number"
        raise pytest.UsageError(f"{message}: --prereg-budget 2.50")
    return amount


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return parse_duration(float(text) if text.strip().replace(".", "", 1).isdecimal() else text)
    except RefusedError as error:
        message = (
            f"--prereg-max-time {quoted(text)} is no duration; write seconds, or a number with s, min or h"
        )
        raise pytest.UsageError(f'{message}: --prereg-max-time "90 min"') from error
