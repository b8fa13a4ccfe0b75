"""Under whose name a number is kept: an instrument that has to be calibrated takes its readings itself."""

from __future__ import annotations

import pytest

from pytest_prereg.measure.instruments.readers import READERS
from pytest_prereg.measure.instruments.reading import Reading
from pytest_prereg.measure.readings import ReadingError
from pytest_prereg.measure.repeat import Repeat
from pytest_prereg.registry.instruments import SELF_BOUND


class Half:
    """Stands in for a profiler that saw half of the window."""

    took = "kernel-intervals"

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def reading(self) -> Reading:
        return Reading(value=0.5, instrument=self.took)


class Fallback(Half):
    took = "operator-intervals"


@pytest.fixture
def repeat(monkeypatch: pytest.MonkeyPatch) -> Repeat:
    monkeypatch.setitem(READERS, "kernel-intervals", f"{__name__}:Half")
    monkeypatch.setitem(READERS, "operator-intervals", f"{__name__}:Fallback")
    return Repeat(metrics={"busy": {"unit": "%", "instrument": "kernel-intervals"}})


def read(repeat: Repeat, metric: str = "busy", instrument: str = "kernel-intervals") -> None:
    with repeat.instrument(instrument).window(metric):
        pass


def test_a_window_keeps_its_reading_under_the_instruments_name(repeat):
    read(repeat)
    read(repeat)
    readings = repeat.readings()
    assert (readings.values, readings.instruments) == ({"busy": [50, 50]}, {"busy": "kernel-intervals"})


def test_a_number_of_the_bodys_is_refused_under_that_name(repeat):
    with pytest.raises(ReadingError) as refused:
        repeat.instrument("kernel-intervals").record("busy", 50)
    assert str(refused.value) == (
        'metric "busy": kernel-intervals takes its readings itself, so read it with '
        'repeat.instrument("kernel-intervals").window("busy") first; '
        "a number of your own can't decide a metric that declares this instrument"
    )
    assert (repeat.readings().values, len(repeat.readings().problems)) == ({}, 1)


def test_and_kept_under_an_instrument_of_the_studys_own(repeat):
    repeat.instrument("probe").record("busy", 50)
    assert repeat.readings().instruments == {"busy": "probe"}


@pytest.mark.parametrize("name", [*sorted(SELF_BOUND)])
def test_of_the_packages_that_need_no_calibration_only_the_package_fills_in_readings(repeat, name):
    repeat.instrument(name).record("busy", 50)
    assert repeat.readings().values == {"busy": 50}
    assert repeat.readings().instruments == {}


def test_a_number_of_the_bodys_beside_a_reading_leaves_both_without_an_instrument():
    repeat = Repeat(metrics={"peak": "byte"})
    with repeat.instrument("process-memory").window("peak"):
        pass
    assert repeat.readings().instruments == {"peak": "process-memory"}
    repeat.samples("peak", [1.0])
    assert repeat.readings().instruments == {}


@pytest.mark.parametrize(
    ("other", "ways"),
    [
        (lambda repeat: read(repeat, instrument="operator-intervals"), "kernel-intervals and operator-intervals"),
        (lambda repeat: repeat.samples("busy", [99]), "by hand and kernel-intervals"),
    ],
    ids=["by what it falls back to", "by hand"],
)  # fmt: skip
@pytest.mark.parametrize("is_first", [True, False])
def test_one_metric_is_not_read_in_two_ways(repeat, other, ways, is_first):
    first, second = (read, other) if is_first else (other, read)
    first(repeat)
    with pytest.raises(ReadingError, match=rf"read in two ways \({ways}\); give each a metric of its own"):
        second(repeat)
    assert len(repeat.readings().problems) == 1


def test_what_is_no_metric_may_be(repeat):
    read(repeat, "seen")
    read(repeat, "seen", "operator-intervals")
    repeat.record("busy", 50)
    assert repeat.readings().instruments == {}
    assert repeat.readings().diagnostics["seen"] == [0.5, 0.5]


def test_what_was_read_under_an_undeclared_name_is_told_where_a_metric_is_missing(repeat):
    read(repeat, "share")
    repeat.record("note", 1)
    assert repeat.readings().missing == [
        'metric "busy" was not recorded; "share", which is not declared, was'
    ]


def test_of_several_all_are_told(repeat):
    read(repeat, "share")
    with repeat.timer("time"):
        pass
    assert repeat.readings().missing == [
        'metric "busy" was not recorded; "share" and "time", which are not declared, were'
    ]
