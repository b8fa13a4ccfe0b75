"""Peak memory over a window: the resident set of this process, and what torch's allocator held on CUDA.

Unit: bytes. Both are high-water marks that someone else keeps, exact where sampling would miss what is short,
and set back when a window begins. A window inside another one sets the mark back as well; what the outer one
has reached until then is noted first.
"""

from __future__ import annotations

import os
import resource
import sys
import threading
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from pytest_prereg.evidence import kernel_counters
from pytest_prereg.measure.executors import processes
from pytest_prereg.measure.instruments import wall_clock
from pytest_prereg.measure.instruments.clocks import device_failure
from pytest_prereg.measure.instruments.reading import Reached, Reading, UnreadableError

PROC = Path("/proc")
RESET_PEAK = "5"
"""What resets the high-water mark, of proc(5)."""
UNCOUNTED = "PYTORCH_NO_CUDA_MEMORY_CACHING"
BACKENDS = ("native", "cudaMallocAsync")
"""Those that keep torch's statistics."""


class MarkResets:
    """Sees to it that no Python of this process sets the kernel's mark back unnoticed.

    Once set back nothing tells how far the mark had been: ``ru_maxrss`` is the same mark. So whatever opens
    the file is counted, from the first window of this process on: what watches for that can't be removed
    again. Code that is no Python, and other processes, go unseen.
    """

    FILE = "clear_refs"

    def __init__(self) -> None:
        self.seen = 0
        """How often the file was opened by anybody else."""
        self._watches = False
        self._own = threading.local()

    def reset(self) -> None:
        """Set the mark back, uncounted; raises :class:`OSError` if the kernel doesn't."""
        if not self._watches:
            self._watches = True
            sys.addaudithook(self._notice)
        self._own.opens = True
        try:
            (PROC / "self" / self.FILE).write_text(RESET_PEAK, encoding="ascii")
        finally:
            self._own.opens = False

    def _notice(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and not getattr(self._own, "opens", False) and self._is_named(arguments[0]):
            self.seen += 1

    def _is_named(self, path: object) -> bool:
        return isinstance(path, str | bytes | os.PathLike) and os.fsdecode(path).endswith(self.FILE)


MARK_RESETS = MarkResets()


class Held(msgspec.Struct, kw_only=True, frozen=True):
    """What the kernel says that a process holds, in bytes."""

    resident: int
    peak: int
    swapped: int
    huge: int
    """In huge pages of hugetlbfs, which are no part of ``resident``."""


class ProcessMemory:
    """Reads the highest resident set of this process (``VmHWM``), all its threads included.

    Details, in bytes: ``start``, held when the window began; ``growth``, the peak above that; ``lag``, what
    the kernel's counters may be behind, since each core adds to a count of its own first; ``swap_start``
    and ``swap_end``; ``huge_pages``, held at the end. ``machine_swapped``: pages that the whole machine
    swapped in or out. ``others``: how many other processes of the repeat there were at the end (children,
    orphans, a service), none of whose memory is in the reading, and ``others_peak``, the sum of their own
    peaks. ``waited_for``: whether any child was waited for in the window, and ``waited_for_peak``, the peak
    of the largest child waited for so far.
    """

    _open: ClassVar[list[ProcessMemory]] = []

    def __init__(self) -> None:
        self._start = self._stop = Held(resident=0, peak=0, swapped=0, huge=0)
        self._reached = 0
        self._refusal = ""
        self._machine_swapped: int | None = None
        self._faults_of_children = 0
        self._resets = 0

    def start(self) -> None:
        """Set the mark back.

        Raises:
            UnreadableError: The kernel doesn't keep one.
        """
        for outer in self._open:
            outer._reached = max(outer._reached, _held(os.getpid()).peak)  # noqa: SLF001
        self._machine_swapped = kernel_counters.pages_swapped()
        self._faults_of_children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
        try:
            MARK_RESETS.reset()
        except OSError as error:
            self._refusal = f" ({error.strerror})"
        self._resets = MARK_RESETS.seen
        self._start = _held(os.getpid())
        self._open.append(self)

    def stop(self) -> None:
        """Read the mark."""
        self._open.remove(self)
        self._stop = _held(os.getpid())
        self._resets = MARK_RESETS.seen - self._resets

    def reached(self) -> Reached:
        """Return the peak up to now; where that isn't known, what was held at the start."""
        mark = _held(os.getpid()).peak
        peak = max(self._reached, self._start.resident, 0 if self._is_older(mark) else mark)
        return Reached(peak, peak - self._start.resident)

    def reading(self) -> Reading:
        """Return the peak.

        Raises:
            UnreadableError: Pages of this process were swapped out in the window, so that its resident set
                said less than it held; or the mark could not be set back, and the window stayed below it; or
                the body itself set it back.
        """
        if self._resets:
            raise UnreadableError(
                f"/proc/self/clear_refs was opened in the window ({self._resets} times), which sets the peak "
                "back, so that what came before is lost; leave that to the instrument"
            )
        swapped = self._stop.swapped - self._start.swapped
        if swapped > 0:
            raise UnreadableError(f"{swapped} bytes of this process were swapped out in the window")
        if self._is_older(self._stop.peak):
            raise UnreadableError(
                f"this process held {self._start.peak} bytes before the window, which is no less than in it, "
                f"and the kernel did not set that mark back{self._refusal}"
            )
        peak = max(self._stop.peak, self._reached, self._start.resident)
        return Reading(value=peak, instrument="process-memory", details=self._details(peak))

    def _is_older(self, peak: int) -> bool:
        """Whether a mark is from before the window, and was not set back."""
        before = self._start.peak
        return before - self._start.resident > lag() and peak <= before

    def _details(self, peak: int) -> dict[str, Any]:
        counted = kernel_counters.pages_swapped()
        known = counted is not None and self._machine_swapped is not None
        return {
            "start": self._start.resident,
            "growth": peak - self._start.resident,
            "lag": lag(),
            "swap_start": self._start.swapped,
            "swap_end": self._stop.swapped,
            "machine_swapped": (counted or 0) - (self._machine_swapped or 0) if known else None,
            "huge_pages": self._stop.huge,
            **_others(),
            **self._waited_for(),
        }

    def _waited_for(self) -> dict[str, Any]:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        waited = children.ru_minflt > self._faults_of_children  # none runs without a page fault
        return {"waited_for": waited, "waited_for_peak": children.ru_maxrss * 1024 if waited else 0}


def lag() -> int:
    """Return by how many bytes a resident set may be behind.

    Since Linux 6.2 each core keeps up to ``percpu_counter_batch`` pages to itself, for each of the counts of
    anonymous, file and shared pages (lib/percpu_counter.c); before that it was 64 page faults of a thread.
    """
    cores = os.cpu_count() or 1
    return 3 * cores * max(32, 2 * cores) * resource.getpagesize()


def _held(pid: int) -> Held:
    try:
        text = (PROC / str(pid) / "status").read_bytes().decode(errors="replace")
    except OSError as error:
        raise UnreadableError(f"/proc/{pid}/status: {error.strerror}") from None
    rows = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    if "VmHWM" not in rows or "VmRSS" not in rows:
        raise UnreadableError(f"/proc/{pid}/status has no VmHWM or no VmRSS")
    sizes = {name: int(rows.get(name, "0").split()[0]) * 1024 for name in _FIELDS.values()}
    return Held(**{field: sizes[name] for field, name in _FIELDS.items()})


_FIELDS = {"resident": "VmRSS", "peak": "VmHWM", "swapped": "VmSwap", "huge": "HugetlbPages"}


def _others() -> dict[str, Any]:
    """Return how many other processes of this repeat there are, and the sum of their peaks."""
    adopter = processes.adopter()
    found = [pid for pid in processes.descendants(adopter) if pid != os.getpid()]
    peaks = []
    for pid in found:
        try:
            peaks.append(_held(pid).peak)
        except UnreadableError:  # it has just ended
            continue
    return {"others": len(found), "others_peak": sum(peaks)}


class PeakResets:
    """Sees to it that nobody but this module sets back torch's peaks unnoticed while a window is open.

    All of Python does so through the functions of ``torch._C`` that are named here, whatever public name it
    calls. From C++ it goes unseen, unless the peak is then below what is known to have been held.
    """

    def __init__(self) -> None:
        self.seen = 0
        """Resets that came from elsewhere, ever."""
        self._windows = 0
        self._plain: dict[str, Any] = {}

    def watch(self) -> None:
        """Begin to count, if nobody does yet."""
        self._windows += 1
        if self._windows > 1:
            return
        core = sys.modules["torch"]._C  # noqa: SLF001
        self._plain = {name: getattr(core, name) for name in RESETS if hasattr(core, name)}
        for name, plain in self._plain.items():
            setattr(core, name, self._counted(plain))

    def unwatch(self) -> None:
        """Leave torch as it was, once nobody counts any more."""
        self._windows -= 1
        if self._windows:
            return
        for name, plain in self._plain.items():
            setattr(sys.modules["torch"]._C, name, plain)  # noqa: SLF001

    def reset(self, device: int) -> None:
        """Set back the peaks of a device, uncounted."""
        self._plain[RESETS[0]](device)

    def _counted(self, plain: Any) -> Any:
        def reset(*arguments: Any) -> Any:
            self.seen += 1
            return plain(*arguments)

        return reset


RESETS = ("_cuda_resetPeakMemoryStats", "_accelerator_resetPeakStats")
PEAK_RESETS = PeakResets()


class CudaMemory:
    """Reads the highest number of bytes that torch's allocator held in tensors on the current device.

    Details, in bytes: ``start``, held when the window began; ``growth``, the peak above that;
    ``reserved_peak``, what the allocator had from the driver at most; ``driver_start`` and ``driver_end``,
    what the driver had given to all processes, so that what was allocated past torch shows. ``device``: its
    index; ``other_devices``: the peaks of others in use; ``retries``: how often the allocator had to empty
    its cache; ``out_of_memory``: how often that was not enough; ``backend``, of the allocator.
    """

    _open: ClassVar[list[CudaMemory]] = []

    def __init__(self) -> None:
        self._cuda: Any = None
        self._device = 0
        self._before: dict[str, int] = {}
        self._after: dict[str, int] = {}
        self._peaks: dict[int, int] = {}
        """What each device has reached, in bytes, as far as it has been read."""
        self._reserved = 0
        self._driver = [0, 0]
        self._resets = 0

    def start(self) -> None:
        """Set the peaks back.

        Raises:
            UnreadableError: CUDA isn't in use yet, or torch's allocator keeps no statistics.
        """
        self._cuda = _counting_cuda()
        for outer in self._open:
            outer._note_peaks()  # noqa: SLF001
        self._device = self._cuda.current_device()
        self._driver[0] = self._given_by_driver()
        PEAK_RESETS.watch()
        self._open.append(self)
        self._resets = PEAK_RESETS.seen
        for device in range(self._cuda.device_count()):
            PEAK_RESETS.reset(device)
        self._before = self._cuda.memory_stats(self._device)

    def stop(self) -> None:
        """Read the peaks."""
        self._note_peaks()
        self._after = self._cuda.memory_stats(self._device)
        self._resets = PEAK_RESETS.seen - self._resets
        self._open.remove(self)
        PEAK_RESETS.unwatch()
        self._driver[1] = self._given_by_driver()

    def reached(self) -> Reached:
        """Return the peak up to now of the device that was current when the window began."""
        self._note_peaks()
        peak = self._peaks[self._device]
        return Reached(peak, peak - self._before[HELD])

    def reading(self) -> Reading:
        """Return the peak of the device that was current when the window began.

        Raises:
            UnreadableError: The body itself set the peaks back.
        """
        start, peak = self._before[HELD], self._peaks[self._device]
        if self._resets or peak < start:
            raise UnreadableError(
                f"torch's peak statistics were reset in the window ({self._resets or 1} times), so that what "
                "came before is lost; leave that to the instrument"
            )
        return Reading(value=peak, instrument="cuda-memory", details=self._details(start, peak))

    def _details(self, start: int, peak: int) -> dict[str, Any]:
        others = {str(device): held for device, held in self._peaks.items() if device != self._device}
        return {
            "start": start,
            "growth": peak - start,
            "reserved_peak": self._reserved,
            "driver_start": self._driver[0],
            "driver_end": self._driver[1],
            "device": self._device,
            "other_devices": {device: held for device, held in others.items() if held},
            "retries": self._after["num_alloc_retries"] - self._before["num_alloc_retries"],
            "out_of_memory": self._after["num_ooms"] - self._before["num_ooms"],
            "backend": self._cuda.get_allocator_backend(),
        }

    def _note_peaks(self) -> None:
        for device in range(self._cuda.device_count()):
            reached = self._cuda.max_memory_allocated(device)
            self._peaks[device] = max(self._peaks.get(device, 0), reached)
        self._reserved = max(self._reserved, self._cuda.max_memory_reserved(self._device))

    def _given_by_driver(self) -> int:
        try:
            free, total = self._cuda.mem_get_info(self._device)
        except RuntimeError as error:
            raise device_failure(error) from None
        return int(total - free)


HELD = "allocated_bytes.all.current"


def _counting_cuda() -> Any:
    """Return ``torch.cuda``, if its allocator counts.

    Raises:
        UnreadableError: It doesn't, or CUDA isn't in use.
    """
    cuda = wall_clock.cuda_in_use()
    if cuda is None:
        raise UnreadableError("no CUDA device is used in this process")
    if os.environ.get(UNCOUNTED):
        raise UnreadableError(f"with {UNCOUNTED} torch doesn't count what it allocates; unset it")
    backend = cuda.get_allocator_backend()
    if backend not in BACKENDS:
        raise UnreadableError(f'the allocator "{backend}" keeps no statistics')
    if not hasattr(sys.modules["torch"]._C, RESETS[0]):  # noqa: SLF001
        raise UnreadableError(f"this torch has no {RESETS[0]}, so resets of its peaks can't be seen")
    return cuda
