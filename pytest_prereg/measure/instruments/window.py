"""The window over which an instrument reads: anchored by the body, whatever the instrument saw in it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Self

from pytest_prereg.measure.instruments import wall_clock
from pytest_prereg.measure.instruments.reading import NOWHERE, Reached, UnreadableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_prereg.measure.instruments.reading import Reader, Reading


class Window:
    """Reads over its block, and hands the reading to ``take``, or to ``refuse`` why there is none.

    A block that raises has no reading. The accelerator is synchronised at both ends. ``new_reader`` is called
    at each entry: what one block left in a reader is no reading of the next. Of a block that is gone on with
    after an attempt at it was lost, ``reached`` is the highest that was read in there: a peak is no lower.
    """

    def __init__(
        self,
        new_reader: Callable[[], Reader],
        take: Callable[[Reading], None],
        refuse: Callable[[str], None],
        *,
        reached: Reached = NOWHERE,
    ) -> None:
        self._reached = reached
        self._new_reader = new_reader
        self._take = take
        self._refuse = refuse
        self._reader: Reader | None = None
        """Of the block under way."""
        self._reads = False
        self._reading: Reading | None = None

    @property
    def reading(self) -> Reading | None:
        """What was read over the last block, once it has ended; ``None`` if nothing could be."""
        return self._reading

    def __enter__(self) -> Self:
        if self._reader is not None:
            raise RuntimeError(wall_clock.ENTERED_TWICE.format(what="window"))
        self._reading = None
        self._reader = self._new_reader()
        try:
            self._start(self._reader)
        except BaseException:
            self._reader = None
            raise
        return self

    def so_far(self) -> Reached:
        """Return the highest of the block under way, in the instrument's unit; 0 where it can't tell."""
        reached = getattr(self._reader, "reached", None)
        if reached is None or not self._reads:
            return self._reached
        try:
            return self._reached.highest(reached())
        except UnreadableError:
            return self._reached

    def expect(self, count: int, operator: str) -> None:
        """Say how often the block called an operator of torch (``aten::mm``), before the block ends.

        For instruments that may lose calls: where they saw fewer, by more than one in a thousand, there is no
        reading. Said again, it adds up.

        Raises:
            TypeError: This instrument counts no calls.
            RuntimeError: The block hasn't begun, or has ended.
        """
        if self._reader is None:
            raise RuntimeError("a window expects calls of its block only while that runs; say it in there")
        count_calls = getattr(self._reader, "expect", None)
        if count_calls is None:
            raise TypeError(f"{type(self._reader).__name__} counts no calls, and can lose none")
        count_calls(count, operator)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        reader, self._reader = self._reader, None
        if reader is None or not self._reads:
            return
        try:
            if kind is None:
                wall_clock.synchronise()
            reader.stop()
            if kind is not None:
                return
            reading = self._highest(reader.reading())
        except UnreadableError as error:
            if kind is None:
                self._refuse(str(error))
            return
        self._reading = reading
        self._take(reading)

    def _highest(self, reading: Reading) -> Reading:
        lost, details = self._reached, reading.details
        if not lost.value:
            return reading
        growth = max(details.get("growth", 0.0), lost.growth)
        return replace(
            reading,
            value=max(reading.value, lost.value),
            details={**details, "growth": growth, "of_lost_attempts": lost._asdict()},
        )

    def _start(self, reader: Reader) -> None:
        self._reads = False
        wall_clock.synchronise()
        try:
            reader.start()
            self._reads = True
        except UnreadableError as error:
            self._refuse(str(error))
