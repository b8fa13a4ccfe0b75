"""What is recorded of the machine around a repeat, with a driver's program that says what the tests want."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_prereg.evidence import gpu_readings, kernel_counters, repeat_watch
from pytest_prereg.evidence.repeat_watch import RepeatWatch
from pytest_prereg.registry.rules import READINGS, reading_of

GPU_READINGS = [name for name in READINGS if name.startswith("gpu_")]
IDLE, RUNNING, HOT = "0x0000000000000001", "0x0000000000000000", "0x0000000000000020"


def row(
    index=0, *, clock="1980", temp="41", reasons=RUNNING, slowed="0, 0, 0", name="NVIDIA H200", uuid="GPU-aa"
):
    return f"{index}, {uuid}{index}, {name}, {clock}, {temp}, {reasons}" + (f", {slowed}" if slowed else "")


@pytest.fixture
def driver(tmp_path, monkeypatch):
    """A machine with a GPU whose ``nvidia-smi`` answers with what :func:`Driver.says` was given last."""
    (tmp_path / "nvidiactl").touch()
    monkeypatch.setattr(gpu_readings, "DEVICES", tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)
    return Driver(tmp_path)


class Driver:
    def __init__(self, folder):
        self.folder = folder
        self.program = folder / "nvidia-smi"
        self.asked = folder / "asked"
        self.says(row())

    def says(self, *gpus, processes=()):
        (self.folder / "gpus").write_text("".join(f"{line}\n" for line in gpus))
        (self.folder / "processes").write_text("".join(f"{line}\n" for line in processes))
        self.does(
            f'case "$1" in *compute-apps*) cat {self.folder}/processes;; *) cat {self.folder}/gpus;; esac'
        )

    def does(self, script):
        # A running script must not be written over: a new file takes its place.
        new = self.folder / "new"
        new.write_text(f'#!/bin/sh\necho "$1" >> {self.asked}\n{script}\n')
        new.chmod(0o755)
        new.replace(self.program)


def watched(between=lambda: None, environ=None):
    watch = RepeatWatch(environ)
    watch.begin()
    between()
    return watch.end()


def of_gpus(readings):
    return [readings[name] for name in GPU_READINGS]


def test_all_that_a_rule_may_name_is_recorded_and_goes_into_json():
    readings = watched()
    assert set(readings) == set(READINGS)
    assert json.loads(json.dumps(readings)) == readings
    assert all(value is None or reading_of(name, readings) == value for name, value in readings.items())


def test_without_a_gpu_its_readings_are_unknown_and_nothing_is_asked(driver):
    (driver.folder / "nvidiactl").unlink()
    assert of_gpus(watched()) == [None] * 4
    assert not driver.asked.exists()


def test_a_quiet_gpu_is_read_once_before_and_once_after(driver):
    assert of_gpus(watched()) == [1980, 41, 0, False]
    questions = driver.asked.read_text().split()
    assert len(questions) == 4
    assert sum("compute-apps" in question for question in questions) == 2


def test_of_two_looks_the_worse_counts(driver):
    driver.says(row(clock="1980", temp="41"))
    after = watched(lambda: driver.says(row(clock="1410", temp="88", reasons=HOT)))
    assert of_gpus(after) == [1410, 88, 0, True]
    driver.says(row(clock="1410", temp="88", reasons=HOT))
    assert of_gpus(watched(lambda: driver.says(row()))) == [1410, 88, 0, True]


def test_the_clock_of_an_idle_gpu_is_no_reading(driver):
    driver.says(row(clock="345", reasons=IDLE))
    assert watched(lambda: driver.says(row(clock="1980")))["gpu_clock_mhz"] == 1980
    driver.says(row(clock="345", reasons=IDLE))
    assert watched()["gpu_clock_mhz"] is None


@pytest.mark.parametrize(
    ("reasons", "throttled"),
    [
        ("0x0000000000000000", False),
        ("0x0000000000000001", False),  # idle
        ("0x0000000000000002", False),  # applications' clocks were set
        ("0x0000000000000100", False),  # a display's clocks were set
        ("0x0000000000000103", False),
        ("0x0000000000000004", True),  # power cap
        ("0x0000000000000008", True),  # hardware slowdown
        ("0x0000000000000010", True),  # sync boost
        ("0x0000000000000020", True),  # software thermal slowdown
        ("0x0000000000000040", True),  # hardware thermal slowdown
        ("0x0000000000000080", True),  # power brake
        ("0x0000000000000021", True),  # idle by now, and hot
        ("0x0000000000000400", True),  # what this release does not know
    ],
)
def test_a_reason_for_the_clock_is_throttling_unless_it_is_idle_or_set(driver, reasons, throttled):
    driver.says(row(reasons=reasons))
    assert watched()["gpu_throttled"] is throttled


def test_a_slowdown_between_the_looks_is_seen_where_the_driver_counts_it(driver):
    driver.says(row(slowed="7, 0, 0"))
    assert watched()["gpu_throttled"] is False
    assert watched(lambda: driver.says(row(slowed="7, 900, 0")))["gpu_throttled"] is True


@pytest.mark.parametrize("known", ["clocks_event_reasons.active", "clocks_throttle_reasons.active"])
def test_an_older_driver_is_asked_in_its_own_words(driver, known):
    (driver.folder / "gpus").write_text(row(slowed="", reasons=HOT))
    unknown = "echo 'Field \"x\" is not a valid field to query.'; exit 2"
    old = f"*compute-apps*) ;; *counters*) {unknown};; *{known}*) cat {driver.folder}/gpus;; *) {unknown};;"
    driver.does(f'case "$1" in {old} esac')
    assert of_gpus(watched()) == [1980, 41, 0, True]


@pytest.mark.parametrize("mark", ["[N/A]", "[Not Supported]", "[Unknown Error]", "N/A", ""])
def test_what_a_gpu_does_not_support_is_unknown_and_the_rest_is_read(driver, mark):
    driver.says(row(clock=mark))
    assert of_gpus(watched()) == [None, 41, 0, False]
    driver.says(row(temp=mark, reasons=mark))
    assert of_gpus(watched()) == [1980, None, 0, None]
    driver.says(row(slowed=f"{mark}, 0, 0"))
    assert of_gpus(watched()) == [1980, 41, 0, False]


def test_one_unknown_reading_leaves_the_worst_one_unknown(driver):
    driver.says(row(0), row(1, temp="[N/A]", reasons="[N/A]"))
    assert of_gpus(watched()) == [1980, None, 0, None]
    driver.says(row(0, reasons=HOT), row(1, reasons="[N/A]"))
    assert watched()["gpu_throttled"] is True


@pytest.mark.parametrize(
    "script",
    [
        "exit 9",
        "echo 'No devices were found'",
        "echo 'NVIDIA-SMI has failed because it couldn'",
        "printf '\\377\\376 garbage \\0 , , , , , , ,\\n'",
        "head -c 100000 /dev/zero",
        "kill -9 $$",
        ":",
    ],
)
def test_a_driver_that_fails_or_talks_nonsense_leaves_everything_unknown(driver, script):
    driver.does(script)
    assert of_gpus(watched()) == [None] * 4


def test_a_driver_that_hangs_is_killed_with_all_that_it_started_and_not_asked_again(driver, monkeypatch):
    monkeypatch.setattr(gpu_readings, "SECONDS", 0.3)
    driver.does(f"sleep 300 & echo $! >> {driver.folder}/sleepers; wait")
    readings = watched()
    assert of_gpus(readings) == [None] * 4
    assert readings["load_average"] >= 0
    assert len(driver.asked.read_text().split()) == 2
    for pid in (driver.folder / "sleepers").read_text().split():
        assert gone(int(pid))


def gone(pid):
    """Whether the process is no more, or a zombie that nobody has reaped, within seconds."""
    for _ in range(200):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_a_driver_that_can_not_be_run_leaves_everything_unknown(driver):
    watch = RepeatWatch()
    driver.program.write_text("no program")
    watch.begin()
    driver.program.unlink()
    assert of_gpus(watch.end()) == [None] * 4


def test_a_driver_that_fails_at_the_end_leaves_the_worst_unknown(driver):
    assert of_gpus(watched(lambda: driver.does("exit 1"))) == [None] * 4
    driver.says(row(reasons=HOT))
    assert watched(lambda: driver.does("exit 1"))["gpu_throttled"] is True, "it was, whatever came after"


@pytest.fixture
def stranger():
    """A process that is no descendant of this one."""
    program = "import subprocess as s; print(s.Popen(['sleep', '300'], stdout=s.DEVNULL).pid)"
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True)
    pid = int(done.stdout)
    yield pid
    os.kill(pid, 9)


@pytest.fixture
def child():
    with subprocess.Popen(["sleep", "300"]) as process:
        yield process.pid
        process.kill()


def test_processes_of_others_on_a_gpu_are_counted_once_and_those_of_the_repeat_never(driver, stranger, child):
    theirs, own = f"GPU-aa0, {stranger}", f"GPU-aa0, {child}"
    assert watched(lambda: driver.says(row(), processes=[own]))["gpu_foreign_processes"] == 0
    driver.says(row(), processes=[theirs])
    assert watched()["gpu_foreign_processes"] == 1
    assert watched(lambda: driver.says(row(), processes=[own]))["gpu_foreign_processes"] == 1, (
        "it was there before"
    )
    driver.says(row())
    assert watched(lambda: driver.says(row(), processes=[theirs, own]))["gpu_foreign_processes"] == 1


def test_a_process_that_can_not_be_found_is_foreign_before_there_is_a_body(driver):
    driver.says(row(), processes=["GPU-aa0, 4194303"])
    assert watched()["gpu_foreign_processes"] == 1


def test_a_new_process_that_can_not_be_found_may_be_the_body_in_another_namespace(driver):
    driver.says(row())
    after = watched(lambda: driver.says(row(), processes=["GPU-aa0, 4194303"]))
    assert after["gpu_foreign_processes"] is None


@pytest.mark.parametrize("answer", ["GPU-aa0, [N/A]", "[Not Supported]", "GPU-aa0, -1", "garbage"])
def test_processes_that_can_not_be_read_are_unknown(driver, answer):
    driver.says(row(), processes=[answer])
    assert of_gpus(watched()) == [1980, 41, None, False]


@pytest.mark.parametrize(
    ("visible", "hottest"),
    [
        (None, 72),
        ("0", 70),
        ("1", 71),
        ("1,0", 71),
        ("0, 2", 72),
        ("GPU-aa1", 71),
        ("gpu-AA1", None),  # CUDA wants the prefix as it is printed
        ("GPU-aa", None),  # names three
        ("0,9,2", 70),  # the list ends where it names nothing
        ("-1", None),
        ("", None),
        ("NoDevFiles", None),
        ("MIG-GPU-aa1/3/0", 71),
        ("MIG-1c2d", 72),  # a slice of some GPU
    ],
)
def test_only_gpus_that_the_repeat_can_see_are_read(driver, visible, hottest):
    driver.says(*(row(index, temp=str(70 + index)) for index in range(3)))
    environ = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    assert watched(environ=environ)["gpu_temp_c"] == hottest


def test_a_repeat_that_sees_no_gpu_has_no_readings_of_any(driver, stranger):
    driver.says(row(), processes=[f"GPU-aa0, {stranger}"])
    assert of_gpus(watched(environ={"CUDA_VISIBLE_DEVICES": ""})) == [None] * 4


def test_an_index_among_unlike_gpus_names_none_unless_the_order_is_that_of_the_bus(driver):
    driver.says(row(0, temp="70", name="T4"), row(1, temp="90", name="H200"))
    fastest_first = {"CUDA_VISIBLE_DEVICES": "0"}
    assert watched(environ=fastest_first)["gpu_temp_c"] == 90
    assert watched(environ={**fastest_first, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"})["gpu_temp_c"] == 70


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """A machine whose kernel counts nothing yet; each test writes the files that it is about."""
    for name in ("CPUS", "GROUPS"):
        (tmp_path / name).mkdir()
        monkeypatch.setattr(kernel_counters, name, tmp_path / name)
    for name in ("MEMBERSHIP", "MACHINE"):
        monkeypatch.setattr(kernel_counters, name, tmp_path / name)
    kernel_counters._quota_files.cache_clear()
    monkeypatch.setattr(gpu_readings, "DEVICES", tmp_path)
    return tmp_path


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_what_the_kernel_does_not_count_is_unknown(kernel):
    readings = watched()
    assert readings["cpu_throttled"] is None
    assert readings["swapped"] is None


@pytest.mark.parametrize("counter", ["pswpin", "pswpout"])
def test_pages_that_went_in_or_out_of_swap_meanwhile_are_swapping(kernel, counter):
    write(kernel / "MACHINE", "pgpgin 5\npswpin 3\npswpout 9\n")
    assert watched()["swapped"] is False
    assert (
        watched(lambda: write(kernel / "MACHINE", f"pswpin 3\npswpout 9\n{counter} 11\n"))["swapped"] is True
    )


@pytest.mark.parametrize(
    ("membership", "folder"),
    [
        ("0::/\n", ""),
        ("0::/a/b\n", "a/b"),
        ("0::/a/b\n", "a"),  # the quota is that of a group around it
        ("0::/../outside\n", ""),  # as a container may see it
        ("0::/\n4:cpu,cpuacct:/docker/x\n", "cpu/docker/x"),
        ("4:cpu,cpuacct:/docker/x\n", "cpu,cpuacct"),  # the container's own group shown as the root
    ],
)
def test_a_cpu_quota_that_ran_out_is_throttling_in_both_versions_of_control_groups(
    kernel, membership, folder
):
    write(kernel / "MEMBERSHIP", membership)
    stat = kernel / "GROUPS" / folder / "cpu.stat"
    write(stat, "nr_periods 10\nnr_throttled 2\n")
    assert watched()["cpu_throttled"] is False
    assert watched(lambda: write(stat, "nr_periods 12\nnr_throttled 3\n"))["cpu_throttled"] is True


def test_a_group_without_quota_says_nothing(kernel):
    write(kernel / "MEMBERSHIP", "0::/\n")
    write(kernel / "GROUPS" / "cpu.stat", "usage_usec 5\n")
    assert watched()["cpu_throttled"] is None


@pytest.mark.parametrize("counter", ["core_throttle_count", "package_throttle_count"])
def test_heat_that_slowed_a_cpu_of_the_process_is_throttling(kernel, counter):
    cpu = kernel / "CPUS" / f"cpu{min(os.sched_getaffinity(0))}" / "thermal_throttle"
    write(cpu / "core_throttle_count", "4\n")
    write(cpu / "package_throttle_count", "7\n")
    assert watched()["cpu_throttled"] is False
    assert watched(lambda: write(cpu / counter, "8\n"))["cpu_throttled"] is True


def test_a_count_that_vanishes_is_unknown(kernel):
    write(kernel / "MACHINE", "pswpin 3\npswpout 9\n")
    assert watched((kernel / "MACHINE").unlink)["swapped"] is None


def test_an_end_without_a_beginning_knows_nothing_but_raises_nothing(kernel):
    assert RepeatWatch().end()["swapped"] is None


def test_a_process_that_ended_is_not_ours():
    assert repeat_watch._is_ours(os.getpid())
    assert not repeat_watch._is_ours(os.getppid())
    assert not repeat_watch._is_ours(4194303)
