"""Files of hyperfine: a run is a repeat, and what is said of all runs together is said of none."""

from __future__ import annotations

import pytest
from found_files import found, refused

from pytest_prereg.evidence.importers.hyperfine import IMPORTER


def command(name="sleep 1", times=(1.0, 2.0, 3.0), **more):
    own = {"mean": sum(times) / len(times), "min": min(times), "max": max(times)} if times else {}
    summary = {"stddev": None, "median": 2.0, "user": 0.5, "system": 0.1, **own}
    return {"command": name, **summary, "times": list(times), **more}


def results(*commands):
    return {"results": list(commands)}


def test_each_run_is_a_repeat():
    (benchmark,) = found(IMPORTER, results(command(memory_usage_byte=[1, 2, 3], exit_codes=[0, 0, 0])))

    assert benchmark.name == "sleep 1"
    assert [one.readings for one in benchmark.repeats] == [
        {"times": float(run), "memory_usage_byte": float(run), "exit_codes": 0.0} for run in (1, 2, 3)
    ]
    assert benchmark.repeats[0].units["times"] == "s"


@pytest.mark.parametrize("name", ["user", "system", "mean", "median", "min", "max"])
def test_what_is_said_of_all_runs_is_no_reading_of_one(name):
    (benchmark,) = found(IMPORTER, results(command()))

    assert all(name not in one.readings for one in benchmark.repeats)
    assert "none of them has it" in benchmark.repeats[0].unreadable[name]
    assert name in benchmark.summaries


def test_a_single_run_has_no_deviation():
    (benchmark,) = found(IMPORTER, results(command(times=[1.0])))

    assert "stddev" not in benchmark.summaries


def test_a_run_that_failed_is_one_that_failed():
    (benchmark,) = found(IMPORTER, results(command(exit_codes=[0, 3, None])))

    assert [one.failed for one in benchmark.repeats] == [
        None,
        "it ended with exit status 3",
        "a signal ended it",
    ]
    assert {one.failed_by for one in benchmark.repeats} == {"exit_codes"}


def test_commands_are_told_apart_and_their_parameters_kept():
    benchmarks = found(IMPORTER, results(command("a 1", parameters={"n": "1"}), command("a 2")))

    assert [one.name for one in benchmarks] == ["a 1", "a 2"]
    assert benchmarks[0].repeats[0].diagnostics == {"n": "1"}


@pytest.mark.parametrize("times", [None, []])
def test_without_its_runs_it_has_no_repeats(times):
    (benchmark,) = found(IMPORTER, results(command() | {"times": times}))

    assert benchmark.repeats == ()
    assert "--export-json" in benchmark.refusal


def test_a_list_of_another_length_is_of_other_runs():
    assert '2 "exit_codes" for 3 "times"' in refused(IMPORTER, results(command(exit_codes=[0, 0])))


@pytest.mark.parametrize("content", [{"results": []}, {"results": None}, {}, []])
def test_a_file_of_no_commands_is_refused(content):
    assert "no command" in refused(IMPORTER, content)
