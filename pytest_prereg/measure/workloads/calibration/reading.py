"""Reading something known with the instrument under test, and with no other."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_prereg.measure.instruments import wall_clock
from pytest_prereg.measure.instruments.readers import reader_of
from pytest_prereg.measure.instruments.reading import UnreadableError
from pytest_prereg.measure.instruments.square_wave import StimulusError
from pytest_prereg.registry.refusals import listed, quoted, suggestion

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pytest_prereg.measure.instruments.reading import Reader, Reading
    from pytest_prereg.measure.repeat import Repeat

WORKLOAD_VERSION = "1"

LONGEST = 86400
"""Seconds that anything known lasts for."""

Known = TypeVar("Known")


@contextmanager
def calibrating(repeat: Repeat, instrument: str, known: Sequence[str]) -> Iterator[None]:
    """Make the repeat invalid where its block finds that there is no reading, or nothing known to read.

    Args:
        repeat: The repeat.
        instrument: What is calibrated.
        known: Of which instruments the block knows what they should read.

    Raises:
        ValueError: The instrument is none of them.
    """
    if not isinstance(instrument, str):
        raise ValueError(f"instrument: {quoted(instrument)} is no name; it calibrates {listed(known)}")  # noqa: TRY004
    if instrument not in known:
        hint = suggestion(instrument, known, "it calibrates")
        raise ValueError(f"instrument: this calibrates no {quoted(instrument)}{hint}")
    try:
        yield
    except (UnreadableError, StimulusError) as error:
        repeat._unreadable(instrument, f"{instrument} is not calibrated: {error}")  # noqa: SLF001 - not the body's


def check_seconds(seconds: float) -> None:
    """Raise :class:`ValueError` where something can't last for ``seconds``."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < LONGEST:
        raise ValueError(f"seconds: {quoted(seconds)} is no number above 0 and below a day; write 2, say")


def read_during(repeat: Repeat, instrument: str, act: Callable[[Reader], Known]) -> tuple[Reading, Known]:
    """Do something known while the instrument reads; return the reading, and what ``act`` returned.

    The accelerator idles when the window begins. ``act`` is handed the reader, which may want to know what
    to expect.

    Raises:
        UnreadableError: There is no reading of this instrument.
    """
    reader = reader_of(instrument)
    wall_clock.synchronise()
    reader.start()
    try:
        known = act(reader)
    finally:
        reader.stop()
    return accepted(repeat, instrument, reader.reading()), known


def accepted(repeat: Repeat, instrument: str, reading: Reading) -> Reading:
    """Return a reading of ``instrument``; keep what took it, and what else it saw, as a diagnostic.

    Raises:
        UnreadableError: Another instrument took it: that one may be calibrated under its own name, and says
            nothing of the one that was asked for.
    """
    repeat.record("read_by", reading.instrument)
    repeat.record("reading", {"value": reading.value, **reading.details})
    repeat._name_taker("reading", reading.instrument)  # noqa: SLF001 - evidence names what was held
    if reading.instrument != instrument:
        raise UnreadableError(f"here it falls back to {reading.instrument}, which took the reading")
    return reading


def detail(reading: Reading, name: str) -> Any:
    """Return what else an instrument saw; raise :class:`UnreadableError` if it did not say."""
    if reading.details.get(name) is None:
        raise UnreadableError(f"{reading.instrument} does not say {quoted(name)}")
    return reading.details[name]
