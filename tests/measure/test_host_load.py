"""Load of the host: what others burn counts, what the repeat burns doesn't, whoever of it burns."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import contextmanager

import pytest

from pytest_prereg import Repeat
from pytest_prereg.measure.executors import processes
from pytest_prereg.measure.instruments import cpu_counters, host_load
from pytest_prereg.measure.instruments.host_load import HostLoad
from pytest_prereg.measure.instruments.reading import UnreadableError

BURNED = 0.4
"""Seconds of CPU time: what a neighbour on the machine takes only makes them last longer."""
TICKS = 0.1
"""By how much the counters may be out, in seconds: a few ticks and samples."""


def burn():
    until = time.thread_time() + BURNED
    while time.thread_time() < until:
        pass


def fork(body):
    pid = os.fork()
    if pid == 0:
        try:
            body()
        finally:
            os._exit(0)
    return pid


def read_load(body):
    instrument = HostLoad()
    instrument.start()
    body()
    instrument.stop()
    return instrument.reading()


@contextmanager
def told_when_done():
    """A function that a process calls when it is done, and one that waits until it has."""
    reading_end, writing_end = os.pipe()
    try:
        yield lambda: os.write(writing_end, b"."), lambda: os.read(reading_end, 1)
    finally:
        os.close(reading_end)
        os.close(writing_end)


def test_what_a_stranger_burns_counts():
    """Forked twice, so that it is nobody's child here."""
    with told_when_done() as (tell, wait):

        def stranger():
            burn()
            tell()

        def body():
            os.waitpid(fork(lambda: fork(stranger)), 0)
            wait()

        reading = read_load(body)
    assert reading.details["own"] < TICKS
    assert reading.details["others"] > BURNED - TICKS
    assert reading.value == reading.details["raw"] > 0


def test_what_this_process_burns_does_not():
    assert read_load(burn).details["own"] > BURNED - TICKS


def test_what_a_thread_burns_does_not():
    def body():
        thread = threading.Thread(target=burn)
        thread.start()
        thread.join()

    assert read_load(body).details["own"] > BURNED - TICKS


def test_what_a_child_burns_does_not_once_it_was_waited_for():
    assert read_load(lambda: os.waitpid(fork(burn), 0)).details["own"] > BURNED - TICKS


def test_what_a_child_burns_does_not_while_it_lives_nor_before_it_is_waited_for():
    children = []
    with told_when_done() as (tell, wait):

        def child():
            burn()
            tell()
            signal.pause()

        def body():
            children.append(fork(child))
            wait()

        living = read_load(body)
        ended = read_load(
            lambda: (children.append(fork(burn)), os.waitid(os.P_PID, children[1], os.WEXITED | os.WNOWAIT))
        )
    os.kill(children[0], signal.SIGKILL)
    for pid in children:
        os.waitpid(pid, 0)
    assert living.details["own"] > BURNED - TICKS
    assert ended.details["own"] > BURNED - TICKS


def test_what_an_orphan_of_the_repeat_burns_does_not():
    """It is adopted by what watches over the repeat."""
    read_end, write_end = os.pipe()

    def supervisor():
        processes.become_subreaper()
        os.waitpid(fork(body), 0)

    def body():
        with told_when_done() as (tell, wait):
            reading = read_load(lambda: (fork(lambda: fork(lambda: (burn(), tell()))), wait()))
        os.write(write_end, repr(reading.details["own"]).encode())

    os.waitpid(fork(supervisor), 0)
    os.close(write_end)
    with os.fdopen(read_end) as told:
        assert float(told.read()) > BURNED - TICKS


def test_what_a_child_had_burned_before_the_window_is_not_subtracted():
    child = fork(burn)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    reading = read_load(lambda: (os.waitpid(child, 0), time.sleep(host_load.SHORTEST_SECONDS)))
    assert abs(reading.details["own"]) < TICKS


def test_a_window_of_few_ticks_is_unreadable():
    with pytest.raises(UnreadableError, match=r"the window took 0\.\d+ s, and the kernel counts in ticks of"):
        read_load(lambda: None)


def test_a_repeat_tells_what_else_it_saw():
    repeat = Repeat(metrics={"foreign": "percent"})
    with repeat.instrument("host-load").window("foreign") as window:
        time.sleep(0.2)
    readings = repeat.readings()
    assert readings.values["foreign"] == pytest.approx(window.reading.value * 100)
    [details] = readings.diagnostics["foreign: host-load"]
    assert details["cores"] >= details["usable_cores"] >= 1
    assert details["usable_cores_busy"] >= 0
    assert details["processes"] >= 1
    assert {
        "noise",
        "stolen",
        "load_start",
        "load_end",
        "runnable",
        "pressure",
        "quota_stops",
    } <= details.keys()


@pytest.fixture
def counters(tmp_path, monkeypatch):
    """Writes ``/proc/stat`` with so many ticks, and is all that there is of ``/proc``."""

    def write(*, user, idle, cpus=1):
        row = f"{user} 0 0 {idle} 0 0 0 0 0 0"
        rows = [f"cpu  {row}", *(f"cpu{number} {row}" for number in range(cpus)), "procs_running 1"]
        (tmp_path / "stat").write_text("\n".join(rows) + "\n", encoding="ascii")

    monkeypatch.setattr(cpu_counters, "PROC", tmp_path)
    return write


def test_counters_that_stand_still_are_unreadable(counters):
    """As in a sandbox that shows zeros."""
    counters(user=0, idle=0)
    with pytest.raises(UnreadableError, match=r"/proc/stat counted 0\.00 s of CPU time, idle included, in"):
        read_load(lambda: time.sleep(host_load.SHORTEST_SECONDS))


def test_a_machine_that_was_busy_for_less_time_than_the_repeat_is_unreadable(counters):
    counters(user=0, idle=0)

    def body():
        burn()
        counters(user=0, idle=100)

    with pytest.raises(
        UnreadableError, match=r"this repeat had 0\.\d+ s of CPU time, the machine 0\.00 s .* leaves others -"
    ):
        read_load(body)


def test_less_than_nothing_within_the_noise_of_ticks_is_nothing(counters):
    counters(user=0, idle=0)

    def body():
        until = time.thread_time() + 0.05
        while time.thread_time() < until:
            pass
        time.sleep(host_load.SHORTEST_SECONDS)
        counters(user=0, idle=100)

    reading = read_load(body)
    assert reading.value == 0
    assert reading.details["raw"] < 0


def test_cores_that_come_or_go_make_it_unreadable(counters):
    counters(user=0, idle=0)
    with pytest.raises(UnreadableError, match="the machine had 1 cores when the window began, and 2 then"):
        read_load(lambda: (time.sleep(host_load.SHORTEST_SECONDS), counters(user=0, idle=100, cpus=2)))


def test_counters_that_something_is_mounted_over_are_unreadable(tmp_path, monkeypatch):
    (tmp_path / "stat").symlink_to("/proc/stat")
    monkeypatch.setattr(cpu_counters, "PROC", tmp_path)
    with pytest.raises(UnreadableError, match="/proc/stat is not the kernel's own"):
        HostLoad().start()


@pytest.mark.parametrize("text", ["", "cpu  1 2 3\n", "cpu  a b\ncpu0 a b\nprocs_running 1\n"])
def test_counters_of_another_form_are_unreadable(tmp_path, monkeypatch, text):
    (tmp_path / "stat").write_text(text, encoding="ascii")
    monkeypatch.setattr(cpu_counters, "PROC", tmp_path)
    with pytest.raises(UnreadableError, match="/proc/stat"):
        HostLoad().start()
