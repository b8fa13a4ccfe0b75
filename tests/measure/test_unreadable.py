"""What a repeat says of an instrument that could not be read, apart from what its body says of itself."""

from __future__ import annotations

import pytest

from pytest_prereg.measure.instruments.readers import READERS
from pytest_prereg.measure.instruments.reading import Reading, UnreadableError
from pytest_prereg.measure.repeat import Repeat
from pytest_prereg.measure.workloads.calibration.reading import calibrating

NAME = "kernel-intervals"


class Absent:
    """Stands in for an instrument whose device is not there."""

    def start(self) -> None:
        raise UnreadableError("there is no device")

    def stop(self) -> None: ...

    def reading(self) -> Reading:
        raise AssertionError("it never began")


@pytest.fixture
def repeat(monkeypatch: pytest.MonkeyPatch) -> Repeat:
    monkeypatch.setitem(READERS, NAME, f"{__name__}:Absent")
    return Repeat(metrics={"busy": "1", "idle": "1", "t": "s"})


def read(repeat: Repeat, metric: str = "busy") -> None:
    with repeat.instrument(NAME).window(metric):
        pass


def test_it_names_the_metric_and_the_instrument(repeat):
    read(repeat)
    readings = repeat.readings()
    assert readings.unreadable == {"busy": NAME}
    assert readings.problems == [f'metric "busy": {NAME} can\'t be read: there is no device']
    assert readings.missing == ['metric "idle" was not recorded', 'metric "t" was not recorded']


def test_what_the_body_declares_invalid_itself_is_not_told_as_that(repeat):
    read(repeat)
    repeat.invalidate("I did not like it")
    assert repeat.readings().unreadable == {}


def test_nor_what_has_a_value_all_the_same(repeat):
    read(repeat)
    repeat.record("busy", 0.5)
    assert repeat.readings().unreadable == {}


def test_what_is_no_metric_makes_nothing_invalid(repeat):
    read(repeat, "seen")
    readings = repeat.readings()
    assert (readings.unreadable, readings.problems) == ({}, [])


@pytest.mark.parametrize("recorded", [(), ("t",)])
def test_a_calibration_without_a_reading_lacks_all_that_it_did_not_record_before(repeat, recorded):
    with calibrating(repeat, NAME, [NAME]):
        for name in recorded:
            repeat.record(name, 1.0)
        raise UnreadableError("there is no device")
    readings = repeat.readings()
    assert readings.unreadable == dict.fromkeys({"busy", "idle", "t"} - {*recorded}, NAME)
    assert (readings.problems, readings.missing) == ([f"{NAME} is not calibrated: there is no device"], [])
