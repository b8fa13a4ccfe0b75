"""What a square wave drives: the CPU or the current CUDA device, with kernels of about a wanted length.

The length is found by trying sizes, so it is what this machine made of it just now; ``kernel_seconds`` says
what kernels really took, at the least, by the device's own clock.
"""

from __future__ import annotations

import math
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

from pytest_prereg.measure.instruments.reading import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Callable

WORKLOAD_VERSION = "1"

FIRST_WORK = 1e5
NUMBERS = 64
MOST_TERMS = 1e9
"""Some seconds, of one thread: a degree that a float32 can still count."""
MOST_NUMBERS = 1e9
"""Eight gigabytes, arguments and results."""
ROUNDS = 6
TRIES = 7
CLOSE = 1.05
"""How near a size has to come to the wanted time for the search to end, as a ratio."""
WARM_SECONDS = 0.3
"""A GPU that idled has to be kept busy for as long until its clock is up."""


class CpuDevice:
    """Legendre polynomials on one thread; launching one runs it to its end, so there is never work left.

    A few numbers, and a degree that makes them take long: a kernel that swept the caches, such as a matrix
    product, would slow what the host and the profiler do between kernels, by more the longer it is. What
    launches it has its arguments already, and no line of Python runs between the wave's two looks at the
    clock: on a machine that others use as well each would cost it a microsecond or more.

    Args:
        kernel: Seconds that a launch should take.
    """

    operator = "aten::special_legendre_polynomial_p"
    """What a profiler calls a launch."""

    def __init__(self, kernel: float) -> None:
        import torch  # noqa: PLC0415  # an extra, and heavy

        # All of torch in this process: an operator that other threads join in ends with the last of them.
        torch.set_num_threads(1)
        self._torch = torch
        self._prepare(_work_for(kernel, self._time, MOST_TERMS))

    def _prepare(self, work: float) -> None:
        """Make numbers and degrees that take ``work`` terms together, to the nearest term of each."""
        self._numbers = self._torch.linspace(-0.9, 0.9, NUMBERS)
        self._degrees = self._torch.full((NUMBERS,), max(1.0, float(round(work / NUMBERS))))
        self.launch: Callable[[], object] = partial(
            self._torch.special.legendre_polynomial_p,
            self._numbers,
            self._degrees,
            out=self._torch.empty(NUMBERS),
        )
        """Compute all numbers once."""
        self.synchronise: Callable[[], object] = object
        """Do nothing, as fast as can be: nothing runs after its launch."""
        self.kernel_seconds = math.inf

    def _time(self, work: float) -> float:
        self._prepare(work)
        for _ in range(TRIES):
            began = perf_counter()
            self.launch()
            self.took(perf_counter() - began)
        return self.kernel_seconds

    def took(self, seconds: float) -> None:
        """Keep the least: the host's clock is the CPU's own."""
        self.kernel_seconds = min(self.kernel_seconds, seconds)

    def is_idle(self) -> bool:
        """Return ``True``: nothing runs after its launch."""
        return True


class CudaDevice:
    """An elementwise function of many numbers on the current stream of the current device.

    One launch is one kernel; of a matrix product cuBLAS may make several.

    Args:
        kernel: Seconds that a kernel should take.
    """

    operator = "aten::lgamma"
    """What a profiler calls a launch."""

    def __init__(self, kernel: float) -> None:
        import torch  # noqa: PLC0415  # an extra, and heavy

        self._torch = torch
        self._begin, self._end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self._warm()
        self._prepare(_work_for(kernel, self._time, MOST_NUMBERS))

    def _prepare(self, work: float) -> None:
        count = max(1, round(work))
        self._numbers = self._torch.rand(count, device="cuda") + 1
        self._results = self._torch.empty_like(self._numbers)
        self._shortest = math.inf
        self._torch.cuda.synchronize()

    def _warm(self) -> None:
        self._prepare(FIRST_WORK * 100)
        until = perf_counter() + WARM_SECONDS
        while perf_counter() < until:
            self.launch()
            self.synchronise()

    def _time(self, work: float) -> float:
        self._prepare(work)
        for _ in range(TRIES):
            self.launch()
            self.synchronise()
            shortest = self.kernel_seconds
        return shortest

    def launch(self) -> None:
        """Enqueue one kernel between two events."""
        self._begin.record()
        self._torch.lgamma(self._numbers, out=self._results)
        self._end.record()

    def synchronise(self) -> None:
        """Wait for all streams of the device."""
        self._torch.cuda.synchronize()

    def is_idle(self) -> bool:
        """Whether the event behind the last kernel has come to pass."""
        return bool(self._end.query())

    def took(self, seconds: float) -> None:
        """Ignore it: the device has a clock of its own."""

    @property
    def kernel_seconds(self) -> float:
        """The shortest of the kernels that were asked about, each the last one launched before."""
        self._shortest = min(self._shortest, self._begin.elapsed_time(self._end) * 1e-3)
        return self._shortest


def device_for(instrument: str, kernel: float) -> CpuDevice | CudaDevice:
    """Return the device that an instrument watches, with kernels of about ``kernel`` seconds.

    Operators are the CPU's; whatever else reads a share watches the current CUDA device.

    Raises:
        ValueError: A length that is none.
        UnreadableError: There is no CUDA device, and the instrument watches one.
    """
    if isinstance(kernel, bool) or not isinstance(kernel, int | float) or not 0 < kernel < math.inf:
        raise ValueError(f"kernel: {kernel} is no number of seconds above 0")

    import torch  # noqa: PLC0415  # an extra, and heavy

    if instrument == "operator-intervals":
        return CpuDevice(kernel)
    if not torch.cuda.is_available():
        raise UnreadableError("it watches a CUDA device, and there is none to drive")
    return CudaDevice(kernel)


def _work_for(kernel: float, time_of: Callable[[float], float], most: float) -> float:
    """Return the work, up to ``most``, that takes nearest to ``kernel`` seconds, of those tried on the way.

    Time grows with work once a kernel is more than its launch, so each step is the ratio that was missed.
    """
    work, best = FIRST_WORK, (math.inf, FIRST_WORK)
    for _ in range(ROUNDS):
        took = time_of(work)
        best = min(best, (abs(math.log(took / kernel)), work))
        if best[0] < math.log(CLOSE):
            break
        work = min(most, max(1.0, work * kernel / took))
    return best[1]
