"""The built-in ``known_memory``: a known number of bytes, held for a while."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING

from pytest_prereg.measure.experiment import experiment
from pytest_prereg.measure.instruments.reading import UnreadableError
from pytest_prereg.measure.instruments.square_wave import StimulusError
from pytest_prereg.measure.workloads.calibration.reading import calibrating, detail, read_during
from pytest_prereg.registry.instruments import CALIBRATES
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_prereg.measure.instruments.reading import Reader
    from pytest_prereg.measure.repeat import Repeat

WORKLOAD_VERSION = "1"

MEBIBYTE = 1 << 20
MOST_MEBIBYTES = 1 << 40


@experiment(
    metrics={
        "known": {"unit": "byte", "exact": True},
        "growth": {"unit": "byte", "exact": True},
        "error": {"unit": "1", "exact": True},
    },
)
def known_memory(repeat: Repeat, *, instrument: str = "process-memory", mebibytes: int = 256) -> None:
    """Hold ``mebibytes`` of memory, write to all of it, and free it before the instrument stops.

    ``known`` is that number of bytes, ``growth`` how far above the beginning of the window the instrument saw
    the peak, ``error`` how much of ``known`` the second is above the first.
    """
    if not isinstance(mebibytes, int) or not 1 <= mebibytes <= MOST_MEBIBYTES:
        raise ValueError(f"mebibytes: {quoted(mebibytes)} is no whole number of them from 1; write 256, say")
    known = mebibytes * MEBIBYTE
    with calibrating(repeat, instrument, CALIBRATES["known_memory"]):
        reading, _ = read_during(repeat, instrument, _HOLD[instrument](known))
        growth = detail(reading, "growth")
        repeat.record("known", known)
        repeat.record("growth", growth)
        repeat.record("error", (growth - known) / known)


def _in_process(size: int) -> Callable[[Reader], None]:
    """Return what maps pages of its own, writes to each, and unmaps them."""

    def hold(_: Reader) -> None:
        try:
            pages = mmap.mmap(-1, size)
        except OSError as error:
            raise StimulusError(f"{size} bytes can't be had: {error.strerror}") from None
        with pages:
            for offset in range(0, size, mmap.PAGESIZE):
                pages[offset] = 1

    return hold


def _on_cuda(size: int) -> Callable[[Reader], None]:
    """Return what fills a tensor on the current device; CUDA is in use before the window begins.

    Raises:
        UnreadableError: There is no CUDA device.
    """
    import torch  # noqa: PLC0415  # an extra, and heavy

    if not torch.cuda.is_available():
        raise UnreadableError("there is no CUDA device")
    torch.cuda.init()

    def hold(_: Reader) -> None:
        torch.full((size,), 1, dtype=torch.uint8, device="cuda")
        torch.cuda.synchronize()

    return hold


_HOLD = {"process-memory": _in_process, "cuda-memory": _on_cuda}
