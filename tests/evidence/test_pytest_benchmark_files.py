"""Files of pytest-benchmark: one process, so one repeat of each test, however many rounds it had."""

from __future__ import annotations

from copy import deepcopy

import pytest
from found_files import found, refused, repeat_of

from pytest_prereg.evidence.importers.pytest_benchmark import IMPORTER

STATS = {"min": 1.0, "max": 3.0, "mean": 2.0, "median": 2.0, "stddev": 1.0, "rounds": 3, "ops": 0.5,
         "outliers": "1;0", "iterations": 1, "data": [1.0, 3.0, 2.0]}  # fmt: skip
ROUNDS = {
    "machine_info": {"cpu": {"brand_raw": "A CPU"}, "python_version": "3.12.1"},
    "commit_info": {"id": "abc", "dirty": True},
    "benchmarks": [
        {"name": "test_a", "fullname": "tests/test_it.py::test_a", "extra_info": {"bytes": 8, "of": "x"},
         "stats": STATS}
    ],
    "datetime": "2026-01-01T00:00:00",
    "version": "5.1.0",
}  # fmt: skip


def changed(**stats):
    content = deepcopy(ROUNDS)
    content["benchmarks"][0]["stats"] |= stats
    return content


def test_rounds_are_samples_of_one_repeat():
    repeat = repeat_of(IMPORTER, ROUNDS)

    assert repeat.readings["data"] == [1.0, 3.0, 2.0]
    assert (repeat.readings["mean"], repeat.readings["rounds"]) == (2.0, 3.0)
    assert (repeat.units["mean"], repeat.units["data"], repeat.units["ops"]) == ("s", "s", "1/s")
    assert "rounds" not in repeat.units


def test_what_a_test_noted_itself_is_a_reading_if_it_is_a_number():
    readings = repeat_of(IMPORTER, ROUNDS).readings

    assert readings["extra_info.bytes"] == 8.0
    assert "extra_info.of" not in readings


def test_its_machine_and_commit_are_kept():
    repeat = repeat_of(IMPORTER, ROUNDS)

    assert repeat.machine == "A CPU"
    assert (repeat.diagnostics["commit"], repeat.diagnostics["dirty"]) == ("abc", True)


def test_no_commit_is_none():
    content = ROUNDS | {"commit_info": {"id": "unversioned", "dirty": False}}

    assert "commit" not in repeat_of(IMPORTER, content).diagnostics


@pytest.mark.parametrize("data", [None, []])
def test_without_its_rounds_it_is_a_summary_and_says_how_to_keep_them(data):
    repeat = repeat_of(IMPORTER, changed(data=data))

    assert "--benchmark-json" in repeat.unreadable["data"]
    assert "--benchmark-save-data" in repeat.unreadable["data"]
    assert repeat.readings["median"] == 2.0


def test_version_4_leaves_the_rounds_out_altogether():
    content = changed()
    del content["benchmarks"][0]["stats"]["data"]
    content["version"] = "4.0.0"

    assert "summary only" in repeat_of(IMPORTER, content).unreadable["data"]


def test_a_number_that_is_none_is_never_taken():
    repeat = repeat_of(IMPORTER, changed(stddev="inf", median=None))

    assert not {"stddev", "median"} & repeat.readings.keys()
    assert '"inf"' in repeat.unreadable["stddev"]


def test_tests_of_one_name_are_told_apart_by_their_files():
    content = deepcopy(ROUNDS)
    content["benchmarks"].append(content["benchmarks"][0] | {"fullname": "tests/test_other.py::test_a"})

    benchmarks = found(IMPORTER, content)

    assert [one.name for one in benchmarks] == ["tests/test_it.py::test_a", "tests/test_other.py::test_a"]
    assert {one.aliases for one in benchmarks} == {("test_a",)}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (ROUNDS | {"benchmarks": []}, "no benchmark"),
        (ROUNDS | {"benchmarks": {}}, 'no list "benchmarks"'),
        (ROUNDS | {"benchmarks": [{"name": "a"}, 3]}, 'benchmarks[0] has no "stats"'),
        (ROUNDS | {"benchmarks": [{"name": "a"}, 3]}, "benchmarks[1] is 3, and no object"),
    ],
)
def test_a_file_of_no_benchmarks_is_refused(content, why):
    assert why in refused(IMPORTER, content)
