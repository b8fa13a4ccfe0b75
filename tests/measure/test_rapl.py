"""Energy of CPU packages, from files like the kernel's that a process of its own moves on."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from pytest_prereg.measure.instruments import rapl
from pytest_prereg.measure.instruments.readers import reader_of
from pytest_prereg.measure.instruments.reading import UnreadableError

JOULE = 1_000_000
"""In microjoules."""
RANGE = 262_143 * JOULE
"""Of most Intel CPUs."""

COUNT = """
import os, sys, time
name, watts, wraps_at, start = sys.argv[1], *map(float, sys.argv[2:])
began = time.monotonic()
while True:
    count = int((start + watts * 1e6 * (time.monotonic() - began)) % wraps_at)
    with open(name + ".new", "w") as file:
        file.write(f"{count}\\n")
    os.replace(name + ".new", name)  # never half a number
    time.sleep(0.002)
"""


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """The folder of a machine without a package yet, beside what is no package."""
    monkeypatch.setattr(rapl, "ROOT", tmp_path)
    (tmp_path / "intel-rapl").mkdir()
    add(tmp_path, "intel-rapl:9", "psys", 5)
    add(tmp_path, "intel-rapl-mmio:0", "package-0", 5)
    return tmp_path


def add(machine: Path, folder: str, name: str, microjoules: object, *, wraps_at: object = RANGE) -> Path:
    """Add a domain; return its counter."""
    domain = machine / folder
    domain.mkdir()
    (domain / "name").write_text(f"{name}\n")
    (domain / "max_energy_range_uj").write_text(f"{wraps_at}\n")
    counter = domain / "energy_uj"
    counter.write_text(f"{microjoules}\n")
    return counter


@contextmanager
def counting(counter: Path, *, watts: float, wraps_at: int = RANGE):
    start = count(counter)
    process = subprocess.Popen([sys.executable, "-c", COUNT, *map(str, (counter, watts, wraps_at, start))])
    try:
        while count(counter) == start:
            time.sleep(0.002)
        yield
    finally:
        process.kill()
        process.wait()


def count(counter: Path) -> int:
    return int(counter.read_text())


def read_over(body=lambda: time.sleep(0.15)):
    reader = reader_of("rapl-energy")
    reader.start()
    body()
    reader.stop()
    return reader.reading()


def bounds_of(counter: Path, ended=lambda first, now: now > first + 20 * JOULE):
    """The reading over a body that lasts until the counter is where it should be, and the counter at its ends.

    The outer two counts are from before and after the window, the inner two from within.
    """
    counts = [count(counter)]

    def body():
        counts.append(count(counter))
        time.sleep(0.12)
        while not ended(counts[-1], count(counter)):
            time.sleep(0.01)
        counts.append(count(counter))

    found = read_over(body)
    counts.append(count(counter))
    return found, counts


def test_energy_is_what_the_counter_moved_by(machine):
    counter = add(machine, "intel-rapl:0", "package-0", 7 * JOULE)
    with counting(counter, watts=150):
        found, (before, first, last, after) = bounds_of(counter)
    assert (last - first) / JOULE <= found.value <= (after - before) / JOULE
    assert found.instrument == "rapl-energy"
    assert found.details["wraps"] == {"intel-rapl:0": 0}


def test_packages_are_added_and_their_parts_and_the_platform_left_out(machine):
    one = add(machine, "intel-rapl:0", "package-0", 1)
    part = add(machine, "intel-rapl:0:0", "core", 1)
    two = add(machine, "intel-rapl:1", "package-1-die-0", 1)
    with counting(one, watts=100), counting(part, watts=90), counting(two, watts=300):
        found = read_over()
    packages = found.details["packages"]
    assert set(packages) == {"intel-rapl:0", "intel-rapl:1"}
    assert found.value == pytest.approx(sum(packages.values()))
    assert all(joules > 0 for joules in packages.values())


def test_a_counter_that_starts_again_is_followed(machine):
    wraps_at = 2000 * JOULE
    counter = add(machine, "intel-rapl:0", "package-0", wraps_at - 60 * JOULE, wraps_at=wraps_at)
    with counting(counter, watts=200, wraps_at=wraps_at):
        found, (before, first, last, after) = bounds_of(counter, lambda first, now: now < first)
    least, most = (last - first) % wraps_at, (after - before) % wraps_at
    assert least / JOULE <= found.value <= most / JOULE
    assert found.details["wraps"] == {"intel-rapl:0": 1}


def test_a_counter_is_read_before_it_can_start_again_twice(machine):
    wraps_at = 600 * JOULE
    counter = add(machine, "intel-rapl:0", "package-0", 0, wraps_at=wraps_at)
    with counting(counter, watts=100, wraps_at=wraps_at):
        found = read_over(lambda: time.sleep(0.5))
    assert found.details["reads"] > 3


def test_a_body_that_keeps_the_counter_from_being_read_has_no_reading(machine):
    wraps_at = 400 * JOULE
    counter = add(machine, "intel-rapl:0", "package-0", 0, wraps_at=wraps_at)
    with (
        counting(counter, watts=100, wraps_at=wraps_at),
        pytest.raises(UnreadableError, match="may have started again more than once: it does so at 400 J"),
    ):
        read_over(lambda: ctypes.PyDLL(None).usleep(500_000))


@pytest.mark.parametrize("later", [0, 5 * JOULE, 10_000 * JOULE])
def test_a_counter_that_was_set_has_no_reading(machine, later):
    counter = add(machine, "intel-rapl:0", "package-0", 100 * JOULE)

    def set_counter():
        time.sleep(0.15)
        counter.write_text(str(later))

    with pytest.raises(UnreadableError, match=f"went from {100 * JOULE} to {later} µJ"):
        read_over(set_counter)


def test_a_counter_that_stands_still_is_not_0(machine):
    add(machine, "intel-rapl:0", "package-0", 3)
    with pytest.raises(UnreadableError, match='counter of "intel-rapl:0" stood still'):
        read_over()


def test_a_window_that_is_too_short_has_no_reading(machine):
    add(machine, "intel-rapl:0", "package-0", 3)
    with pytest.raises(UnreadableError, match=r"has to take 0\.1 s"):
        read_over(lambda: None)


def test_a_machine_without_counters_says_so(machine, monkeypatch):
    with pytest.raises(UnreadableError, match="is a CPU package; containers often show none"):
        reader_of("rapl-energy").start()
    monkeypatch.setattr(rapl, "ROOT", machine / "nowhere")
    with pytest.raises(UnreadableError, match='nowhere" is not there'):
        reader_of("rapl-energy").start()


@contextmanager
def as_somebody_else():
    if os.geteuid() != 0:
        yield
        return
    try:
        os.seteuid(65534)
    except OSError as error:
        pytest.skip(f"root can't become nobody here: {error}")
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_counter_that_root_alone_may_read_says_since_when(machine, monkeypatch):
    add(machine, "intel-rapl:0", "package-0", 3).chmod(0)
    machine.chmod(0o755)
    monkeypatch.chdir(machine)  # nobody else may pass through the folders above it
    monkeypatch.setattr(rapl, "ROOT", Path())
    with (
        as_somebody_else(),
        pytest.raises(UnreadableError, match='energy_uj": Permission denied; since CVE-2020-8694'),
    ):
        reader_of("rapl-energy").start()


@pytest.mark.parametrize(
    ("counter", "wraps_at", "reason"),
    [
        ("soon", RANGE, 'energy_uj" holds "soon", which is no number'),
        (1, "", 'max_energy_range_uj" holds "", which is no number'),
        (1, 0, 'max_energy_range_uj" is 0'),
    ],
)
def test_what_is_no_number_is_no_reading(machine, counter, wraps_at, reason):
    add(machine, "intel-rapl:0", "package-0", counter, wraps_at=wraps_at)
    with pytest.raises(UnreadableError, match=reason):
        reader_of("rapl-energy").start()


def test_a_counter_that_goes_away_in_the_window_has_no_reading_and_leaves_no_thread(machine):
    counter = add(machine, "intel-rapl:0", "package-0", 3)
    with pytest.raises(UnreadableError, match='energy_uj" is not there'):
        read_over(counter.unlink)
    assert "prereg-poller" not in {thread.name for thread in threading.enumerate()}
