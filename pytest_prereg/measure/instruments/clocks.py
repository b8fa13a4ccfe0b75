"""Clocks over a window: the synchronised wall clock, and the device's own time between two events.

Unit: seconds. A window begins and ends with the accelerator idle, so both read the same stretch. The events
add what the host's clock can't say: how long it was for the device.
"""

from __future__ import annotations

from time import perf_counter_ns
from typing import Any

from pytest_prereg.measure.instruments import wall_clock
from pytest_prereg.measure.instruments.bench import CUDA_EVENTS
from pytest_prereg.measure.instruments.reading import Reading, UnreadableError


class WallClockReader:
    """Reads the monotonic clock at both ends of a window that is synchronised already."""

    def __init__(self) -> None:
        self._began = self._ended = 0

    def start(self) -> None:
        """Note the time."""
        self._began = perf_counter_ns()

    def stop(self) -> None:
        """Note the time."""
        self._ended = perf_counter_ns()

    def reading(self) -> Reading:
        """Return the seconds in between."""
        return Reading(value=(self._ended - self._began) * 1e-9, instrument=wall_clock.NAME)


class CudaEventsReader:
    """Reads the time between two events on the stream that is current when the window begins.

    Details: ``wall``, the seconds that the wall clock read around the events, which can't be fewer but for
    the two clocks' difference in rate; ``device``, its index; ``stream_changed``, whether the body left
    another stream current than it found.
    """

    def __init__(self) -> None:
        self._wall = WallClockReader()
        self._cuda: Any = None
        self._stream: Any = None
        self._begin: Any = None
        self._end: Any = None

    def start(self) -> None:
        """Record the first event.

        Raises:
            UnreadableError: CUDA isn't in use yet; this initialises nothing.
        """
        self._cuda = wall_clock.cuda_in_use()
        if self._cuda is None:
            raise UnreadableError("no CUDA device is used in this process")
        self._stream = self._cuda.current_stream()
        self._begin, self._end = (self._cuda.Event(enable_timing=True) for _ in range(2))
        self._wall.start()
        self._record(self._begin)

    def stop(self) -> None:
        """Record the second event, and wait for it.

        Raises:
            UnreadableError: The device has failed.
        """
        self._record(self._end)
        self._wall.stop()

    def reading(self) -> Reading:
        """Return the seconds from event to event."""
        return Reading(
            value=self._begin.elapsed_time(self._end) * 1e-3,
            instrument=CUDA_EVENTS,
            details={
                "wall": self._wall.reading().value,
                "device": self._stream.device_index,
                "stream_changed": self._cuda.current_stream() != self._stream,
            },
        )

    def _record(self, event: Any) -> None:
        try:
            event.record(self._stream)
            event.synchronize()
        except RuntimeError as error:
            raise device_failure(error) from None


def device_failure(error: RuntimeError) -> UnreadableError:
    """Return what torch said as the reason why nothing can be read: a kernel's failure surfaces later."""
    return UnreadableError(f"the device failed: {error}".partition("\n")[0])
