"""The instruments that come with the package: what each reads, in which unit, and how it is known to err.

Nothing here takes a reading; :mod:`pytest_prereg.measure.instruments` does. A study names instruments by
these names, and evidence records under them what took a reading.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from pytest_prereg.registry.durations import seconds_in

if TYPE_CHECKING:
    from collections.abc import Mapping

INSTRUMENTS_VERSION = "1"
"""Rises when an instrument of the package reads differently: a calibration holds for one version."""


@dataclass(frozen=True, kw_only=True)
class InstrumentKind:
    """An instrument of the package."""

    name: str
    unit: str
    """Of its readings: ``s``, ``1`` (a share of the window), ``byte`` or ``J``."""
    reads: str
    bias: str
    """How it is known to err, and where that is known from."""
    through: str | None = None
    """What it reads through, whose version a calibration holds for: a package, by its name."""
    trusted: str | None = None
    """Why it may decide without a table of its own; ``None`` if it may not."""
    falls_back_to: str | None = None
    """What takes the readings where it can't; that has to be calibrated under its own name."""


_KINDS = (
    InstrumentKind(
        name="wall-clock",
        unit="s",
        reads="the monotonic clock, from one idle moment of the accelerator to the next",
        bias="includes the synchronisation itself, some ten microseconds on a CUDA device",
        trusted="all other instruments are held against it",
    ),
    InstrumentKind(
        name="cuda-events",
        unit="s",
        reads="the device's own time between two events on the stream that is current when the window begins",
        bias="as wall-clock, includes the synchronisation, since the second event follows it; what other "
        "devices do is not seen",
        trusted="the device's own clock",
    ),
    InstrumentKind(
        name="kernel-intervals",
        unit="1",
        reads="the share of the window in which a kernel ran: the union of the profiler's kernel intervals "
        "over the window that the caller anchors",
        bias="low: gaps between the kernels of a busy phase count as idle (of operators on a CPU 0.5 points "
        "at 0.35 ms and 7 at 0.03 ms, and up to 3 at 0.35 ms where others evict the host's caches; of a GPU "
        "there are no figures yet); a kernel that waits counts as busy; the profiler slows what it watches, "
        "and drops kernels, which is counted",
        through="torch",
        falls_back_to="operator-intervals",
    ),
    InstrumentKind(
        name="operator-intervals",
        unit="1",
        reads="the share of the window in which a CPU operator ran, of any library, or a graph that torch "
        "compiled: the same union, of operators, where no CUDA device is used",
        bias="low, as kernel-intervals, by 1 to 20 us an operator; what runs past torch's dispatcher "
        "(Python, numpy, children), began before the window, or ran while a function kept from before had "
        "turned the recording off is idle, but shows in the CPU time told beside it; high: an operator that "
        "waits is busy, and the profiler lengthens operators that are made of others, short ones by 5 "
        "points and more, which is estimated beside it",
        through="torch",
    ),
    InstrumentKind(
        name="nvml-utilisation",
        unit="1",
        reads="the driver's utilisation rate, polled over the window, its first two seconds left out",
        bias="the share of the driver's own sample period, 1/6 s to 1 s, in which one or more kernels ran; "
        "swings by tens of points where the load changes as fast as that, and lags by up to two seconds; the "
        "kernels of all processes on the GPU are in it",
    ),
    InstrumentKind(
        name="nvml-samples",
        unit="1",
        reads="the driver's buffered samples of utilisation whose time stamps fall into the window",
        bias="as nvml-utilisation, without the lag; unreadable in many containers, which don't support it, "
        "and on a GPU that takes no samples while it idles",
    ),
    InstrumentKind(
        name="nvml-energy",
        unit="J",
        reads="the driver's energy counter of the GPU, over the window",
        bias="on A100 and H100 power is sampled for a quarter of the time (arXiv 2312.02741), so bursts that "
        "keep step with it are misread; the counter moves in steps of up to 0.1 s; all that runs on the GPU "
        "is in it",
    ),
    InstrumentKind(
        name="rapl-energy",
        unit="J",
        reads="the energy counters of all CPU packages, over the window",
        bias="all that runs on the machine is in it; memory and mainboard are not",
    ),
    InstrumentKind(
        name="cuda-memory",
        unit="byte",
        reads="the highest number of bytes that torch's allocator held in tensors over the window",
        bias="neither the CUDA context nor what is allocated past torch is in it, nor other devices; what "
        "the driver gave to all is told beside it, and a body that resets the peak itself has no reading",
        through="torch",
        trusted="the allocator's own account, of every allocation",
    ),
    InstrumentKind(
        name="process-memory",
        unit="byte",
        reads="the highest resident set of this process over the window (VmHWM)",
        bias="high: pages that it shares with the process that it was forked from are in it, which the "
        "growth told beside it leaves out; low: the kernel counts 128 KiB and more a core before it adds "
        "them up; huge pages and other processes of the repeat are told apart, files that are not mapped "
        "are not seen; a body that sets the peak back itself has no reading, unless it does so from another "
        "process or past Python, which goes unseen",
        trusted="the kernel's own account, of every page",
    ),
    InstrumentKind(
        name="cpu-time",
        unit="s",
        reads="the CPU time of a command and of all that it waited for, by the kernel's account (wait4)",
        bias="what a command leaves running is not in it; some kernels tell user from system time by ticks "
        "of 1/100 s to 1/250 s, and then either is rough for a command that is short",
        trusted="the kernel's own account, of every process",
    ),
    InstrumentKind(
        name="peak-memory",
        unit="byte",
        reads="the largest resident set of any one process of a command that was waited for (ru_maxrss)",
        bias="high: what the process held that started it is the least that it reads; low: the sum of "
        "several processes is not seen, nor what a command leaves running",
        trusted="the kernel's own account, of every page",
    ),
    InstrumentKind(
        name="host-load",
        unit="1",
        reads="the share of the machine's CPU time over the window that was not this repeat's",
        bias="the kernel counts in ticks of 1/100 s, and samples, so that a load that keeps step with it is "
        "misread; what a hypervisor takes is in it, where it shows; a load on few of many cores reads low",
    ),
    InstrumentKind(
        name="square-wave",
        unit="1",
        reads="the duty cycle of the load that it makes itself, with an interval over its periods",
        bias="what the host does between launching and synchronising counts as busy, microseconds a kernel; "
        "the interval is that of another such wave, and too short where the machine stalls now and then",
        trusted="it measures itself with the wall clock, and refuses to run unsynchronised",
    ),
)

INSTRUMENTS: Mapping[str, InstrumentKind] = MappingProxyType({kind.name: kind for kind in _KINDS})
"""All of them, by name."""

_CLOCKS = {"timer": ("wall-clock",), "bench": ("wall-clock", "cuda-events")}
"""What the ways of timing read, by the names that stand for them."""
SELF_BOUND = frozenset({*_CLOCKS, *(kind.name for kind in _KINDS if kind.trusted)})
"""Names that need no table in a study: ``timer`` and ``bench`` stand for the clock that they read."""

CALIBRATES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "square_wave": ("kernel-intervals", "operator-intervals", "nvml-utilisation", "nvml-samples"),
        "trailing_wait": ("kernel-intervals", "operator-intervals"),
        "known_memory": ("process-memory", "cuda-memory"),
        "known_host_load": ("host-load",),
        "known_pause": ("wall-clock", "cuda-events"),
    }
)
"""Instruments that an experiment of the package knows what they should read; the first unless it is told."""

READS = {"s": "a time", "1": "a share", "byte": "bytes", "J": "energy"}
"""What a reading is, by the unit of an instrument's own."""

_UNITS = {
    "1": {"1": 1.0, "percent": 100.0, "%": 100.0},
    "byte": {
        "byte": 1.0,
        **{unit: 1 / 1000**power for power, unit in enumerate(("kB", "MB", "GB", "TB"), 1)},
        **{unit: 1 / 1024**power for power, unit in enumerate(("KiB", "MiB", "GiB", "TiB"), 1)},
    },
    "J": {"J": 1.0, "mJ": 1e3, "kJ": 1e-3, "Wh": 1 / 3600, "kWh": 1 / 3.6e6},
}
"""How many of a unit one of an instrument's own is."""


def needs_calibration(name: str) -> bool:
    """Whether ``name`` is an instrument of the package that may not decide without a table in the study."""
    kind = INSTRUMENTS.get(name)
    return kind is not None and kind.trusted is None


def takers_for(declared: str) -> frozenset[str]:
    """Names under which evidence may have the readings of a metric that declares this instrument."""
    kind = INSTRUMENTS.get(declared)
    fallback = [kind.falls_back_to] if kind is not None and kind.falls_back_to is not None else []
    return frozenset({declared, *_CLOCKS.get(declared, ()), *fallback})


def mistaken_for(name: str) -> str | None:
    """Return the name of the package's that a reader would take ``name`` for; ``None`` if it is one itself.

    Case, and how words are joined, tell no two apart, nor do letters of one look: of such as are not ASCII
    each is taken to look like any, as long as half of the name is.
    """
    if name in SELF_BOUND or name in INSTRUMENTS:
        return None
    looks = _look(name)
    return next((own for own in sorted({*SELF_BOUND, *INSTRUMENTS}) if _alike(looks, _look(own))), None)


_INVISIBLE = frozenset({"Cf", "Mn", "Pc", "Pd", "Zs"})
"""Categories of what joins words, of accents, and of what has no width (UAX 44)."""
_SAME = str.maketrans({"i": "l", "1": "l", "|": "l", "0": "o"})


def _look(name: str) -> str:
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    letters = (each for each in unicodedata.normalize("NFD", folded) if not _is_invisible(each))
    return "".join(letters).translate(_SAME)


def _is_invisible(character: str) -> bool:
    return unicodedata.category(character) in _INVISIBLE


def _alike(name: str, own: str) -> bool:
    if len(name) != len(own):
        return False
    differing = [a for a, b in zip(name, own, strict=True) if a != b]
    return not any(each.isascii() for each in differing) and 2 * len(differing) <= len(own)


def in_unit(kind: InstrumentKind, unit: str) -> float | None:
    """Return what a reading of ``kind`` is multiplied by to be in ``unit``; ``None`` if it can't be."""
    if kind.unit == "s":
        second = seconds_in(unit)
        return None if second is None else 1 / second
    units = _UNITS.get(kind.unit, {kind.unit: 1.0})
    return units.get(unit, units.get(unit.removesuffix("s")))
