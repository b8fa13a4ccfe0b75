"""How the experiments on language models record what they read: memory by its instrument, samples alike."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_prereg.measure.repeat import Repeat

WORKLOAD_VERSION = "1"

PEAK, GROWTH = "peak_memory", "memory_growth"


def memory_instrument(*, on_cuda: bool) -> str:
    """Return what reads memory where the model is."""
    return "cuda-memory" if on_cuda else "process-memory"


@contextmanager
def memory_read(repeat: Repeat, *, on_cuda: bool) -> Iterator[None]:
    """Record ``peak_memory`` and ``memory_growth`` of the block, in bytes, both of one reading."""
    name = memory_instrument(on_cuda=on_cuda)
    window = repeat.instrument(name).window(PEAK)
    with window:
        yield
    record_growth(repeat, name, [] if window.reading is None else [window.reading.details["growth"]])


def record_growth(repeat: Repeat, instrument: str, growths: Sequence[float]) -> None:
    """Record ``memory_growth``, a detail of what an instrument of the package read, as read by it.

    Where it read nothing, that is why there is no value, as it is for the peak.
    """
    if growths:
        repeat._taken_by(instrument).record(GROWTH, one_or_all(growths))  # noqa: SLF001
    else:
        repeat._unreadable(instrument, f'metric "{GROWTH}": {instrument} can\'t be read', GROWTH)  # noqa: SLF001


def one_or_all(samples: Sequence[float]) -> float | list[float]:
    """Return what a metric is recorded as: with one sample a number, as of a timer that is entered once."""
    return list(samples) if len(samples) > 1 else samples[0]
