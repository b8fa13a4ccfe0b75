"""Which class takes the readings of which instrument, a plugin's too; none is loaded before it is used."""

from __future__ import annotations

import math
from importlib import import_module
from typing import TYPE_CHECKING, cast

from pytest_prereg.measure.instruments.reading import Reading, UnreadableError
from pytest_prereg.registry.instruments import INSTRUMENTS, InstrumentKind
from pytest_prereg.registry.plugins import brought_instruments
from pytest_prereg.registry.refusals import nearest

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pytest_prereg.measure.instruments.reading import Reader
    from pytest_prereg.registry.plugins import Brought

_HERE = "pytest_prereg.measure.instruments"
READERS = {
    "wall-clock": f"{_HERE}.clocks:WallClockReader",
    "cuda-events": f"{_HERE}.clocks:CudaEventsReader",
    "kernel-intervals": f"{_HERE}.kernel_intervals:KernelIntervals",
    "operator-intervals": f"{_HERE}.kernel_intervals:OperatorIntervals",
    "nvml-utilisation": f"{_HERE}.nvml:Utilisation",
    "nvml-samples": f"{_HERE}.nvml:BufferedSamples",
    "nvml-energy": f"{_HERE}.nvml:Energy",
    "rapl-energy": f"{_HERE}.rapl:RaplEnergy",
    "cuda-memory": f"{_HERE}.memory:CudaMemory",
    "process-memory": f"{_HERE}.memory:ProcessMemory",
    "host-load": f"{_HERE}.host_load:HostLoad",
}
"""Module and class, by instrument. A square wave makes the load that it reads, and has no window."""


def kind_of(instrument: str) -> InstrumentKind | None:
    """Return what an instrument with a window is: the package's own or, if it has none, a plugin's.

    Raises:
        RefusedError: PR127: a plugin is broken.
    """
    if instrument in READERS:
        return INSTRUMENTS[instrument]
    if (brought := brought_instruments().get(instrument)) is None:
        return None
    what = brought.what
    return InstrumentKind(name=what.name, unit=what.unit, reads=what.reads, bias=what.bias)


def unknown(instrument: str) -> str:
    """Say that there is no such instrument, with the one that was probably meant."""
    names = [*READERS, *brought_instruments()]
    near = nearest(instrument, names)
    hint = f'; did you mean "{near}"?' if near else f": {', '.join(names)}"
    return f'no instrument that reads over a window is "{instrument}"{hint}'


def reader_of(instrument: str) -> Reader:
    """Return a new reader, for one window.

    Raises:
        KeyError: There is no such instrument, or it has no window.
    """
    if instrument not in READERS:
        return _Brought(brought_instruments()[instrument])
    module, _, name = READERS[instrument].partition(":")
    return cast("Reader", getattr(import_module(module), name)())


class _Brought:
    """A reader of a plugin's: what it raises is why there is no reading, which goes by the plugin's name."""

    def __init__(self, brought: Brought) -> None:
        self._brought = brought
        self._reader: Any = None

    def start(self) -> None:
        self._reader = self._tried(self._brought.what)
        self._tried(self._reader.start)

    def stop(self) -> None:
        self._tried(self._reader.stop)

    def reading(self) -> Reading:
        found = self._tried(self._reader.reading)
        value, details = getattr(found, "value", found), getattr(found, "details", {})
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise UnreadableError(f"{self._brought.what.name} returned {value!r}, which is no reading")
        return Reading(value=float(value), instrument=self._brought.what.name, details=dict(details))

    def _tried(self, do: Callable[[], Any]) -> Any:
        try:
            return do()
        except UnreadableError:
            raise
        except Exception as error:
            raise UnreadableError(f"its plugin failed: {self._brought.failed_as(error, do)}") from error
