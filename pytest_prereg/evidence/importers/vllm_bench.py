"""``vllm bench serve``, ``throughput`` and ``latency``: one run of a server, or of an engine, is one repeat.

``--append-result`` writes run after run into one ``.json`` file; ``vllm bench sweep serve`` keeps one server
for all runs, and its summary is a list of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_prereg.evidence.importers.found import FoundBenchmark, FoundRepeat
from pytest_prereg.evidence.importers.numbers import finite_number
from pytest_prereg.evidence.importers.serving import by_workload, read_runs, run_of, workload
from pytest_prereg.registry.refusals import listed

if TYPE_CHECKING:
    from pytest_prereg.evidence.importers.complaints import Complaints
    from pytest_prereg.evidence.importers.serving import Run, ServerRun

_KINDS = {
    "serve": ("request_throughput", "duration"),
    "throughput": ("elapsed_time", "num_requests"),
    "latency": ("avg_latency", "percentiles"),
}
"""The keys that tell what a run is of."""
_SERVES = (b'"model_id"', b'"tokenizer_id"', b'"total_token_throughput"')
_OF_SGLANG = b"_e2e_latency_ms"
_SETTINGS = ("request_rate", "max_concurrency", "num_prompts")
_TOLD = (*_SETTINGS, "duration", "burstiness", "best_of", "run_number")
_PYTORCH = frozenset({"benchmark", "metric"})


class _VllmBench:
    name = "vllm-bench"
    repeat = "a run against a server of its own"

    def recognises(self, name: str, data: bytes) -> bool:
        del name
        kinds = [kind for kind, keys in _KINDS.items() if all(f'"{key}"'.encode() in data for key in keys)]
        if _OF_SGLANG in data:
            return False
        return bool(kinds) and (kinds != ["serve"] or any(mark in data for mark in _SERVES))

    def read(self, data: bytes, complaints: Complaints) -> list[FoundBenchmark]:
        runs = read_runs(data, complaints)
        for run in runs:
            _check(run, complaints)
        complaints.raise_if_any()
        told = [(_name(run.said), _repeat(run, number)) for number, run in enumerate(runs, 1)]
        served = [one for one, run in zip(told, runs, strict=True) if _kind(run.said) == "serve"]
        later = {_name(run.said) for run in runs if _run_number(run.said) > 0}
        alone = {
            name: [each for other, each in told if other == name] for name, one in told if name in _KINDS
        }
        return by_workload(served, later=later) + [
            FoundBenchmark(name=name, repeats=tuple(repeats)) for name, repeats in alone.items()
        ]


IMPORTER = _VllmBench()


def _kind(run: Run) -> str | None:
    return next((kind for kind, keys in _KINDS.items() if all(key in run for key in keys)), None)


def _check(run: ServerRun, complaints: Complaints) -> None:
    if run.said.keys() >= _PYTORCH:
        message = f"{run.place}this is the copy of a result in PyTorch's own format, without the requests"
        complaints.fail("PR127", message, line=run.line, advice="Import the .json file beside it.")
    if _kind(run.said) is None:
        what = f"the keys {listed(sorted(run.said))}" if run.said else "no keys"
        message = f"{run.place}this is no result of vllm bench: it has {what}"
        complaints.add("PR127", message, line=run.line)
    if _run_number(run.said) < 0:
        complaints.add("PR127", f"{run.place}this is the warm-up of a sweep, no run", line=run.line)


def _run_number(run: Run) -> float:
    """Return which run of a sweep it is, from 0; what is of no sweep has no number."""
    return finite_number(run.get("run_number")) or 0.0


def _name(run: Run) -> str:
    kind = _kind(run)
    return workload(run, ("model_id",), _SETTINGS) if kind == "serve" else str(kind)


def _repeat(run: ServerRun, number: int) -> FoundRepeat:
    percentiles = run.said.get("percentiles")
    if isinstance(percentiles, dict):
        others = {key: value for key, value in run.said.items() if key != "percentiles"}
        run = run._replace(said=others | _named(percentiles))
    return run_of(run, f"run {number}", _TOLD)


def _named(percentiles: dict[str, Any]) -> dict[str, Any]:
    return {f"p{percentile}_latency": value for percentile, value in percentiles.items()}
