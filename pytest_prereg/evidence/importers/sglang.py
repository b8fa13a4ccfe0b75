"""SGLang's ``bench_serving``: JSON lines, each of which is one run against a server.

It writes ``e2e_latency`` where vLLM has ``e2el``, ``Infinity`` for a rate without limit, and not how many
requests were asked for: which of them failed only ``--output-details`` tells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.evidence.importers.serving import by_workload, read_runs, run_of, workload
from pytest_prereg.registry.refusals import listed

if TYPE_CHECKING:
    from pytest_prereg.evidence.importers.complaints import Complaints
    from pytest_prereg.evidence.importers.found import FoundBenchmark

_MARKS = ("mean_e2e_latency_ms", "median_e2e_latency_ms")
_SETTINGS = (
    "dataset_name",
    "request_rate",
    "max_concurrency",
    "random_input_len",
    "random_output_len",
    "sharegpt_output_len",
)
_TOLD = (*_SETTINGS, "random_range_ratio")


class _SGLang:
    name = "sglang"
    repeat = "a run against a server of its own"

    def recognises(self, name: str, data: bytes) -> bool:
        del name
        return b'"completed"' in data and any(f'"{mark}"'.encode() in data for mark in _MARKS)

    def read(self, data: bytes, complaints: Complaints) -> list[FoundBenchmark]:
        runs = read_runs(data, complaints)
        for run in runs:
            if not any(mark in run.said for mark in _MARKS):
                what = f"the keys {listed(sorted(run.said))}" if run.said else "no keys"
                message = f"{run.place}this is no result of SGLang's bench_serving: it has {what}"
                complaints.add("PR127", message, line=run.line)
        complaints.raise_if_any()
        return by_workload(
            (workload(run.said, ("backend",), _SETTINGS), run_of(run, f"run {number}", _TOLD))
            for number, run in enumerate(runs, 1)
        )


IMPORTER = _SGLang()
