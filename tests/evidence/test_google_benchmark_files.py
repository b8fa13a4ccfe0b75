"""Files of Google Benchmark: repetitions are of one process, and aggregates are read never."""

from __future__ import annotations

import pytest
from found_files import found, refused, repeat_of

from pytest_prereg.evidence.importers.google_benchmark import IMPORTER


def row(name="BM_x", real_time=5.0, **more):
    times = {"iterations": 10, "real_time": real_time, "cpu_time": 4.0, "time_unit": "ns"}
    return {"name": name, "run_name": name, "run_type": "iteration", "threads": 1, **times, **more}


def aggregate(kind, name="BM_x"):
    of_all = {"name": f"{name}_{kind}", "run_type": "aggregate", "aggregate_name": kind}
    return row(name, 99.0) | of_all


def output(*rows, **context):
    return {"context": {"num_cpus": 2, "executable": "/home/me/bench", **context}, "benchmarks": list(rows)}


def row_of_old(name, real_time):
    return {"name": name, "iterations": 1, "real_time": real_time, "cpu_time": 1.0, "time_unit": "us"}


def test_one_repetition_is_one_process_and_a_repeat():
    (benchmark,) = found(IMPORTER, output(row(bytes_per_second=7.5, label="small")))
    (repeat,) = benchmark.repeats

    assert benchmark.refusal is None
    assert repeat.readings == {"iterations": 10, "real_time": 5.0, "cpu_time": 4.0, "bytes_per_second": 7.5}
    assert repeat.units == {"real_time": "ns", "cpu_time": "ns"}
    assert repeat.diagnostics["executable"] == "bench"


def test_several_are_of_one_process_unless_that_is_declared():
    rows = [row(real_time=value, repetition_index=index) for index, value in enumerate((5.0, 6.0, 7.0))]

    (benchmark,) = found(IMPORTER, output(*rows))

    assert [one.readings["real_time"] for one in benchmark.repeats] == [5.0, 6.0, 7.0]
    assert benchmark.refusal == "its 3 repetitions are of one process"
    assert benchmark.declared_by == ("session",)


@pytest.mark.parametrize("kind", ["mean", "median", "stddev", "cv", "BigO", "RMS", "my_own"])
def test_aggregates_are_never_among_the_repetitions(kind):
    (benchmark,) = found(IMPORTER, output(row(), aggregate(kind)))

    assert [one.readings["real_time"] for one in benchmark.repeats] == [5.0]


def test_older_files_tell_aggregates_by_their_names_alone():
    rows = [row_of_old(name, 1.0) for name in ("BM_mean", "BM_mean", "BM_mean_mean", "BM_mean_stddev")]

    (benchmark,) = found(IMPORTER, output(*rows))

    assert benchmark.name == "BM_mean"
    assert len(benchmark.repeats) == 2
    assert benchmark.repeats[0].units["real_time"] == "us"


def test_a_counter_that_is_no_number_is_not_taken():
    text = '{"context": {"num_cpus": 1}, "benchmarks": [{"name": "a", "real_time": 1, "time_unit": "ns", "c": NaN}]}'

    repeat = repeat_of(IMPORTER, text)

    assert repeat.unreadable == {"c": "is NaN, no finite number"}


def test_an_error_is_a_failure_and_a_skip_is_no_repeat():
    failed = row("bad", error_occurred=True, error_message="boom")
    skipped = row("none", skipped=True, skip_message="no GPU")

    bad, none = found(IMPORTER, output(failed, skipped))

    assert bad.repeats[0].failed == "boom"
    assert none.repeats == ()
    assert none.refusal == "it was skipped: no GPU"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (output(row(), json_schema_version=2), "PR127"),
        (output(row(time_unit="fortnight")), "unknown unit of time"),
        (output(row(time_unit=["ns"])), "unknown unit of time"),
        (output(aggregate("mean")), "no benchmark, aggregates apart"),
        (output(), "no benchmark"),
    ],
)
def test_what_can_not_be_understood_is_refused(content, why):
    assert why in refused(IMPORTER, content)


@pytest.mark.parametrize("kind", ["mean", "stddev"])
def test_aggregates_of_an_older_file_without_repetitions_are_no_benchmarks(kind):
    rows = [row_of_old(f"BM_{each}", 1.0) for each in ("mean", "median", "stddev")]

    assert refused(IMPORTER, output(*rows)) == "PR110: the file holds no benchmark, aggregates apart"
    (benchmark,) = found(IMPORTER, output(*rows, row_of_old("BM", 2.0)))
    assert benchmark.name == "BM"
    assert not benchmark.name.endswith(kind)


def test_what_fits_the_complexity_is_an_aggregate():
    fit = {
        "name": "BM_BigO",
        "cpu_coefficient": 1.0,
        "real_coefficient": 1.0,
        "big_o": "N",
        "time_unit": "ns",
    }

    names = [
        one.name for one in found(IMPORTER, output(row_of_old("BM/8", 1.0), row_of_old("BM/64", 1.0), fit))
    ]

    assert names == ["BM/8", "BM/64"]


def test_a_row_that_names_nothing_is_told_and_not_dropped():
    assert refused(IMPORTER, output(row(), 5)) == "PR110: benchmarks[1] is 5, and no object"
    assert (
        refused(IMPORTER, output(row(), {"run_type": "iteration"}))
        == "PR110: benchmarks[1] names no benchmark"
    )


def test_times_without_a_unit_have_none():
    bare = {key: value for key, value in row().items() if key != "time_unit"}

    assert repeat_of(IMPORTER, output(row())).units["real_time"] == "ns"
    assert repeat_of(IMPORTER, {**output(bare)}).units == {}


def test_a_time_that_is_text_is_told_as_such():
    assert repeat_of(IMPORTER, output(row(real_time="nan"))).unreadable["real_time"].startswith('is "nan"')
