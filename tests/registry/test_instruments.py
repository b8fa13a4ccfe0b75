"""Which instrument a metric may declare: one that is known, may decide, and reads what its unit is one of."""

from __future__ import annotations

import importlib
import inspect

import pytest
from study_texts import load, refusals

from pytest_prereg.registry.builtins import MODULES
from pytest_prereg.registry.instruments import (
    CALIBRATES,
    INSTRUMENTS,
    READS,
    SELF_BOUND,
    in_unit,
    needs_calibration,
    takers_for,
)
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


def test_a_table_whose_name_is_nearly_that_is_told():
    (message,) = told("1", "operator-intervals", TRUSTED.format("operator-interval", "We wrote it."))
    assert 'there is a table "operator-interval": was it meant for this one?' in message
    (message,) = told("1", "operator-intervals", TRUSTED.format("probe", "We wrote it."))
    assert "there is a table" not in message


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


@pytest.mark.parametrize(
    "name",
    [
        "operator\u2011intervals",  # a hyphen that does not break
        "Operator_Intervals",
        "operator intervals",
        "operator-interva1s",
        "oper\u0430t\u043er-intervals",  # two letters are Cyrillic
        "operator-\u200bintervals",
        "\uff4fperator-intervals",
    ],
)
def test_none_of_ones_own_reads_like_one_of_the_packages(name):
    assert told("1", name, TRUSTED.format(f'"{name}"', "We wrote it."))[-1].endswith(
        'reads like "operator-intervals", which is the package\'s\n'
        '    Write "operator-intervals", or give yours a name of its own.'
    )


@pytest.mark.parametrize("name", ["operators", "Zähler", "время", "power meter", "kernel-intervals of ours"])
def test_others_may_be_called_what_they_are(name):
    assert told("1", name, TRUSTED.format(f'"{name}"', "It has a certificate.")) == []


def test_an_instrument_has_a_name():
    assert told("1", "", TRUSTED.format('""', "We wrote it.")) == [
        'PR006: instrument "": an instrument needs a name'
    ]


def test_what_has_to_be_calibrated_is_read_and_not_counted():
    exact = EXPERIMENT.format("1", "kernel-intervals").replace("unit =", "exact = true, unit =")
    rest = TRUSTED.format("kernel-intervals", "We wrote it.")
    (message,) = (one.split(": ", 1)[1] for one in refusals(exact + rest))
    assert message.startswith(
        'PR005: experiment "gate": metric "x" is "exact", and kernel-intervals reads it'
    )
    assert refusals(exact.replace("kernel-intervals", "process-memory").replace('"1"', '"byte"')) == []


WAVE = """\
[experiments.wave]
metrics = { error = { unit = "1" }, lost = { unit = "kernel", exact = true } }

[instruments.kernel-intervals]
calibrated-by = ["true"%s]
"""
CLAIM = """\
[predictions.%s]
claim = "c"
experiment = "wave"
quantity = "%s"
predicts = "< 1"
falsifier = "otherwise"
"""


@pytest.mark.parametrize(
    ("quantity", "more", "wrong"),
    [
        ("error", "", None),
        ("error / 2", 'basis = "model"', '"true" has basis = "model": it shows nothing of an instrument'),
        ("error * 2", 'basis = "identity"', '"true" has basis = "identity": it shows nothing of an instrument'),
        ("lost", "", '"true" read nothing but what is exact: counts calibrate nothing that is read'),
    ],
)  # fmt: skip
def test_what_calibrates_one_of_the_package_is_measured_and_no_count(quantity, more, wrong):
    text = EXPERIMENT.format("1", "kernel-intervals") + WAVE % "" + CLAIM % ("true", quantity) + more
    assert [one.split('kernel-intervals": ', 1)[1] for one in refusals(text)] == (
        [] if wrong is None else [wrong]
    )


def test_a_count_may_be_held_against_it_as_well():
    text = EXPERIMENT.format("1", "kernel-intervals") + WAVE % ', "none-lost"'
    assert refusals(text + CLAIM % ("true", "error") + CLAIM % ("none-lost", "lost")) == []


def test_a_model_is_none_among_several_either():
    both = '[predictions.both]\nclaim = "c"\nall = ["model", "true"]\n'
    members = CLAIM % ("true", "error") + CLAIM % ("model", "error / 2") + 'basis = "model"\n'
    text = EXPERIMENT.format("1", "kernel-intervals") + WAVE.replace('"true"%s', '"both"') + members + both
    (message,) = refusals(text)
    assert message.endswith('"model" has basis = "model": it shows nothing of an instrument')


BUILT_IN = '[study]\nid = "s"\n\n[experiments.wave]\nfixture = "square_wave"\nrepeats = 3\n'


@pytest.mark.parametrize(
    "table",
    [
        "params = { instrument = %s }",
        "sweep = { instrument = [%s, 'kernel-intervals'] }",
        "[experiments.wave.arms]\na = { instrument = %s }",
    ],
)
def test_a_calibration_of_the_package_names_one_that_there_is(table):
    assert refusals(BUILT_IN + table % "'operator-intervals'") == []
    (message,) = refusals(BUILT_IN + table % "'operater'")
    assert message.endswith(
        '"instrument" is "operater", and the package has no such; did you mean "operator-intervals"?'
    )
    assert len(refusals(BUILT_IN + table % "7")) == 1
    (message,) = refusals(BUILT_IN + table % "'process-memory'")
    assert message.endswith(
        '"instrument" is "process-memory", which square_wave can\'t check; it calibrates "kernel-intervals", '
        '"operator-intervals", "nvml-utilisation" and "nvml-samples"'
    )


@pytest.mark.parametrize("name", CALIBRATES)
def test_each_calibration_of_the_package_reads_with_the_first_that_it_can_check(name):
    module = importlib.import_module(MODULES[name])
    function = inspect.unwrap(getattr(module, name))
    assert inspect.signature(function).parameters["instrument"].default == CALIBRATES[name][0]
    assert {*CALIBRATES[name]} <= {*INSTRUMENTS}


def test_what_a_calibration_holds_and_is_held_against_is_there_for_each_that_it_can_check():
    memory, pause = (importlib.import_module(MODULES[name]) for name in ("known_memory", "known_pause"))
    assert (*memory._HOLD,) == CALIBRATES["known_memory"]
    assert (*pause.AGAINST,) == CALIBRATES["known_pause"]


@pytest.mark.parametrize(
    ("params", "wrong"),
    [
        ("", None),
        ('params = { instrument = "operator-intervals" }', '"true" read with operator-intervals, and nothing with kernel-intervals'),
        (
            '[experiments.wave.arms]\na = { instrument = "operator-intervals" }\nb = {}',
            None,
        ),
    ],
)  # fmt: skip
def test_what_calibrates_an_instrument_reads_with_it_as_far_as_that_is_known(params, wrong):
    wave = BUILT_IN.partition("\n\n")[2] + params + "\n"
    claim = CLAIM % ("true", "error")
    claim += 'contrast = "a - b"\n' if "arms" in params else ""
    table = '[instruments.kernel-intervals]\ncalibrated-by = ["true"]\n'
    text = EXPERIMENT.format("1", "kernel-intervals") + wave + table + claim
    assert [one.split('kernel-intervals": ', 1)[1] for one in refusals(text)] == ([wrong] if wrong else [])


@pytest.mark.parametrize(
    ("declared", "takers"),
    [
        ("kernel-intervals", {"kernel-intervals", "operator-intervals"}),
        ("operator-intervals", {"operator-intervals"}),
        ("timer", {"timer", "wall-clock"}),
        ("bench", {"bench", "wall-clock", "cuda-events"}),
        ("cuda-events", {"cuda-events"}),
        ("probe", {"probe"}),
    ],
)
def test_who_may_take_the_readings_of_a_metric_that_declares_one(declared, takers):
    assert takers_for(declared) == takers
    assert takers <= {declared, *INSTRUMENTS}


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


@pytest.mark.parametrize(
    ("instrument", "unit", "expected"),
    [
        ("kernel-intervals", "percent", 100),
        ("kernel-intervals", "%", 100),
        ("cuda-events", "ms", 1e3),
        ("cuda-events", "min", 1 / 60),
        ("cuda-memory", "kB", 1e-3),
        ("cuda-memory", "GB", 1e-9),
        ("cuda-memory", "bytes", 1),
        ("process-memory", "KiB", 2**-10),
        ("process-memory", "GiB", 2**-30),
        ("nvml-energy", "mJ", 1e3),
        ("rapl-energy", "kJ", 1e-3),
        ("rapl-energy", "Wh", 1 / 3600),
        ("rapl-energy", "kWh", 1 / 3.6e6),
        ("kernel-intervals", "s", None),
        ("cuda-memory", "J", None),
    ],
)
def test_a_reading_is_recorded_in_the_unit_of_its_metric(instrument: str, unit: str, expected: float | None):
    """How many of the unit one of the instrument's own is."""
    scale = in_unit(INSTRUMENTS[instrument], unit)
    assert scale is None if expected is None else scale == pytest.approx(expected, rel=1e-12)
