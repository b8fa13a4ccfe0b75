"""The window over which an instrument reads: anchored by the body, whatever the instrument saw in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from pytest_prereg.measure.instruments import wall_clock
from pytest_prereg.measure.instruments.reading import Reading, UnreadableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_prereg.measure.instruments.reading import Reader


class Window:
    """Reads over its block, and hands the reading to ``take``, or to ``refuse`` why there is none.

    A block that raises has no reading. The accelerator is synchronised at both ends.
    """

    def __init__(
        self, reader: Reader, take: Callable[[Reading], None], refuse: Callable[[str], None]
    ) -> None:
        self._reader = reader
        self._take = take
        self._refuse = refuse
        self._running = False
        self.reading: Reading | None = None
        """What was read, once the block has ended; ``None`` if nothing could be."""

    def __enter__(self) -> Self:
        wall_clock.synchronise()
        try:
            self._reader.start()
            self._running = True
        except UnreadableError as error:
            self._refuse(str(error))
        return self

    def expect(self, count: int, operator: str) -> None:
        """Say how often the block called an operator of torch (``aten::mm``), before the block ends.

        For instruments that may lose calls: where they saw fewer, by more than one in a thousand, there is no
        reading. Said again, it adds up.

        Raises:
            TypeError: This instrument counts no calls.
        """
        count_calls = getattr(self._reader, "expect", None)
        if count_calls is None:
            raise TypeError(f"{type(self._reader).__name__} counts no calls, and can lose none")
        count_calls(count, operator)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if not self._running:
            return
        self._running = False
        try:
            if kind is None:
                wall_clock.synchronise()
            self._reader.stop()
            if kind is None:
                self.reading = self._reader.reading()
        except UnreadableError as error:
            if kind is None:
                self._refuse(str(error))
            return
        if self.reading is not None:
            self._take(self.reading)
