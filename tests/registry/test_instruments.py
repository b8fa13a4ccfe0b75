"""Which instrument a metric may declare: one that is known, may decide, and reads what its unit is one of."""

from __future__ import annotations

import pytest
from study_texts import load, refusals

from pytest_prereg.registry.instruments import INSTRUMENTS, READS, SELF_BOUND, in_unit, needs_calibration
from pytest_prereg.registry.load import load_study

EXPERIMENT = (
    '[study]\nid = "s"\n\n[experiments.gate]\nmetrics = {{ x = {{ unit = "{}", instrument = "{}" }} }}\n'
)
TRUSTED = '[instruments.{}]\ntrusted = "{}"\n'


def told(unit: str, instrument: str, rest: str = "") -> list[str]:
    """What is wrong with a metric ``x`` of this unit that declares this instrument."""
    return [message.split(": ", 1)[1] for message in refusals(EXPERIMENT.format(unit, instrument) + rest)]


def test_one_that_has_to_be_calibrated_needs_a_table_and_the_message_shows_it(tmp_path):
    (tmp_path / "predictions.toml").write_text(EXPERIMENT.format("1", "kernel-intervals"))

    with pytest.raises(Exception, match="PR007") as refused:
        load_study(tmp_path / "predictions.toml")

    assert (
        'experiment "gate": metric "x" is read by kernel-intervals, which decides nothing uncalibrated'
    ) in str(refused.value)
    assert "[instruments.kernel-intervals]\n    calibrated-by = [" in str(refused.value)
    assert told("1", "kernel-intervals", TRUSTED.format("kernel-intervals", "We wrote it.")) == []


def test_to_be_trusted_for_no_reason_is_not_enough():
    (message,) = told("1", "kernel-intervals", TRUSTED.format("kernel-intervals", " "))
    assert message.startswith('PR005: instrument "kernel-intervals" must have either "calibrated-by"')


@pytest.mark.parametrize(
    ("unit", "instrument", "reads"),
    [
        ("s", "kernel-intervals", 'kernel-intervals reads a share ("1")'),
        ("1", "nvml-energy", 'nvml-energy reads energy ("J")'),
        ("MB", "host-load", 'host-load reads a share ("1")'),
    ],
)
def test_its_readings_can_be_in_the_metrics_unit(unit, instrument, reads):
    (message,) = told(unit, instrument, TRUSTED.format(instrument, "We wrote it."))
    assert message.startswith(f'PR007: experiment "gate": metric "x" is in "{unit}", and {reads}\n')


@pytest.mark.parametrize(
    ("unit", "instrument"), [("%", "kernel-intervals"), ("kWh", "nvml-energy"), ("percent", "nvml-samples")]
)
def test_in_any_of_their_units(unit, instrument):
    assert told(unit, instrument, TRUSTED.format(instrument, "We wrote it.")) == []


@pytest.mark.parametrize("unit", ["token/s", "1", "ms"])
def test_what_is_derived_from_the_clock_is_in_any_unit(unit):
    assert told(unit, "wall-clock") == []


@pytest.mark.parametrize(
    ("slip", "meant"),
    [("kernel-interval", "kernel-intervals"), ("wallclock", "wall-clock"), ("NVML-Energy", "nvml-energy")],
)
def test_a_slip_is_told_with_the_name_that_was_meant(slip, meant):
    (message,) = told("1", slip)
    assert message.endswith(f'metric "x" names unknown instrument "{slip}"; did you mean "{meant}"?')


def test_a_name_of_ones_own_needs_a_table_of_its_own():
    (message,) = told("1", "probe", TRUSTED.format("thermometer", "We bought it."))
    assert message.endswith('metric "x" names unknown instrument "probe"; known: "thermometer"')


def test_what_decides_as_it_is_may_be_calibrated_all_the_same():
    table = '[instruments.wall-clock]\ncalibrated-by = ["true"]\n'
    claim = '[predictions.true]\nclaim = "c"\nexperiment = "gate"\nquantity = "x"\npredicts = "< 1 s"\nfalsifier = "otherwise"\n'
    text = EXPERIMENT.format("s", "timer") + claim + table
    assert load(text).instruments["wall-clock"].calibrated_by == ["true"]


@pytest.mark.parametrize("kind", INSTRUMENTS.values(), ids=lambda kind: kind.name)
def test_each_says_what_it_reads_how_it_errs_and_whether_it_decides_as_it_is(kind):
    assert all((kind.reads, kind.bias, READS[kind.unit]))
    assert in_unit(kind, kind.unit) == 1
    assert needs_calibration(kind.name) is (kind.name not in SELF_BOUND)
