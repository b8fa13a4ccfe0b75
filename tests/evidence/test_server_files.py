"""``vllm bench`` and SGLang: a run is one repeat, of a server of its own; requests are samples within it."""

from __future__ import annotations

import json

import pytest
from found_files import found, refused, repeat_of

from pytest_prereg.evidence.importers.sglang import IMPORTER as SGLANG
from pytest_prereg.evidence.importers.vllm_bench import IMPORTER as VLLM

SERVE = {
    "date": "20260101-120000",
    "backend": "openai",
    "label": None,
    "model_id": "org/model",
    "tokenizer_id": "org/model",
    "num_prompts": 3,
    "gpu": "H100",
    "request_rate": "inf",
    "burstiness": 1.0,
    "max_concurrency": 32,
    "duration": 2.5,
    "completed": 3,
    "failed": 0,
    "total_input_tokens": 300,
    "total_output_tokens": 90,
    "request_throughput": 1.2,
    "request_goodput": None,
    "output_throughput": 36.0,
    "total_token_throughput": 156.0,
    "mean_ttft_ms": 20.0,
    "p99_e2el_ms": 250.0,
}
DETAILS = {
    "input_lens": [100, 100, 100],
    "output_lens": [30, 30, 30],
    "ttfts": [0.01, 0.02, 0.03],
    "itls": [[0.1, 0.2], [], [0.3]],
    "generated_texts": ["a", "b", "c"],
    "errors": ["", "", ""],
}
OLD_SERVE = {key: SERVE[key] for key in SERVE if key not in {"failed", "burstiness", "max_concurrency"}} | {
    "best_of": 1,
    "request_rate": 16.0,
}
THROUGHPUT = {
    "elapsed_time": 10.0,
    "num_requests": 100,
    "total_num_tokens": 5000,
    "requests_per_second": 10.0,
    "tokens_per_second": 500.0,
}
LATENCY = {"avg_latency": 1.5, "latencies": [1.0, 2.0], "percentiles": {"10": 1.1, "99": 1.99}}
SGL = {
    "backend": "sglang",
    "dataset_name": "random",
    "request_rate": float("inf"),
    "max_concurrency": None,
    "random_input_len": 1024,
    "duration": 2.5,
    "completed": 2,
    "total_output_tokens_retokenized": 61,
    "request_throughput": 0.8,
    "output_throughput": 24.0,
    "mean_e2e_latency_ms": 900.0,
    "p95_itl_ms": 8.0,
    "accept_length": None,
    "server_info": {"version": "0.5"},
}


def lines(*runs):
    return "\n".join(json.dumps(run) for run in runs)


class TestOneRun:
    def test_is_one_repeat_however_many_requests(self):
        repeat = repeat_of(VLLM, SERVE | DETAILS)

        assert repeat.readings["output_throughput"] == 36.0
        assert repeat.readings["ttfts"] == [0.01, 0.02, 0.03]
        assert repeat.readings["itls"] == [0.1, 0.2, 0.3]

    def test_units_follow_from_the_keys(self):
        units = repeat_of(VLLM, SERVE | DETAILS).units

        assert [units[key] for key in ("mean_ttft_ms", "output_throughput", "request_throughput")] == [
            "ms",
            "token/s",
            "request/s",
        ]
        assert [units[key] for key in ("duration", "ttfts", "total_output_tokens", "completed")] == [
            "s",
            "s",
            "token",
            "request",
        ]

    def test_what_is_no_number_is_said_and_what_was_run_is_kept(self):
        repeat = repeat_of(VLLM, SERVE)

        assert repeat.unreadable["request_rate"] == 'is "inf", no finite number'
        assert repeat.unreadable["request_goodput"] == "is null, no finite number"
        assert repeat.diagnostics["request_rate"] == "inf"
        assert repeat.diagnostics["gpu"] == "H100"

    def test_texts_of_requests_are_left_in_the_file(self):
        repeat = repeat_of(VLLM, SERVE | DETAILS)

        assert "generated_texts" not in repeat.diagnostics
        assert "generated_texts" not in repeat.unreadable

    def test_goes_by_what_was_run(self):
        assert found(VLLM, SERVE)[0].name == "org/model request_rate=inf max_concurrency=32 num_prompts=3"
        assert found(VLLM, OLD_SERVE)[0].name == "org/model request_rate=16 num_prompts=3"
        assert found(SGLANG, SGL)[0].name == (
            "sglang dataset_name=random request_rate=inf random_input_len=1024"
        )

    def test_of_an_older_version_lacks_what_failed(self):
        repeat = repeat_of(VLLM, OLD_SERVE)

        assert repeat.readings["best_of"] == 1
        assert "notice" not in repeat.diagnostics

    def test_of_throughput_is_read(self):
        repeat = repeat_of(VLLM, THROUGHPUT)

        assert repeat.readings == THROUGHPUT
        assert repeat.units["tokens_per_second"] == "token/s"

    def test_of_latency_is_read_with_its_percentiles(self):
        (benchmark,) = found(VLLM, LATENCY)
        (repeat,) = benchmark.repeats

        assert benchmark.name == "latency"
        assert repeat.readings["latencies"] == [1.0, 2.0]
        assert repeat.readings["p99_latency"] == 1.99
        assert repeat.units["p99_latency"] == "s"

    def test_of_sglang_has_names_of_its_own(self):
        repeat = repeat_of(SGLANG, SGL)

        assert repeat.readings["mean_e2e_latency_ms"] == 900.0
        assert repeat.units["mean_e2e_latency_ms"] == "ms"
        assert repeat.units["total_output_tokens_retokenized"] == "token"
        assert repeat.unreadable["request_rate"] == "is Infinity, no finite number"
        assert repeat.unreadable["accept_length"] == "is null, no finite number"


class TestRequestsThatFailed:
    def test_are_counted_and_left_out_of_what_is_told_of_requests(self):
        repeat = repeat_of(VLLM, SERVE | DETAILS | {"failed": 1, "completed": 2, "errors": ["", "reset", ""]})

        assert repeat.readings["ttfts"] == [0.01, 0.03]
        assert repeat.diagnostics["failed_requests"] == 1
        assert repeat.diagnostics["notice"].startswith("1 request failed")
        assert repeat.failed is None

    def test_are_told_by_what_was_asked_for_where_no_count_is_kept(self):
        assert repeat_of(VLLM, OLD_SERVE | {"completed": 1}).diagnostics["failed_requests"] == 2

    def test_are_told_by_their_errors_with_sglang(self):
        details = {"ttfts": [0.1, 0.0, 0.3], "errors": ["", "timed out", ""]}
        repeat = repeat_of(SGLANG, SGL | details)

        assert repeat.diagnostics["failed_requests"] == 1
        assert repeat.readings["ttfts"] == [0.1, 0.3]

    @pytest.mark.parametrize("errors", [None, [""], ["", "", ""], ["x", "y", ""]])
    def test_make_readings_of_requests_useless_where_nothing_tells_which(self, errors):
        repeat = repeat_of(VLLM, SERVE | DETAILS | {"failed": 1, "completed": 2, "errors": errors})

        assert (
            repeat.unreadable["ttfts"] == "has the requests that failed (1) among the others, and not which"
        )
        assert repeat.readings["mean_ttft_ms"] == 20.0

    def test_are_as_many_as_a_session_file_can_keep(self):
        assert repeat_of(VLLM, SERVE | {"failed": 1e300}).diagnostics["failed_requests"] == 1 << 53

    @pytest.mark.parametrize(("importer", "run"), [(VLLM, SERVE), (SGLANG, SGL)])
    def test_all_of_them_are_a_run_that_failed(self, importer, run):
        assert repeat_of(importer, run | {"completed": 0}).failed == "no request was completed"


class TestSeveralRunsOfOneFile:
    @pytest.mark.parametrize(("importer", "run"), [(VLLM, SERVE), (SGLANG, SGL)])
    def test_are_not_known_to_be_of_several_servers(self, importer, run):
        (benchmark,) = found(importer, lines(run, run | {"duration": 2.6}))

        assert len(benchmark.repeats) == 2
        assert benchmark.refusal == "its 2 runs may all be of one server"
        assert benchmark.declared_by == ("session",)
        assert [one.line for one in benchmark.repeats] == [1, 2]

    def test_are_told_apart_by_what_was_run(self):
        slow, fast = found(VLLM, lines(SERVE | {"request_rate": 1.0}, SERVE))

        assert (slow.refusal, fast.refusal) == (None, None)
        assert "request_rate=1 " in slow.name

    def test_of_a_sweep_are_of_one_server(self):
        (benchmark,) = found(VLLM, [SERVE | {"run_number": 0}, SERVE | {"run_number": 1}])

        assert "keeps one server" in benchmark.refusal

    def test_that_are_files_of_their_own_are_of_one_server_all_the_same(self):
        assert found(VLLM, SERVE | {"run_number": 0})[0].refusal is None
        assert "keeps one server" in found(VLLM, SERVE | {"run_number": 1})[0].refusal

    def test_without_a_server_are_processes_of_their_own(self):
        (benchmark,) = found(VLLM, lines(THROUGHPUT, THROUGHPUT | {"elapsed_time": 11.0}))

        assert len(benchmark.repeats) == 2
        assert benchmark.refusal is None


class TestWhatIsNoRun:
    @pytest.mark.parametrize(
        ("importer", "content", "refusal"),
        [
            (VLLM, [{"benchmark": {}, "metric": {}}], "1: PR127: [0]: this is the copy of a result in PyTorch's own format, without the requests"),
            (VLLM, {"a": 1}, '1: PR127: this is no result of vllm bench: it has the keys "a"'),
            (VLLM, SERVE | {"run_number": -1}, "1: PR127: this is the warm-up of a sweep, no run"),
            (VLLM, lines(SERVE, 3), "2: PR110: a run must be an object, this is 3"),
            (VLLM, lines(SERVE) + "\n{", "2: PR110: the file is not JSON: Expecting property name enclosed in double quotes"),
            (VLLM, [], "PR110: the file holds no run"),
            (SGLANG, lines(SGL, {}), "2: PR127: this is no result of SGLang's bench_serving: it has no keys"),
        ],
    )  # fmt: skip
    def test_is_refused_in_a_sentence(self, importer, content, refusal):
        assert refused(importer, content).split("\n")[0] == refusal

    def test_neither_tool_takes_what_the_other_wrote(self):
        about_the_server = {"server_info": {"model_id": "org/model", "elapsed_time": 1, "num_requests": 2}}
        assert not VLLM.recognises("r.json", json.dumps(SGL | about_the_server).encode())
        assert not SGLANG.recognises("r.jsonl", json.dumps(SERVE).encode())
