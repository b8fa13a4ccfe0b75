"""Energy of the CPU packages, by the counters that the kernel shows below ``/sys/class/powercap``.

Unit: joules, of all packages together; their parts (cores, memory) and the platform (``psys``) are left out.
Known bias: all that runs on the machine is in it; memory and mainboard are not. The counters move about
every millisecond, and start again at ``max_energy_range_uj``, after four minutes at 1 kW: they are read
often enough that none can do so twice in between. From the kernel's documentation,
https://docs.kernel.org/power/powercap/powercap.html.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from pytest_prereg.measure.instruments.polling import Poller, Read
from pytest_prereg.measure.instruments.reading import Reading, UnreadableError

ROOT = Path("/sys/class/powercap")
MOST_WATTS = 1000.0
"""No package draws more, so that more than this was no wrap-around."""
SLACK_SECONDS = 0.1
"""How much longer than between two reads a counter may have run, since reading takes time."""
READS_PER_WRAP = 4
LONGEST_PAUSE = 10.0
"""Seconds between two reads."""
SHORTEST_WINDOW = 0.1
"""Seconds; the millisecond after which a counter moves is a hundredth of it."""


class Package(NamedTuple):
    """The counter of one CPU package."""

    name: str
    """Of its folder, which is one package's alone."""
    counter: Path
    wraps_at: int
    """Microjoules at which the counter starts again."""


class RaplEnergy:
    """Joules that the CPU packages took over the window.

    Unreadable where there are no counters, where they may not be read, in a window shorter than 0.1 s, and
    where a counter stands still, or moves as no package can.
    """

    def __init__(self) -> None:
        self._packages: list[Package] = []

    def start(self) -> None:
        """Find the packages, and read their counters.

        Raises:
            UnreadableError: There are none, or one can't be read.
        """
        self._packages = packages()
        fastest = min(package.wraps_at for package in self._packages) * 1e-6 / MOST_WATTS
        self._poller = Poller(self._read, seconds=min(fastest / READS_PER_WRAP, LONGEST_PAUSE))
        self._poller.start()

    def stop(self) -> None:
        """Read the counters for the last time, and end the thread that reads them in between."""
        self._poller.stop()

    def reading(self) -> Reading:
        """Return the joules of all packages; in the details those of each, and how often it started again.

        Raises:
            UnreadableError: The counters don't tell the energy, for one of the reasons above.
        """
        reads = self._poller.reads()
        seconds = reads[-1].at - reads[0].at
        if seconds < SHORTEST_WINDOW:
            raise UnreadableError(f"the window took {seconds:.3g} s, and has to take {SHORTEST_WINDOW:g} s")
        joules = {package.name: _joules(package, reads) for package in self._packages}
        total = sum(joules.values())
        return Reading(
            value=total,
            instrument="rapl-energy",
            details={
                "packages": joules,
                "wraps": {package.name: _wraps(package, reads) for package in self._packages},
                "mean_power_w": total / seconds,
                "reads": len(reads),
            },
        )

    def _read(self) -> dict[str, int]:
        return {package.name: _number(package.counter) for package in self._packages}


def packages() -> list[Package]:
    """Return the CPU packages of this machine below :data:`ROOT`.

    Raises:
        UnreadableError: There are none, or the kernel doesn't let this process look.
    """
    try:
        folders = sorted(ROOT.iterdir())
    except OSError as error:
        raise _refusal(ROOT, error) from error
    # Parts of a package are called intel-rapl:0:0; intel-rapl-mmio:0 is a second view of a package.
    domains = [folder for folder in folders if folder.name.startswith("intel-rapl:")]
    found = [_package(folder) for folder in domains if _text(folder / "name").startswith("package-")]
    if not found:
        raise UnreadableError(f"no intel-rapl:* in {ROOT} is a CPU package; containers often show none")
    return found


def _package(folder: Path) -> Package:
    wraps_at = _number(folder / "max_energy_range_uj")
    if not wraps_at:
        raise UnreadableError(f'"{folder}/max_energy_range_uj" is 0')
    return Package(folder.name, folder / "energy_uj", wraps_at)


def _joules(package: Package, reads: list[Read[dict[str, int]]]) -> float:
    """Return what the package took from the first read to the last."""
    moved = sum(_moved(package, before, after) for before, after in pairwise(reads))
    if moved == 0:
        raise UnreadableError(f'the counter of "{package.name}" stood still over the window')
    return moved / 1e6


def _moved(package: Package, before: Read[dict[str, int]], after: Read[dict[str, int]]) -> int:
    """Return the microjoules between two reads, where the counter can have started again only once.

    What it can't have moved by is no wrap-around, but a counter that was set back.
    """
    seconds = after.at - before.at
    most = MOST_WATTS * (seconds + SLACK_SECONDS) * 1e6
    if most > package.wraps_at:
        raise UnreadableError(
            f'{seconds:.3g} s passed between two reads of "{package.name}", in which it may have started '
            f"again more than once: it does so at {package.wraps_at / 1e6:g} J"
        )
    first, second = before.what[package.name], after.what[package.name]
    moved = second - first if second >= first else second - first + package.wraps_at
    if not 0 <= moved <= most:
        raise UnreadableError(
            f'the counter of "{package.name}" went from {first} to {second} µJ in {seconds:.3g} s, which is '
            f"no energy that a package takes in that time"
        )
    return moved


def _wraps(package: Package, reads: list[Read[dict[str, int]]]) -> int:
    counts = [read.what[package.name] for read in reads]
    return sum(second < first for first, second in pairwise(counts))


def _number(path: Path) -> int:
    text = _text(path)
    if not text.isdecimal():
        raise UnreadableError(f'"{path}" holds "{text[:40]}", which is no number')
    return int(text)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError as error:
        raise _refusal(path, error) from error


def _refusal(path: Path, error: OSError) -> UnreadableError:
    if isinstance(error, PermissionError):
        why = "since CVE-2020-8694 Linux lets root alone read it, unless an administrator allows more"
        return UnreadableError(f'"{path}": {error.strerror}; {why}')
    if isinstance(error, FileNotFoundError):
        return UnreadableError(f'"{path}" is not there: this machine shows no energy counters of its CPUs')
    return UnreadableError(f'"{path}": {error.strerror or error}')
