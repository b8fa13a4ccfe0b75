"""What ``nvidia-smi`` says of the GPUs that a repeat can see: clock, temperature, throttling, processes.

The driver is asked through its own program, in a process of its own: nothing is loaded into the process that
asks, and a driver that hangs is left alone after a few seconds. What can't be read is ``None``, never 0.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

DEVICES = Path("/dev")
SECONDS = 3.0
"""What one look may take, all its questions together."""

GPU_IDLE = 0x1
NO_THROTTLING = GPU_IDLE | 0x2 | 0x100
"""Reasons for a clock that are no slowdown: idle, and clocks that somebody set, of applications or displays.

Every other bit is one, unknown ones included: power cap 0x4, hardware slowdown 0x8, sync boost 0x10, software
thermal slowdown 0x20, hardware thermal slowdown 0x40, power brake 0x80. From NVIDIA's NVML API reference,
https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html.
"""

_MARKS = ("nvidiactl", "dxg")
"""What the driver shows wherever it shows any GPU, in containers too; and where Windows lends Linux one."""
_WHICH = "index,uuid,name"
_STATE = "clocks.sm,temperature.gpu"
_COUNTERS = ",".join(
    f"clocks_event_reasons_counters.{name}"
    for name in ("sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown")
)
_QUERIES = (
    f"{_WHICH},{_STATE},clocks_event_reasons.active,{_COUNTERS}",
    f"{_WHICH},{_STATE},clocks_event_reasons.active",
    f"{_WHICH},{_STATE},clocks_throttle_reasons.active",
)
"""The newest drivers count how long a slowdown lasted; those before R535 call its reasons otherwise."""
_FIELDS = 6
_UNKNOWN_FIELD = "not a valid field"


class Gpu(msgspec.Struct, kw_only=True, frozen=True):
    """One GPU at one moment."""

    index: int
    """In the order of the PCI bus."""
    uuid: str
    name: str
    clock_mhz: float | None
    """Of the multiprocessors."""
    temp_c: float | None
    reasons: int | None
    """Bits of why the clock is what it is."""
    slowed_us: float | None
    """How long it has ever been slowed down by heat or by the power brake; ``None`` from most drivers."""


class Look(msgspec.Struct, kw_only=True, frozen=True):
    """All GPUs of the machine at one moment."""

    gpus: tuple[Gpu, ...] | None = None
    """``None`` if nothing could be read of them."""
    processes: tuple[tuple[str, int], ...] | None = None
    """UUID of the GPU and pid of every process that computes; ``None`` if they could not be read."""
    hung: bool = False
    """Whether the driver gave no answer in time: it is not worth another question."""


def gpu_is_there() -> bool:
    """Whether this machine shows a GPU of NVIDIA and has the program that reads it; takes microseconds."""
    return any((DEVICES / name).exists() for name in _MARKS) and shutil.which("nvidia-smi") is not None


def look() -> Look:
    """Ask the driver once; never raises, and takes at most about :data:`SECONDS`."""
    from pytest_prereg.evidence.driver_questions import Question  # noqa: PLC0415 - only where a GPU is

    until = time.monotonic() + SECONDS
    processes = Question("--query-compute-apps=gpu_uuid,pid")
    gpus = _newest_answer(until)
    pids = processes.answer(until)
    return Look(
        gpus=None if gpus.text is None else _gpus(gpus.text),
        processes=None if pids is None else _processes(pids),
        hung=gpus.hung or processes.hung,
    )


def visible(gpus: Sequence[Gpu], environ: Mapping[str, str]) -> tuple[Gpu, ...]:
    """The GPUs that a process with this environment can use; all of them where that can't be told."""
    told = named(gpus, environ)
    return tuple(gpus) if told is None else told


def named(gpus: Sequence[Gpu], environ: Mapping[str, str]) -> tuple[Gpu, ...] | None:
    """The GPUs that ``CUDA_VISIBLE_DEVICES`` names, in its order and as CUDA reads it.

    Entries are indices or UUIDs, which may be shortened; the first that names none ends the list. CUDA
    counts by speed unless ``CUDA_DEVICE_ORDER`` says otherwise, so that among unlike GPUs an index says
    nothing: then, as for a slice of a GPU that only its own UUID names, and where the variable isn't set,
    there is no telling, which is ``None``.
    """
    written = environ.get("CUDA_VISIBLE_DEVICES")
    if written is None:
        return None
    entries = [entry.strip() for entry in written.split(",")]
    alike = len({gpu.name for gpu in gpus}) < 2 or environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"  # noqa: PLR2004
    if any(entry.startswith("MIG-") and not entry.startswith("MIG-GPU-") for entry in entries):
        return None
    if any(entry.isdecimal() for entry in entries) and not alike:
        return None
    return tuple(dict.fromkeys(_chosen(gpus, entries)))


def _chosen(gpus: Sequence[Gpu], entries: Iterable[str]) -> Iterable[Gpu]:
    for entry in entries:
        named = entry.removeprefix("MIG-").partition("/")[0]
        found = [
            gpu
            for gpu in gpus
            if (entry.isdecimal() and gpu.index == int(entry))
            or (named.startswith("GPU-") and gpu.uuid.lower().startswith(named.lower()))
        ]
        if len(found) != 1:
            return
        yield found[0]


class _Answer(msgspec.Struct, kw_only=True, frozen=True):
    text: str | None
    hung: bool


def _newest_answer(until: float) -> _Answer:
    """The answer to the fullest question that this driver understands."""
    from pytest_prereg.evidence.driver_questions import Question  # noqa: PLC0415

    for fields in _QUERIES:
        question = Question(f"--query-gpu={fields}")
        text = question.answer(until)
        if text is not None or _UNKNOWN_FIELD not in question.complaint:
            return _Answer(text=text, hung=question.hung)
    return _Answer(text=None, hung=False)


def _gpus(text: str) -> tuple[Gpu, ...] | None:
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines() if line.strip()]
    if not rows or not all(len(row) >= _FIELDS and row[0].isdecimal() for row in rows):
        return None
    return tuple(_gpu(row) for row in rows)


def _gpu(row: list[str]) -> Gpu:
    slowed = [_number(cell) for cell in row[_FIELDS:]]
    known = [each for each in slowed if each is not None]
    return Gpu(
        index=int(row[0]),
        uuid=row[1],
        name=row[2],
        clock_mhz=_number(row[3]),
        temp_c=_number(row[4]),
        reasons=_bits(row[5]),
        slowed_us=sum(known) if known and len(known) == len(slowed) else None,
    )


def _processes(text: str) -> tuple[tuple[str, int], ...] | None:
    rows = [line.rpartition(",") for line in text.splitlines() if line.strip()]
    if not all(pid.strip().isdecimal() for _, _, pid in rows):
        return None
    return tuple((uuid.strip(), int(pid)) for uuid, _, pid in rows)


def _number(cell: str) -> float | None:
    """A number as it is printed; ``[N/A]``, ``[Not Supported]`` and the like are none."""
    return float(cell) if cell.replace(".", "", 1).isdecimal() else None


def _bits(cell: str) -> int | None:
    try:
        return int(cell, 16)
    except ValueError:
        return None
