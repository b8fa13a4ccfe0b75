"""What a ``--prereg`` run may do: measure or only verify, record, insist on the lock."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest


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
