"""Time per call of something short: device events on CUDA, batches of calls on a CPU.

Unit: seconds per call. On CUDA each call is timed between two events, after the L2 cache has been flushed by
writing a larger buffer: a call finds its data in memory, as it would between other kernels. Known bias:
events are half a microsecond apart at best. On a CPU a batch is long enough that reading the clock is at
most a thousandth of it; caches stay warm.
"""

from __future__ import annotations

import sys
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_prereg.measure.instruments import wall_clock

if TYPE_CHECKING:
    from collections.abc import Callable

CUDA_EVENTS = "cuda-events"
BATCH_NS = 100_000
"""Reading the monotonic clock takes some 50 ns."""
FEWEST_CALLS = 10
MOST_CALLS = 10_000_000


class Timing(NamedTuple):
    """Mean time of a call in seconds, over how many calls, and the instrument that took it."""

    seconds: float
    calls: int
    instrument: str


def bench(call: Callable[[], object], *, seconds: float) -> Timing:
    """Call ``call`` again and again for about ``seconds``, after a first call that doesn't count."""
    call()
    cuda = wall_clock.cuda_in_use()
    return _on_cpu(call, seconds) if cuda is None else _on_cuda(call, seconds, cuda)


def _on_cpu(call: Callable[[], object], seconds: float) -> Timing:
    calls = total = 0
    batch = _batch(call)
    while calls < FEWEST_CALLS or (total < seconds * 1e9 and calls < MOST_CALLS):
        total += _elapsed(call, batch)
        calls += batch
    return Timing(total * 1e-9 / calls, calls, wall_clock.NAME)


def _batch(call: Callable[[], object]) -> int:
    """Return how many calls take ``BATCH_NS`` together."""
    batch = 1
    while _elapsed(call, batch) < BATCH_NS and batch < MOST_CALLS:
        batch *= 2
    return batch


def _elapsed(call: Callable[[], object], times: int) -> int:
    began = perf_counter_ns()
    for _ in range(times):
        call()
    return perf_counter_ns() - began


def _on_cuda(call: Callable[[], object], seconds: float, cuda: Any) -> Timing:
    flush = _cache_flush(cuda)
    rough = _events_ms(call, flush, cuda, FEWEST_CALLS)
    calls = max(FEWEST_CALLS, min(MOST_CALLS // 1000, int(seconds * 1e3 * FEWEST_CALLS / max(rough, 1e-3))))
    return Timing(_events_ms(call, flush, cuda, calls) * 1e-3 / calls, calls, CUDA_EVENTS)


def _events_ms(call: Callable[[], object], flush: Callable[[], object], cuda: Any, calls: int) -> float:
    """Return the milliseconds that ``calls`` calls took on the device, flushes left out."""
    pairs = [(cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)) for _ in range(calls)]
    for begin, end in pairs:
        flush()
        begin.record()
        call()
        end.record()
    cuda.synchronize()
    return float(sum(begin.elapsed_time(end) for begin, end in pairs))


def _cache_flush(cuda: Any) -> Callable[[], object]:
    torch = sys.modules["torch"]
    size = 2 * getattr(cuda.get_device_properties(), "L2_cache_size", 128 << 20)
    buffer: Any = torch.empty(size, dtype=torch.int8, device="cuda")
    return buffer.zero_  # type: ignore[no-any-return]
