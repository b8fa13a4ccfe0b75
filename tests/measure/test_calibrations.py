"""The experiments that calibrate instruments, each with the instrument really reading."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from thread_devices import Unsynchronised

from pytest_prereg import Repeat
from pytest_prereg.measure.instruments.reading import Reading, UnreadableError
from pytest_prereg.measure.workloads.calibration import duty
from pytest_prereg.measure.workloads.calibration.duty import square_wave, trailing_wait
from pytest_prereg.measure.workloads.calibration.host_load import known_host_load
from pytest_prereg.measure.workloads.calibration.memory import MEBIBYTE, known_memory
from pytest_prereg.measure.workloads.calibration.pause import known_pause
from pytest_prereg.measure.workloads.calibration.reading import read_during
from pytest_prereg.registry.builtins import built_ins, workload_versions
from pytest_prereg.registry.instruments import SELF_BOUND

CALIBRATIONS = [square_wave, trailing_wait, known_memory, known_host_load, known_pause]


def calibrated(experiment, **params):
    """What a repeat recorded; nothing may be wrong with it."""
    repeat = Repeat(metrics=experiment.metrics)
    experiment(repeat, **params)
    readings = repeat.readings()
    assert readings.problems == readings.missing == []
    return readings


def takers(readings) -> set[str]:
    """What took the metrics; the reading itself, which is none, names the instrument under test."""
    return {taker for name, taker in readings.instruments.items() if name in readings.values}


def problems(experiment, **params) -> str:
    """Why a repeat is invalid; it has no value."""
    repeat = Repeat(metrics=experiment.metrics)
    experiment(repeat, **params)
    assert repeat.readings().values == {}
    (problem,) = repeat.readings().problems
    return problem


@pytest.mark.parametrize("experiment", CALIBRATIONS)
def test_each_comes_with_the_package(experiment):
    declared = built_ins()[experiment.__name__]
    assert {name: metric.unit for name, metric in declared.metrics.items()} == {
        name: each if isinstance(each, str) else each["unit"] for name, each in experiment.metrics.items()
    }


@pytest.mark.parametrize("experiment", CALIBRATIONS)
def test_each_refuses_an_instrument_of_which_it_knows_nothing(experiment):
    with pytest.raises(ValueError, match=r'instrument: this calibrates no "kernel-interval"; (did|it)'):
        experiment(Repeat(metrics=experiment.metrics), instrument="kernel-interval")


@pytest.mark.parametrize("experiment", CALIBRATIONS)
@pytest.mark.parametrize("instrument", [None, 5, ["wall-clock"]])
def test_an_instrument_is_given_by_its_name(experiment, instrument):
    with pytest.raises(ValueError, match=r"instrument: .* is no name; it calibrates"):
        experiment(Repeat(metrics=experiment.metrics), instrument=instrument)


@pytest.mark.parametrize(
    ("experiment", "params", "told"),
    [
        (known_memory, {"mebibytes": 0}, 'mebibytes: "0" is no whole number of them from 1; write 256'),
        (known_memory, {"mebibytes": 0.5}, 'mebibytes: "0.5" is no whole number'),
        (known_host_load, {"burners": -1}, 'burners: "-1" is no whole number of processes from 0'),
        (known_host_load, {"burners": 1.5}, 'burners: "1.5" is no whole number'),
        (known_host_load, {"seconds": 0}, 'seconds: "0" is no number above 0'),
        (known_pause, {"seconds": -1}, 'seconds: "-1" is no number above 0'),
    ],
)
def test_what_can_not_be_known_is_refused_with_what_to_write(experiment, params: dict, told: str):
    with pytest.raises(ValueError, match=told):
        experiment(Repeat(metrics=experiment.metrics), **params)


def test_memory_that_can_not_be_had_makes_the_repeat_invalid():
    assert "bytes can't be had: " in problems(known_memory, mebibytes=1 << 36)


def test_another_stimulus_is_another_experiment():
    """The version of all that drives the device counts in the source digest, not that of the body alone."""
    named = {name.rpartition(".")[2] for name, _ in workload_versions(square_wave.__module__)}
    assert named >= {"duty", "reading", "square_wave", "wave_devices"}


def test_memory_that_was_freed_is_in_the_growth():
    readings = calibrated(known_memory, mebibytes=64)
    assert readings.values["known"] == 64 * MEBIBYTE
    assert readings.values["growth"] == pytest.approx(64 * MEBIBYTE, rel=0.1)
    assert readings.values["error"] == pytest.approx(
        readings.values["growth"] / readings.values["known"] - 1, abs=1e-12
    )
    assert readings.diagnostics["read_by"] == "process-memory"


def test_what_others_burn_is_in_the_load_of_the_host():
    """Others may use the machine as well, so it can only be read to be more."""
    readings = calibrated(known_host_load, burners=1, seconds=0.4)
    values = readings.values
    assert 0 < values["known"] <= 1.1 / (os.cpu_count() or 1)
    assert values["error"] == values["read"] - values["known"]
    assert values["error"] > -readings.diagnostics["reading"]["noise"] - 0.05
    assert takers(readings) == {"wall-clock"}
    assert readings.instruments["reading"] == "host-load"


def test_burners_end_with_their_repeat():
    def children() -> str:
        return Path(f"/proc/self/task/{os.getpid()}/children").read_text()

    before = children()
    calibrated(known_host_load, burners=2, seconds=0.2)
    assert children() == before


def test_a_watcher_that_can_not_read_makes_the_repeat_invalid():
    assert "host-load is not calibrated: " in problems(known_host_load, seconds=0.01)


@pytest.mark.parametrize("clock", ["monotonic-raw-clock", "boot-clock"])
def test_the_wall_clock_is_held_against_another_clock_of_the_system(clock: str):
    readings = calibrated(known_pause, against=clock, seconds=0.1)
    assert readings.values["known"] >= 0.1
    assert abs(readings.values["error"]) < 0.2
    assert takers(readings) == {clock}


def test_a_clock_is_not_held_against_itself():
    with pytest.raises(ValueError, match='against: wall-clock is not held against "wall-clock"; did'):
        known_pause(Repeat(metrics=known_pause.metrics), against="wall-clock")


@pytest.mark.parametrize(
    ("details", "lost"),
    [
        ({"kernels": 4000, "lost": 0}, 0),
        ({"kernels": 3996}, 4),
        ({"kernels": 4100, "lost": 3}, 3),
        ({"operators": 4000, "calls_lost": 2}, 2),
        ({"samples": 30}, 0),
    ],
)
def test_kernels_that_were_not_seen_are_counted(details: dict, lost: int):
    assert duty._lost(Reading(value=0.3, instrument="kernel-intervals", details=details), 4000) == lost


def test_an_instrument_that_loses_more_than_one_kernel_in_a_thousand_reads_nothing():
    reading = Reading(value=0.3, instrument="kernel-intervals", details={"kernels": 3995})
    with pytest.raises(UnreadableError, match="of 4000 kernels that were launched it did not see 5"):
        duty._lost(reading, 4000)


@pytest.mark.torch
@pytest.mark.quiet
class TestOnTorch:
    """A CPU's operators, read by the profiler."""

    @pytest.fixture(autouse=True)
    def threads(self):
        torch = pytest.importorskip("torch")
        before = torch.get_num_threads()
        yield
        torch.set_num_threads(before)

    def test_the_error_is_what_was_read_less_what_the_wave_measured(self):
        readings = calibrated(square_wave, instrument="operator-intervals", duty=0.3, seconds=0.5)
        values = readings.values
        assert values["error"] == values["read"] - values["duty"]
        assert values["lost"] == 0 < values["launched"]
        assert abs(values["error"]) < 0.1
        assert readings.diagnostics["read_by"] == "operator-intervals"

    def test_a_calibration_rests_on_the_wave_alone(self):
        """Every reading is the stimulus's own, which needs no calibration in turn."""
        for experiment, length in ((square_wave, 0.5), (trailing_wait, 0.2)):
            readings = calibrated(experiment, instrument="operator-intervals", seconds=length)
            assert takers(readings) == {"square-wave"} <= SELF_BOUND
            assert readings.instruments["reading"] == "operator-intervals"

    def test_a_trailing_wait_is_seen_in_an_anchored_window_alone(self):
        values = calibrated(trailing_wait, instrument="operator-intervals", busy=0.3, seconds=0.5).values
        assert abs(values["error"]) < 0.1
        assert values["first_to_last"] > 0.8

    def test_one_instrument_is_not_calibrated_by_another_that_it_falls_back_to(self):
        with pytest.raises(UnreadableError, match="falls back to operator-intervals, which took the reading"):
            read_during(Repeat(), "kernel-intervals", lambda _: None)

    @pytest.mark.parametrize("instrument", ["kernel-intervals", "nvml-utilisation"])
    def test_what_watches_a_gpu_is_not_calibrated_by_a_cpu(self, instrument: str):
        if pytest.importorskip("torch").cuda.is_available():
            pytest.skip("there is a CUDA device")
        assert "it watches a CUDA device, and there is none to drive" in problems(
            square_wave, instrument=instrument
        )

    def test_an_unsynchronised_stimulus_makes_the_repeat_invalid(self, monkeypatch: pytest.MonkeyPatch):
        device = Unsynchronised()
        monkeypatch.setattr(duty, "device_for", lambda *_: device)
        found = problems(square_wave, instrument="operator-intervals", seconds=0.5)
        device.close()
        assert found.startswith("operator-intervals is not calibrated: the device has work left")


@pytest.mark.gpu
class TestOnCuda:
    """The same on a CUDA device."""

    @pytest.fixture(autouse=True)
    def device(self):
        if not pytest.importorskip("torch").cuda.is_available():
            pytest.skip("needs a CUDA device")

    @pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
    def test_kernel_intervals_read_the_duty_to_a_point(self, share: float):
        readings = calibrated(square_wave, duty=share, seconds=2.0, kernel=1e-3)
        assert abs(readings.values["error"]) < 0.01
        assert readings.values["lost"] == 0

    def test_a_trailing_wait_is_idle(self):
        values = calibrated(trailing_wait, busy=0.3, seconds=1.0, kernel=1e-3).values
        assert abs(values["error"]) < 0.01
        assert values["first_to_last"] > 0.9

    def test_a_stream_that_is_not_waited_for_is_refused(self, monkeypatch: pytest.MonkeyPatch):
        from pytest_prereg.measure.instruments.wave_devices import CudaDevice

        device = CudaDevice(5e-4)
        monkeypatch.setattr(duty, "device_for", lambda *_: device)
        monkeypatch.setattr(device, "synchronise", lambda: None)
        assert "the device has work left" in problems(square_wave, seconds=1.0)

    def test_the_allocator_counts_every_byte(self):
        assert calibrated(known_memory, instrument="cuda-memory", mebibytes=64).values["error"] == 0

    def test_events_agree_with_the_wall_clock(self):
        values = calibrated(known_pause, instrument="cuda-events", seconds=0.5).values
        assert abs(values["error"]) < 0.01
