"""What is read through NVML: the real ``nvidia-ml-py`` in a process of its own, over a driver that the test scripts.

A driver stands in for one (``fake_nvml.c``); all between it and the reading is what runs on a GPU. Windows are
as long as they have to be, and pass at the same time.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from pytest_prereg.measure.instruments import polling
from pytest_prereg.measure.instruments.polling import Poller
from pytest_prereg.measure.instruments.readers import reader_of
from pytest_prereg.measure.instruments.reading import UnreadableError

HERE = Path(__file__).parent
UTILISATION, SAMPLES, ENERGY = ALL = ["nvml-utilisation", "nvml-samples", "nvml-energy"]
FUNCTIONS = {
    UTILISATION: "nvmlDeviceGetUtilizationRates",
    SAMPLES: "nvmlDeviceGetSamples",
    ENERGY: "nvmlDeviceGetTotalEnergyConsumption",
}
FULL_BUFFER = {"FAKE_BUFFER": "100 0.02"}
LOST, NOT_SUPPORTED, NO_PERMISSION = 15, 3, 4

ONE = "GPU-11111111-aaaa"
TWO = "GPU-12222222-bbbb"
ALIKE = {"FAKE_GPUS": f"{ONE}=NVIDIA H200;{TWO}=NVIDIA H200"}
UNLIKE = {"FAKE_GPUS": f"{ONE}=Tesla T4;{TWO}=NVIDIA H200"}


def failing(code: int, since: str = "") -> dict[str, str]:
    return {"FAKE_FAIL": " ".join(f"{function}={code}{since}" for function in FUNCTIONS.values())}


def choice(environ: dict[str, str], visible: str | None = None, **more):
    shown = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    return {"take": "chosen", "environ": {**environ, **shown}, **more}


WINDOWS = [
    {
        "wave": {
            "readers": ALL,
            "seconds": 3.3,
            # A study's wave and a driver's shortest sample period.
            "environ": {"FAKE_WAVE": "0.25 0.497 0.166667", "FAKE_BUFFER": "100 0.166667"},
        }
    },
    {
        "load that ended with the start": {
            "readers": [UTILISATION],
            "seconds": 3.3,
            "environ": {"FAKE_LOAD": "1e18 1"},
            "meanwhile": {"FAKE_LOAD": "+0 1"},
        }
    },
    {"deaf": {"readers": [UTILISATION], "seconds": 2.4, "deaf": 0.9}},
    {
        "lost": {
            "readers": ALL,
            "seconds": 0.7,
            "environ": {**FULL_BUFFER, **failing(LOST, "@+0.4")},
        },
        "more samples than the buffer holds": {
            "readers": [SAMPLES],
            "seconds": 1.8,
            "environ": {"FAKE_BUFFER": "120 0.01", "FAKE_STAMPS": "inclusive"},
        },
    },
    {
        "overrun": {"readers": [SAMPLES], "seconds": 0.7, "environ": {"FAKE_BUFFER": "20 0.01"}},
        "one sample missing": {
            "readers": [SAMPLES],
            "seconds": 0.5,
            "environ": FULL_BUFFER,
            "meanwhile": {"FAKE_HOLE": "+0.2 +0.22"},
        },
        "samples of a load that ended with the start": {
            "readers": [SAMPLES],
            "seconds": 0.5,
            "environ": {"FAKE_LOAD": "1e18 0.02", **FULL_BUFFER},
            "meanwhile": {"FAKE_LOAD": "+0 0.02"},
        },
        "clock set": {"readers": [SAMPLES], "seconds": 0.1, "set_clock": -0.3, "environ": FULL_BUFFER},
        "no samples": {"readers": [SAMPLES], "seconds": 0.2, "environ": {"FAKE_BUFFER": "0 1"}},
    },
    {
        "samples of another clock": {
            "readers": [SAMPLES],
            "seconds": 0.2,
            "environ": {"FAKE_STAMPS": "boot", **FULL_BUFFER},
        },
        "late samples": {
            "readers": [SAMPLES],
            "seconds": 0.4,
            "environ": {"FAKE_LATE": "0.3", **FULL_BUFFER},
        },
        "backwards": {
            "readers": [ENERGY],
            "seconds": 1.2,
            "environ": {"FAKE_POWER": "300 +0.6 -300"},
        },
        "standing still": {
            "readers": [ENERGY],
            "seconds": 1.1,
            "environ": {"FAKE_POWER": "300 0 0"},
        },
    },
    {
        "short": {"readers": ALL, "seconds": 0.05, "environ": FULL_BUFFER},
        "not supported": {"readers": ALL, "environ": failing(NOT_SUPPORTED)},
        "not permitted": {"readers": ALL, "environ": {"FAKE_FAIL": f"nvmlInit={NO_PERMISSION}"}},
        "no power": {
            "readers": [ENERGY],
            "seconds": 1.1,
            "environ": {"FAKE_FAIL": f"nvmlDeviceGetPowerUsage={NOT_SUPPORTED}"},
        },
        "nonsense": {"readers": [UTILISATION], "environ": {"FAKE_WAVE": "nothing"}},
        "unknown error": {"readers": [UTILISATION], "environ": failing(777)},
        "gone to another": {
            "readers": [ENERGY],
            "seconds": 1.1,
            "environ": ALIKE | {"CUDA_VISIBLE_DEVICES": "0"},
            "torch_meanwhile": [TWO],
        },
        "not installed": {"take": "without"},
        "the only one": choice({}),
        "none": choice({"FAKE_GPUS": ""}),
        "nothing said": choice(ALIKE),
        "first of several": choice(ALIKE, "1,0"),
        "uuid": choice(ALIKE, TWO),
        "shortened": choice(UNLIKE, "GPU-12"),
        "shortened too much": choice(ALIKE, "GPU-1"),
        "hidden": choice({}, "-1"),
        "slice": choice(ALIKE, "MIG-1c2d"),
        "slice, as it was called": choice(ALIKE, f"MIG-{ONE}/3/0"),
        "sliced": choice(ALIKE | {"FAKE_MIG": "1"}, "1"),
        "beside a sliced one": choice(ALIKE | {"FAKE_MIG": "1"}, "0"),
        "index of unlike ones": choice(UNLIKE, "1"),
        "index by the bus": choice(UNLIKE | {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, "1"),
        "torch's": choice(ALIKE, "0,1", torch=[TWO.removeprefix("GPU-")]),
        "torch's, which NVML doesn't show": choice(ALIKE, "0,1", torch=["33333333-cccc"]),
        "torch's by index": choice(ALIKE, "1,0", torch=[None, 1]),
    },
]


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    """A folder with the library."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler: a driver is built of fake_nvml.c")
    pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    folder = tmp_path_factory.mktemp("driver")
    built = folder / "libnvidia-ml.so.1"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", built, HERE / "fake_nvml.c", "-lm"], check=True
    )
    return folder


def process(folder, *arguments):
    environ = {name: value for name, value in os.environ.items() if not name.startswith("CUDA_")}
    return subprocess.Popen(
        [sys.executable, HERE / "nvml_windows.py", *arguments],
        env={**environ, "LD_LIBRARY_PATH": str(folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.fixture(scope="module")
def found(driver):
    """What came of every scenario, by its name; under ``left``, what each process left open."""
    running = [process(driver, "--left") for _ in WINDOWS]
    for scenarios, started in zip(WINDOWS, running, strict=True):
        started.stdin.write(json.dumps(scenarios))
        started.stdin.close()
        started.stdin = None
    found = {"left": []}
    for started in running:
        answers = json.loads(started.communicate(timeout=60)[0])
        found["left"].append(answers.pop("left"))
        found |= answers
    return found


def test_a_window_leaves_neither_a_thread_nor_nvml_initialised_whatever_came_of_it(found):
    assert found["left"] == [[0, []]] * len(WINDOWS)


def test_polled_utilisation_swings_by_tens_of_points_on_a_steady_wave(found):
    seen = found["wave"][UTILISATION]
    assert seen["swing"] > 0.2
    assert seen["distinct"] >= 3
    assert seen["value"] == pytest.approx(0.497, abs=0.2)
    assert seen["reads"] > 8
    assert 0.03 < seen["period_s"] < 0.15


def test_buffered_samples_swing_as_much(found):
    seen = found["wave"][SAMPLES]
    assert seen["swing"] > 0.2
    assert seen["value"] == pytest.approx(0.497, abs=0.1)
    assert seen["period_s"] == pytest.approx(1 / 6, abs=1e-3)


def test_energy_is_what_the_counter_moved_by_with_the_mean_power(found):
    seen = found["wave"][ENERGY]
    assert seen["value"] == pytest.approx(300 * 3.3, rel=0.1)
    assert seen["mean_power_w"] == pytest.approx(300, rel=0.1)
    assert [seen["polled_power_w"], seen["power_swing_w"]] == [300, 0]


def test_a_reading_names_its_instrument_and_its_gpu(found):
    assert [(found["wave"][name]["instrument"], found["wave"][name]["gpu"]) for name in ALL] == [
        (name, ONE) for name in ALL
    ]


def test_what_ran_before_the_window_is_not_in_it(found):
    assert found["load that ended with the start"][UTILISATION]["value"] == 0
    assert found["samples of a load that ended with the start"][SAMPLES]["value"] == 0


def test_a_body_that_lets_no_other_thread_run_can_not_choose_what_is_polled(found):
    assert "the body must let other threads run" in found["deaf"][UTILISATION]


def test_a_gpu_that_is_lost_in_the_window_has_no_reading(found):
    assert found["lost"] == {name: f'NVML answers {FUNCTIONS[name]} with "GPU is lost"' for name in ALL}


def test_samples_are_read_before_the_buffer_drops_them_and_each_once(found):
    seen = found["more samples than the buffer holds"][SAMPLES]
    assert seen["samples"] > 150
    assert seen["longest_gap_s"] == pytest.approx(0.01)
    assert seen["value"] == 1


def test_samples_that_arrive_after_the_window_are_waited_for(found):
    seen = found["late samples"][SAMPLES]
    assert seen["value"] == 1
    assert seen["samples"] > 15


@pytest.mark.parametrize(
    ("scenario", "reason"),
    [
        ("overrun", "though one comes every 0.01 s"),
        ("one sample missing", "there is no sample for 0.04 s of the window, though one comes every 0.02 s"),
        ("no samples", "of 0 samples that the driver gave 0 are from the window; it takes 10"),
        ("clock set", "the machine's clock was set by -0.3 s within the window"),
        ("samples of another clock", "0 are from the window, the newest 1.7e+09 s before its end"),
    ],
)
def test_samples_that_are_missing_are_not_made_up_for(found, scenario, reason):
    assert reason in found[scenario][SAMPLES]


@pytest.mark.parametrize(
    ("scenario", "reason"),
    [("backwards", "the energy counter went back, from"), ("standing still", "stood still over the window")],
)
def test_a_counter_that_does_not_count_has_no_reading(found, scenario, reason):
    assert reason in found[scenario][ENERGY]


def test_energy_needs_no_power(found):
    seen = found["no power"][ENERGY]
    assert seen["value"] == pytest.approx(330, rel=0.2)
    assert seen["polled_power"] == 'NVML answers nvmlDeviceGetPowerUsage with "Not Supported"'


def test_a_window_that_is_too_short_says_how_long_it_has_to_be(found):
    short = found["short"]
    assert short[UTILISATION].endswith("s, and has to take 3 s")
    assert short[ENERGY].endswith("s, and has to take 1 s")
    assert short[SAMPLES].endswith("it takes 10")


def test_what_is_not_supported_is_said_in_the_words_of_the_driver_and_is_never_0(found):
    assert found["not supported"] == {
        name: f'NVML answers {FUNCTIONS[name]} with "Not Supported"' for name in ALL
    }


@pytest.mark.parametrize(
    ("scenario", "reason"),
    [
        ("not permitted", 'NVML answers nvmlInit with "Insufficient Permissions"'),
        ("unknown error", 'NVML answers nvmlDeviceGetUtilizationRates with "Fake Error"'),
        ("nonsense", "NVML reads 12345 % utilisation"),
    ],
)
def test_other_refusals_are_no_reading(found, scenario, reason):
    assert found[scenario][UTILISATION] == reason


def test_a_missing_package_is_named_with_its_extra(found):
    assert "pip install 'pytest-prereg[nvml]'" in found["not installed"]


def test_a_missing_driver_is_no_reading(driver, tmp_path):
    (tmp_path / "libnvidia-ml.so.1").touch()  # hides the driver of this machine, if it has one
    seen, _ = process(tmp_path).communicate(json.dumps({"missing": {"readers": ALL}}), timeout=60)
    assert json.loads(seen)["missing"] == dict.fromkeys(
        ALL, 'NVML answers nvmlInit with "NVML Shared Library Not Found"'
    )


@pytest.mark.parametrize(
    ("scenario", "uuid"),
    [
        ("the only one", ONE),
        ("first of several", TWO),
        ("uuid", TWO),
        ("shortened", TWO),
        ("beside a sliced one", ONE),
        ("index by the bus", TWO),
        ("torch's", TWO),
        ("torch's by index", ONE),
    ],
)
def test_the_gpu_is_the_one_that_the_body_uses(found, scenario, uuid):
    assert found[scenario] == uuid


@pytest.mark.parametrize(
    ("scenario", "reason"),
    [
        ("none", "NVML shows no GPU that this process can use"),
        ("nothing said", f"is not set: make it the UUID of one of {ONE} (NVIDIA H200), {TWO} (NVIDIA H200)"),
        ("shortened too much", 'no GPU that this process can use, with CUDA_VISIBLE_DEVICES="GPU-1"'),
        ("hidden", 'no GPU that this process can use, with CUDA_VISIBLE_DEVICES="-1"'),
        ("slice", 'CUDA_VISIBLE_DEVICES="MIG-1c2d" is a slice of a GPU'),
        ("slice, as it was called", "is a slice of a GPU"),
        ("sliced", f'GPU "{TWO}" is cut into slices (MIG)'),
        ("index of unlike ones", f'is "1", which doesn\'t say: make it the UUID of one of {ONE} (Tesla T4)'),
        ("torch's, which NVML doesn't show", 'GPU-33333333-cccc with "Not Found"'),
    ],
)
def test_where_nothing_says_which_gpu_none_is_read(found, scenario, reason):
    assert reason in found[scenario]


def test_a_body_that_changes_its_gpu_has_no_reading(found):
    assert found["gone to another"][ENERGY] == f'the body went from GPU "{ONE}" to "{TWO}" within the window'


def test_a_failure_in_the_thread_reaches_whoever_asks_for_what_it_read():
    def fail_later():
        if threading.current_thread() is not threading.main_thread():
            raise ZeroDivisionError("by zero")

    poller = Poller(fail_later, seconds=0.01)
    poller.start()
    time.sleep(0.05)
    poller.stop()
    with pytest.raises(UnreadableError, match="a read failed: ZeroDivisionError: by zero"):
        poller.reads()


def test_a_driver_that_hangs_does_not_hold_up_the_body(monkeypatch):
    monkeypatch.setattr(polling, "PATIENCE", 0.05)
    released = threading.Event()
    poller = Poller(
        lambda: threading.current_thread() is threading.main_thread() or released.wait(), seconds=0
    )
    poller.start()
    with pytest.raises(UnreadableError, match=r"no answer within 0\.05 s after the window"):
        poller.stop()
    released.set()


@pytest.mark.gpu
def test_a_gpu_that_works_throughout_reads_busy_and_takes_energy():
    torch = pytest.importorskip("torch")
    pytest.importorskip("pynvml")
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    matrix = torch.randn(4096, 4096, device="cuda")
    try:
        readers = [reader_of(name) for name in (UTILISATION, ENERGY)]
        for reader in readers:
            reader.start()
        until = time.monotonic() + 4
        while time.monotonic() < until:
            matrix @ matrix
            torch.cuda.synchronize()
        for reader in readers:
            reader.stop()
        busy, energy = (reader.reading() for reader in readers)
    except UnreadableError as error:
        pytest.skip(f"this machine's driver gives no reading: {error}")
    assert busy.value > 0.5
    assert energy.value > 4 * 20
    assert busy.details["gpu"] == energy.details["gpu"]
    assert busy.details["gpu"].endswith(str(torch.cuda.get_device_properties(0).uuid))
