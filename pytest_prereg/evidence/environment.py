"""What a session ran on: read from files of the system, importing nothing and measuring nothing."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_prereg.registry.instruments import INSTRUMENTS_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping

NONE = "none"
_NVIDIA = Path("/proc/driver/nvidia")
_CPUS = Path("/sys/devices/system/cpu")
_SMI_SECONDS = 5.0
_NO_GPU = "No devices were found"
_HEAD = 4096
MACHINE_PARTS = " | "
"""Stands between the parts of a class of machines."""
PACKAGES = ("pytest-prereg", "pytest", "msgspec", "numpy", "scipy", "torch", "transformers", "triton")
"""What measurements commonly run through."""


def describe_machine() -> dict[str, Any]:
    """Return what of this machine can matter to a measurement; never its name.

    Keys: ``cpu``, ``cores`` (that this process may use), ``cpu_governor`` and ``cpu_max_mhz`` (of those
    cores), ``memory_gib``, ``gpu`` (list of names, empty where there is none), ``driver``, ``os``,
    ``kernel``, ``python``, ``torch``, ``cuda`` (that torch was built for), ``container`` (what kind of one);
    what is not there or can't be told is ``None``.
    """
    gpus, driver = _nvidia()
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "cpu_governor": _governor(),
        "cpu_max_mhz": _max_mhz(),
        "memory_gib": _memory_gib(),
        "gpu": gpus,
        "driver": driver,
        "os": _operating_system(),
        "kernel": platform.release(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "torch": _version("torch"),
        "cuda": _cuda(),
        "container": _container(),
    }


def describe_versions() -> dict[str, str]:
    """Return the versions of Python, of this package and of what measurements commonly run through.

    ``instruments`` is that of the package's own: a release that leaves them as they were leaves it as it is.
    """
    found = ((name, _version(name)) for name in PACKAGES)
    own = {"python": platform.python_version(), "instruments": INSTRUMENTS_VERSION}
    return own | {name: version for name, version in found if version}


def describe_load() -> dict[str, float]:
    """Return what changes from repeat to repeat and is cheap to read: the load average over a minute."""
    return {"load_average": round(os.getloadavg()[0], 2)}


def machine_class(environment: dict[str, Any]) -> str:
    """Return ``CPU model | GPU name | driver major`` of what :func:`describe_machine` returned.

    Two machines of one class are alike as far as the judge is concerned.
    """
    gpus = sorted(set(environment.get("gpu") or ()))
    driver = str(environment.get("driver") or NONE).partition(".")[0]
    return f"{environment.get('cpu') or NONE} | {' + '.join(gpus) or NONE} | {driver}"


def machine_elsewhere(environment: Mapping[str, Any]) -> str | None:
    """Return ``GPU name | driver major | region | backend`` of what a service ran; ``None`` if it is unknown.

    Of a machine without a GPU the first is the CPU's model. With one it is left out: a service puts the GPU
    that was asked for into whatever host has it free, and blocks are drawn at random over these.

    Args:
        environment: What the repeat said of where it ran, in the words of :func:`describe_machine`.
    """
    gpus = sorted({*gpus_in(environment)})
    driver = str(environment.get("driver") or NONE).partition(".")[0]
    told = (" + ".join(gpus) or environment.get("cpu"), environment.get("region"), environment.get("backend"))
    if not any(told):
        return None
    hardware, *place = (str(each or NONE) for each in told)
    return MACHINE_PARTS.join((hardware, driver, *place))


def place_in(machine: str) -> list[str]:
    """Return region and backend of what :func:`machine_elsewhere` returned."""
    return machine.rsplit(MACHINE_PARTS, 2)[1:]


def gpus_in(environment: Mapping[str, Any]) -> list[str]:
    """Return the names of GPUs, told as a list or as one."""
    gpus = environment.get("gpu") or ()
    return [gpus] if isinstance(gpus, str) else [str(name) for name in gpus]


def _cpu_model() -> str | None:
    found = _search(r"^(?:model name|Model|cpu model)\s*:\s*(.+)$", Path("/proc/cpuinfo"))
    return " ".join(found.split()) if found else platform.processor() or platform.machine() or None


def _governor() -> str | None:
    """The frequency governor; several names where cores have different ones."""
    found = {_search(r"^(\S+)$", folder / "scaling_governor") for folder in _frequencies()}
    return " + ".join(sorted(name for name in found if name)) or None


def _max_mhz() -> float | None:
    """The highest clock that the hardware gives the slowest of the cores."""
    found = [_search(r"^(\d+)$", folder / "cpuinfo_max_freq") for folder in _frequencies()]
    return min((int(khz) / 1000 for khz in found if khz), default=None)


def _frequencies() -> list[Path]:
    return [_CPUS / f"cpu{number}" / "cpufreq" for number in sorted(os.sched_getaffinity(0))]


def _memory_gib() -> float | None:
    found = _search(r"^MemTotal:\s*(\d+) kB", Path("/proc/meminfo"))
    return round(int(found) / (1 << 20), 1) if found else None


def _operating_system() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        return platform.system()


def _container() -> str | None:
    marks = {"docker": Path("/.dockerenv"), "podman": Path("/run/.containerenv")}
    for name, mark in marks.items():
        if mark.exists():
            return name
    return os.environ.get("container") or None  # noqa: SIM112  (systemd spells it so)


def _nvidia() -> tuple[list[str] | None, str | None]:
    """Return GPU names and driver version: from the kernel's files, or else from ``nvidia-smi``."""
    names = [_search(r"^Model:\s*(.+)$", path) for path in sorted(_NVIDIA.glob("gpus/*/information"))]
    driver = _search(r"Kernel Module.*?\s(\d+(?:\.\d+)+)\s", _NVIDIA / "version")
    if all(names) and names and driver:
        return [name for name in names if name], driver
    return _nvidia_smi()


def _nvidia_smi() -> tuple[list[str] | None, str | None]:
    """What the driver's program tells; GPUs are unknown, not none, where it is there and fails."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return [], None
    command = [program, "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=_SMI_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError):
        return None, None
    rows = [line.rpartition(", ") for line in answer.stdout.splitlines() if ", " in line]
    if answer.returncode != 0 or not rows:
        return ([] if _NO_GPU in answer.stdout else None), None
    return [name.strip() for name, _, _ in rows], rows[0][2].strip()


def _search(pattern: str, path: Path) -> str | None:
    try:
        with path.open(encoding="utf-8", errors="replace") as stream:
            text = stream.read(
                _HEAD
            )  # of /proc/cpuinfo the first core is enough; the kernel takes long over 200
    except OSError:
        return None
    found = re.search(pattern, text, re.MULTILINE)
    return found[1].strip() if found else None


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _cuda() -> str | None:
    """The CUDA version that torch was built for, from its own file: importing torch takes seconds."""
    try:
        path = importlib.metadata.distribution("torch").locate_file("torch/version.py")
    except importlib.metadata.PackageNotFoundError:
        return None
    return _search(r"^cuda\b[^=]*=\s*['\"]([\d.]+)['\"]", Path(str(path)))
