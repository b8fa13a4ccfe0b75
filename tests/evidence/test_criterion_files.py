"""Criterion.rs: one process a file, whatever number of samples."""

from __future__ import annotations

import json

import pytest
from found_files import found, refused, repeat_of

from pytest_prereg.evidence.importers.criterion import IMPORTER

LINEAR = {"sampling_mode": "Linear", "iters": [1.0, 2.0, 3.0], "times": [10.0, 24.0, 33.0]}
FLAT = {"sampling_mode": "Flat", "iters": [2.0, 2.0, 2.0], "times": [10.0, 24.0, 33.0]}
OLD = [[1.0, 2.0, 3.0], [10.0, 24.0, 33.0]]


def estimate(value):
    interval = {"confidence_level": 0.95, "lower_bound": value, "upper_bound": value}
    return {"confidence_interval": interval, "point_estimate": value, "standard_error": 0.1}


ESTIMATES = {
    name: estimate(value)
    for value, name in enumerate(("mean", "median", "median_abs_dev", "slope", "std_dev"), 1)
}
OLD_ESTIMATES = {
    name: estimate(value)
    for value, name in enumerate(("Mean", "Median", "MedianAbsDev", "Slope", "StdDev"), 1)
}
RAW = """\
group,function,value,throughput_num,throughput_type,sample_measured_value,unit,iteration_count
fib,fast,20,,,10.0,ns,1
fib,fast,20,,,24.0,ns,2
fib,fast,20,,,33.0,ns,3
fib,slow,20,,,100.0,ns,1
"""
OLD_RAW = "group,function,value,sample_time_nanos,iteration_count\nfib,fast,20,10,1\nfib,fast,20,24,2\n"


@pytest.mark.parametrize("sample", [LINEAR, OLD], ids=["now", "before 0.3"])
def test_a_sample_is_one_repeat_in_time_per_iteration(sample):
    repeat = repeat_of(IMPORTER, sample)

    assert repeat.readings["time"] == [10.0, 12.0, 11.0]
    assert repeat.readings["mean"] == repeat.readings["median"] == 11.0
    assert repeat.readings["slope"] == pytest.approx((10 + 48 + 99) / 14)
    assert set(repeat.units.values()) == {"ns"}


def test_the_mean_is_that_of_the_estimates_to_the_last_bit():
    """Added up in order, and not exactly: so a process is known again by its other files."""
    repeat = repeat_of(IMPORTER, {"sampling_mode": "Flat", "iters": [1.0] * 10, "times": [0.1] * 10})

    assert repeat.readings["mean"] == 0.09999999999999999


def test_flat_sampling_has_no_slope():
    repeat = repeat_of(IMPORTER, FLAT)

    assert "slope" not in repeat.readings
    assert "not fitted" in repeat.unreadable["slope"]


@pytest.mark.parametrize("estimates", [ESTIMATES, OLD_ESTIMATES], ids=["now", "capitalised"])
def test_estimates_are_read_and_hold_no_samples(estimates):
    repeat = repeat_of(IMPORTER, estimates)

    assert repeat.readings == {
        "mean": 1,
        "median": 2,
        "median_abs_dev": 3,
        "slope": 4,
        "std_dev": 5,
    }
    assert "only sample.json" in repeat.unreadable["time"]


def test_estimates_of_flat_sampling_have_no_slope():
    repeat = repeat_of(IMPORTER, ESTIMATES | {"slope": None})

    assert repeat.unreadable["slope"] == "is null, no finite number"


def test_raw_samples_are_told_apart_by_benchmark():
    fast, slow = found(IMPORTER, RAW)

    assert (fast.name, slow.name) == ("fib/fast/20", "fib/slow/20")
    assert fast.repeats[0].readings["time"] == [10.0, 12.0, 11.0]
    assert slow.repeats[0].readings["time"] == [100.0]
    assert "slope" in fast.repeats[0].readings
    assert "not fitted" in slow.repeats[0].unreadable["slope"]


def test_the_older_raw_file_is_in_nanoseconds():
    repeat = repeat_of(IMPORTER, OLD_RAW)

    assert repeat.readings["time"] == [10.0, 12.0]
    assert repeat.units["time"] == "ns"


def test_a_measurement_of_its_own_keeps_its_unit():
    assert (
        repeat_of(
            IMPORTER,
            OLD_RAW.replace("sample_time_nanos", "sample_measured_value,unit")
            .replace(",1\n", ",cycles,1\n")
            .replace(",2\n", ",cycles,2\n"),
        ).units["time"]
        == "cycles"
    )


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            {"group_id": "fib", "directory_name": "fib/20", "title": "fib"},
            "names a benchmark and holds no time",
        ),
        ([1.0, 2.0, 3.0, 4.0], "the fences of outliers and no time"),
        ({"mean": estimate(0.1), "median": estimate(0.2)}, "compares two processes and holds no time"),
        ({"Mean": estimate(0.1), "Median": estimate(0.2)}, "compares two processes and holds no time"),
    ],
    ids=["benchmark.json", "tukey.json", "change", "old change"],
)
def test_a_file_without_times_says_what_to_import_instead(content, sentence):
    assert IMPORTER.recognises("any.json", json.dumps(content).encode())
    refusal = refused(IMPORTER, content)

    assert refusal.startswith("PR127: this is a ")
    assert sentence in refusal
    assert "Import new/sample.json of each process." in refusal


@pytest.mark.parametrize(
    ("content", "refusal"),
    [
        (LINEAR | {"times": [1.0]}, "PR110: iterations and times of the sample are not two lists of one length"),
        (LINEAR | {"times": None}, "PR110: iterations and times of the sample are not two lists of one length"),
        (LINEAR | {"times": [1.0, None, 2.0]}, "PR112: times has null as its entry 2, no finite number"),
        (LINEAR | {"iters": [1, 0, 2]}, "PR112: a sample has 0 iterations"),
        ([[], []], "PR112: [0] is an empty list"),
        ({"bench": 1}, "PR127: this is no sample.json, estimates.json or raw.csv of criterion"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(content, refusal):
    assert refused(IMPORTER, content).split("\n")[0] == refusal


@pytest.mark.parametrize(
    ("iterations", "times", "lost"),
    [
        (
            [1, 1],
            [1.7e308, 1.7e308],
            {"mean": "is Infinity, no finite number", "slope": "is Infinity, no finite number"},
        ),
        ([1e-200, 2e-200], [1, 2], {"slope": "is NaN, no finite number"}),
    ],
    ids=["too large", "too small"],
)
def test_what_is_beyond_all_numbers_is_no_reading(iterations, times, lost):
    repeat = repeat_of(IMPORTER, {"sampling_mode": "Linear", "iters": iterations, "times": times})

    assert repeat.unreadable == lost
    assert len(repeat.readings["time"]) == 2


def test_wrong_raw_rows_are_told_all_at_once():
    wrong = RAW.replace("24.0", "x").replace("100.0,ns,1", "100.0,ms,0").replace("33.0,ns", "33.0,us")

    assert refused(IMPORTER, wrong).split("\n") == [
        '2: PR117: "fib/fast/20" is in "ns" and "us"',
        '3: PR112: sample_measured_value is "x"',
        '5: PR112: iteration_count is "0"',
    ]


def test_a_slash_in_a_name_mixes_no_benchmarks():
    head = RAW.partition("\n")[0]

    several = found(IMPORTER, f"{head}\na/b,c,,,,10.0,ns,1\na,b/c,,,,24.0,ns,2\n")

    assert [(one.name, one.repeats[0].readings["time"]) for one in several] == [
        ("a/b/c", [10.0]),
        ("a/b/c", [12.0]),
    ]
