"""Files of pyperf: the process is the repeat, its values are samples, and what only calibrated is neither."""

from __future__ import annotations

import gzip
import json

import pytest
from found_files import found, refused, repeat_of

from pytest_prereg.evidence.importers.pyperf import IMPORTER


def process(*values, **metadata):
    return {"metadata": {"date": "2026-01-01", **metadata}, "values": list(values), "warmups": [[1, 9.0]]}


CALIBRATION = {"metadata": {"calibrate_loops": 8}, "warmups": [[1, 9.0], [2, 9.0]]}
SUITE = {
    "version": "1.0",
    "metadata": {"name": "telco", "cpu_model_name": "A CPU", "loops": 8},
    "benchmarks": [{"runs": [CALIBRATION, process(1.0, 2.0, mem_max_rss=4096), process(3.0, 4.0)]}],
}


def test_a_process_is_a_repeat_and_its_values_are_samples():
    (benchmark,) = found(IMPORTER, SUITE)

    assert benchmark.name == "telco"
    assert [one.readings["values"] for one in benchmark.repeats] == [[1.0, 2.0], [3.0, 4.0]]
    assert {one.units["values"] for one in benchmark.repeats} == {"s"}
    assert {one.machine for one in benchmark.repeats} == {"A CPU"}


def test_warm_ups_are_counted_and_kept_apart():
    (benchmark,) = found(IMPORTER, SUITE)

    assert [one.diagnostics["warmups"] for one in benchmark.repeats] == [1, 1]
    assert 9.0 not in [value for one in benchmark.repeats for value in one.readings["values"]]


def test_what_it_noted_of_a_process_can_be_read():
    (benchmark,) = found(IMPORTER, SUITE)

    assert benchmark.repeats[0].readings["mem_max_rss"] == 4096.0
    assert benchmark.repeats[0].units["mem_max_rss"] == "byte"
    assert "mem_max_rss" not in benchmark.repeats[1].readings


def test_it_may_be_compressed():
    data = gzip.compress(json.dumps(SUITE).encode())

    assert len(found(IMPORTER, data)[0].repeats) == 2


def test_a_suite_has_several_benchmarks_each_with_its_own_unit():
    runs = [process(1.0)]
    benchmarks = [
        {"metadata": {"name": "fast"}, "runs": runs},
        {"metadata": {"name": "small", "unit": "byte"}, "runs": runs},
        {"metadata": {"name": "few", "unit": "integer"}, "runs": runs},
    ]

    every = found(IMPORTER, {"version": "1.0", "benchmarks": benchmarks})

    assert [(one.name, one.repeats[0].units["values"]) for one in every] == [
        ("fast", "s"),
        ("small", "byte"),
        ("few", "1"),
    ]


def test_a_suite_that_only_calibrated_has_no_repeats():
    (benchmark,) = found(IMPORTER, SUITE | {"benchmarks": [{"runs": [CALIBRATION]}]})

    assert benchmark.repeats == ()
    assert "only calibrated" in benchmark.refusal


@pytest.mark.parametrize("values", [[], [1.0, "inf"], "none", None])
def test_a_process_whose_values_are_none_has_none_to_read(values):
    run = process() | {"values": values}

    repeat = repeat_of(IMPORTER, SUITE | {"benchmarks": [{"runs": [run]}]})

    assert "values" in repeat.unreadable
    assert "values" not in repeat.readings


@pytest.mark.parametrize("version", ["2.0", 6, None])
def test_another_version_of_the_format_is_refused(version):
    assert "PR127" in refused(IMPORTER, SUITE | {"version": version})


@pytest.mark.parametrize("unit", ["furlong", ["second"], None])
def test_an_unknown_unit_is_refused(unit):
    assert "unknown unit" in refused(IMPORTER, SUITE | {"metadata": {"unit": unit}})


@pytest.mark.parametrize("cut", [3, 30, -1])
def test_a_compressed_file_that_was_cut_is_refused(cut):
    assert "can't be decompressed" in refused(IMPORTER, gzip.compress(json.dumps(SUITE).encode())[:cut])


def test_a_suite_without_benchmarks_is_refused():
    assert "no benchmark" in refused(IMPORTER, SUITE | {"benchmarks": []})


def test_a_process_may_name_its_own_unit():
    run = process(1.0, 2.0, unit="byte")

    assert repeat_of(IMPORTER, SUITE | {"benchmarks": [{"runs": [run]}]}).units["values"] == "byte"


def test_a_process_of_another_benchmark_is_none_of_this_one():
    runs = [process(1.0), process(2.0, name="nbody")]

    assert refused(IMPORTER, SUITE | {"benchmarks": [{"runs": runs}]}) == (
        'PR117: process 2 at benchmarks[0].runs[1] is of "nbody", not of "telco"'
    )


def test_a_run_that_can_not_be_read_is_not_left_out():
    assert "benchmarks[0].runs[1] is 5, and no object" in refused(
        IMPORTER, SUITE | {"benchmarks": [{"runs": [process(1.0), 5]}]}
    )
