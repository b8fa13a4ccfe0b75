"""Which class takes the readings of which instrument; none is loaded before it is used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from pytest_prereg.measure.instruments.reading import Reader

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


def reader_of(instrument: str) -> Reader:
    """Return a new reader, for one window.

    Raises:
        KeyError: The package has no such instrument, or it has no window.
    """
    module, _, name = READERS[instrument].partition(":")
    return cast("Reader", getattr(import_module(module), name)())
