"""nvbench: one process a file; each state is a benchmark, numbers are text."""

from __future__ import annotations

import copy

import pytest
from found_files import found, refused, repeat_of

from pytest_prereg.evidence.importers.nvbench import IMPORTER


def summary(tag, value, hint=None, kind="float64"):
    data = [{"name": "value", "type": kind, "value": value}]
    return {"tag": tag, "name": tag, "data": data} | ({"hint": hint} if hint else {})


SUMMARIES = [
    summary("nv/cold/sample_size", "512", "sample_size", "int64"),
    summary("nv/cold/time/gpu/mean", "1.25e-05", "duration"),
    summary("nv/cold/time/gpu/stdev/relative", "inf", "percentage"),
    summary("nv/cold/bw/global/bytes_per_second", "2e12", "byte_rate"),
    {
        "tag": "nv/json/bin:nv/cold/sample_times",
        "hint": "file/sample_times",
        "data": [{"name": "filename", "type": "string", "value": "out.json-bin/0.bin"}],
    },
]


def state(size, summaries=SUMMARIES, device=0, **more):
    axis = {"name": "Size", "type": "int64", "value": str(size)}
    name = f"Device={device} Size={size}"
    return {
        "name": name,
        "device": device,
        "axis_values": [axis],
        "summaries": summaries,
        "is_skipped": False,
    } | more


def output(*states, devices=(0,), major=1):
    return {
        "meta": {"argv": [], "version": {"json": {"major": major}, "nvbench": {"git_version": "abc123"}}},
        "devices": [{"id": number, "name": f"GPU {number}"} for number in devices],
        "benchmarks": [
            {"name": "copy", "index": 0, "devices": list(devices), "axes": None, "states": list(states)}
        ],
    }


def test_a_state_is_one_repeat_of_a_process():
    repeat = repeat_of(IMPORTER, output(state(256)))

    assert repeat.readings["cold_time_gpu_mean"] == repeat.readings["nv/cold/time/gpu/mean"] == 1.25e-05
    assert repeat.readings["cold_sample_size"] == 512
    assert repeat.units["cold_time_gpu_mean"] == "s"
    assert repeat.units["cold_bw_global_bytes_per_second"] == "byte/s"
    assert repeat.diagnostics == {"device": "GPU 0", "nvbench": "abc123"}


def test_what_is_no_number_and_what_is_kept_elsewhere_is_said():
    repeat = repeat_of(IMPORTER, output(state(256)))

    assert repeat.unreadable["cold_time_gpu_stdev_relative"] == 'is "inf", no finite number'
    assert repeat.unreadable["cold_sample_times"] == (
        'is in a file of its own, "out.json-bin/0.bin", which is not read'
    )
    assert "cold_time_gpu_stdev_relative" not in repeat.readings


def test_states_are_told_apart_by_their_axes_and_as_nvbench_shows_them():
    first, second = found(IMPORTER, output(state(256), state(512)))

    assert (first.name, second.name) == ("copy[Size=256]", "copy[Size=512]")
    assert "copy [Device=0 Size=256]" in first.aliases


def test_of_several_devices_the_name_says_which():
    assert [
        one.name for one in found(IMPORTER, output(state(256), state(256, device=1), devices=(0, 1)))
    ] == [
        "copy[Device=0,Size=256]",
        "copy[Device=1,Size=256]",
    ]


def test_a_benchmark_without_axes_goes_by_its_name():
    assert found(IMPORTER, output(state(1) | {"axis_values": None}))[0].name == "copy"


def test_a_skipped_state_is_no_repeat_and_says_why():
    (benchmark,) = found(IMPORTER, output(state(256, None, is_skipped=True, skip_reason="too large")))

    assert (benchmark.repeats, benchmark.refusal) == ((), "it was skipped: too large")


def test_a_state_that_threw_has_failed():
    reason = "Unexpected error: out of memory"
    (benchmark,) = found(IMPORTER, output(state(256, None, is_skipped=True, skip_reason=reason)))

    assert benchmark.refusal is None
    assert benchmark.repeats[0].failed == reason


@pytest.mark.parametrize(
    ("content", "refusal"),
    [
        (output(state(1), major=2), "PR127: version 2 of nvbench's JSON is unknown; version 1 is read"),
        ({"benchmarks": []}, "PR127: the file says no version of nvbench's JSON"),
        (output(), "PR110: the file names benchmarks and no state of one that was run"),
        ([1], "PR127: this is no JSON output of nvbench: it has no benchmarks"),
        (output(state(1, [1])), "PR110: benchmarks[0].states[0].summaries[0] is 1, and no object"),
        (output(state(1, 3)), "PR110: benchmarks[0].states[0].summaries is 3, and no list of objects"),
    ],
)
def test_what_is_wrong_is_told(content, refusal):
    assert refused(IMPORTER, content).split("\n")[0] == refusal


def test_numbers_of_the_oldest_version_are_not_guessed_at():
    old = copy.deepcopy(output(state(1)))
    del old["meta"]
    old["benchmarks"][0]["states"][0]["summaries"] = {"Cold GPU": {"values": []}}

    assert "says no version" in refused(IMPORTER, old)


def test_a_name_that_two_summaries_share_is_none():
    clash = [
        summary("nv/cold/time/gpu/mean", "1", "duration"),
        summary("nv/cold/time/gpu_mean", "2", "duration"),
    ]

    repeat = repeat_of(IMPORTER, output(state(256, clash)))

    assert repeat.unreadable["cold_time_gpu_mean"] == "is what several summaries of the file are called"
    assert repeat.readings["nv/cold/time/gpu_mean"] == 2.0


def test_a_summary_of_several_values_has_none():
    twice = summary("nv/cold/time/gpu/mean", "1", "duration")
    twice["data"] = twice["data"] * 2

    assert "cold_time_gpu_mean" not in repeat_of(IMPORTER, output(state(256, [twice]))).readings
