"""MLPerf training logs: one run a file, from run_start to run_stop."""

from __future__ import annotations

import json

import pytest
from found_files import found, refused, repeat_of

from pytest_prereg.evidence.importers.mlperf import IMPORTER


def event(key, time, value=None, **metadata):
    entry = {"namespace": "", "time_ms": time, "event_type": "POINT_IN_TIME", "key": key, "value": value}
    return ":::MLLOG " + json.dumps(entry | {"metadata": {"file": "train.py", "lineno": 1} | metadata})


BEFORE = [
    "loading the model",
    event("submission_benchmark", 1000, "gpt"),
    event("submission_platform", 1000, "8xH100"),
    "0: " + event("seed", 1000, 17),
    event("init_start", 1000),
]
RUN = [
    event("run_start", 10_000),
    event("tracked_stats", 20_000, {"throughput": 2.0}, step=1),
    event("eval_accuracy", 30_000, 0.9, samples_count=512),
    "step 2 …",
    event("tracked_stats", 40_000, {"throughput": 2.5}, step=2),
    event("eval_accuracy", 50_000, 0.93, samples_count=1024),
]
STOP = event("run_stop", 60_500, status="success", samples_count=1024)


def log(*lines):
    return "\n".join(lines) + "\n"


def test_a_log_is_one_run_and_its_score_the_time_from_start_to_stop():
    (benchmark,) = found(IMPORTER, log(*BEFORE, *RUN, STOP))
    (repeat,) = benchmark.repeats

    assert benchmark.name == "gpt"
    assert repeat.readings == {
        "time_to_train": 50.5,
        "eval_accuracy": 0.93,
        "eval_accuracy_each": [0.9, 0.93],
        "samples_count": 1024,
        "throughput": [2.0, 2.5],
    }
    assert repeat.units == {"time_to_train": "s"}
    assert repeat.failed is None
    assert repeat.diagnostics == {
        "seed": "17",
        "submission_platform": "8xH100",
        "began": 10_000,
        "status": "success",
    }


def test_lines_of_several_ranks_that_say_the_same_are_one():
    assert repeat_of(IMPORTER, log(*BEFORE, RUN[0], *RUN, STOP, STOP)).readings["time_to_train"] == 50.5


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([*BEFORE, *RUN, event("run_stop", 60_500, status="aborted")], 'run_stop says status "aborted"'),
        ([*BEFORE, *RUN, event("run_stop", 60_500)], "run_stop says status null"),
        ([*BEFORE, *RUN], "it has no run_stop"),
        (BEFORE, "it ended before run_start"),
    ],
    ids=["aborted", "no status", "killed", "killed early"],
)
def test_a_run_that_did_not_succeed_is_kept_as_failed_and_has_no_time(lines, why):
    repeat = repeat_of(IMPORTER, log(*lines))

    assert repeat.failed == why
    assert "time_to_train" not in repeat.readings
    assert repeat.unreadable["time_to_train"] == f"was never reached: {why}"


def test_the_last_line_of_a_log_that_was_cut_may_be_torn():
    assert repeat_of(IMPORTER, "\n".join([*BEFORE, *RUN, STOP[:60]])).failed == "it has no run_stop"


def test_text_that_is_not_utf8_among_the_lines_does_no_harm():
    data = log(*BEFORE, *RUN, STOP).encode() + b"\xff\xfe\n"

    assert repeat_of(IMPORTER, data).readings["time_to_train"] == 50.5


@pytest.mark.parametrize(
    ("content", "refusal"),
    [
        ('{"scaling_factor": 1.003}', "PR127: this is a scaling.json of MLPerf: it corrects a score by how fast runs converge"),
        (event("loadgen_version", 0.1, "4.0"), "PR127: the file has :::MLLOG lines, but none of a training run"),
        (":::MLPv0.5.0 resnet 1541 (a.py:1) run_start", "PR127: the log is of MLPerf 0.6 or older; :::MLLOG lines are read"),
        ("nothing", "PR127: the file has no :::MLLOG line"),
        (log(*BEFORE, ":::MLLOG {torn", *RUN, STOP), '6: PR110: a :::MLLOG line can\'t be read: "{torn"'),
        (log(*BEFORE, *RUN, STOP, event("run_start", 70_000)), "13: PR117: run_start is there twice, first in line 6: a log must be of one run"),
        (log(*RUN, event("run_stop", 9_000, status="success")), "7: PR112: run_stop is before run_start"),
        (log(*RUN, event("run_stop", "soon", status="success")), "7: PR112: time_ms of run_stop is no finite number"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(content, refusal):
    assert refused(IMPORTER, content).split("\n")[0] == refusal


def test_one_rank_that_was_aborted_is_enough():
    for statuses in (("success", "aborted"), ("aborted", "success")):
        stops = [event("run_stop", 60_500, status=status) for status in statuses]

        assert repeat_of(IMPORTER, log(*BEFORE, *RUN, *stops)).failed == 'run_stop says status "aborted"'
