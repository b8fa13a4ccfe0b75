"""One run of a client against a model server, as ``vllm bench serve`` and SGLang's bench_serving write it.

What they have of each request are samples within the run. Several runs may have met the same server, which
is what repeats; so several in one file are refused unless the experiment declares them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_prereg.evidence.importers.documents import Document, read_documents
from pytest_prereg.evidence.importers.found import FoundBenchmark, FoundRepeat
from pytest_prereg.evidence.importers.numbers import Readings, finite_number, written

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from pytest_prereg.evidence.importers.complaints import Complaints

Run = dict[str, Any]

_DECLARED_BY = ("session",)
_LARGEST = 1 << 53
_PER_REQUEST = frozenset(
    {"input_lens", "output_lens", "ttfts", "itls", "latencies", "start_times", "queue_times", "cached_tokens"}
)
_TEXTS = frozenset({"generated_texts", "errors"})
_UNITS = {
    "duration": "s",
    "elapsed_time": "s",
    "completed": "request",
    "failed": "request",
    "num_prompts": "request",
    "num_requests": "request",
    "max_concurrent_requests": "request",
    "request_throughput": "request/s",
    "request_goodput": "request/s",
    "requests_per_second": "request/s",
    "tokens_per_second": "token/s",
    "total_num_tokens": "token",
    "max_output_tokens_per_s": "token/s",
    "output_throughput": "token/s",
    "input_throughput": "token/s",
    "total_throughput": "token/s",
    "total_token_throughput": "token/s",
    "input_lens": "token",
    "output_lens": "token",
    "cached_tokens": "token",
    "ttfts": "s",
    "itls": "s",
    "latencies": "s",
    "start_times": "s",
    "queue_times": "s",
}
_SUFFIXES = {"_ms": "ms", "_tokens": "token", "_tokens_retokenized": "token", "_latency": "s"}


class ServerRun(NamedTuple):
    """One run of a file, and where that has it."""

    line: int
    at: str | None
    """Within the document of that line, if that is a list of runs."""
    said: Run

    @property
    def place(self) -> str:
        """How a message begins that is of this run of several."""
        return f"{self.at}: " if self.at else ""


def read_runs(data: bytes, complaints: Complaints) -> list[ServerRun]:
    """Return all runs of a file: one object, one after the other, or a list of them.

    Raises:
        EvidenceError: PR110: the file is no JSON, or holds what is no object.
    """
    runs = [run for document in read_documents(data, complaints) for run in _unpacked(document)]
    for run in runs:
        if not isinstance(run.said, dict):
            message = f"{run.place}a run must be an object, this is {written(run.said)}"
            complaints.add("PR110", message, line=run.line)
    complaints.raise_if_any()
    if not runs:
        complaints.fail("PR110", "the file holds no run")
    return runs


def _unpacked(document: Document) -> list[ServerRun]:
    if not isinstance(document.value, list):
        return [ServerRun(document.line, None, document.value)]
    return [ServerRun(document.line, f"[{number}]", run) for number, run in enumerate(document.value)]


def workload(run: Run, names: Sequence[str], settings: Sequence[str]) -> str:
    """Return what was run, in words: the first of ``names`` that is there, and its settings."""
    name = next((str(run[key]) for key in names if run.get(key) is not None), "run")
    told = [f"{key}={_shown(run[key])}" for key in settings if run.get(key) is not None]
    return " ".join([name, *told])


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) else written(value)


def by_workload(
    named: Iterable[tuple[str, FoundRepeat]], *, later: Collection[str] = ()
) -> list[FoundBenchmark]:
    """Return the runs by what was run, in the order of the file.

    Args:
        named: each run with the name of its workload.
        later: workloads of which an earlier run is known to have met the same server.
    """
    groups: dict[str, list[FoundRepeat]] = {}
    for name, repeat in named:
        groups.setdefault(name, []).append(repeat)
    return [
        FoundBenchmark(
            name=name,
            repeats=tuple(repeats),
            refusal=_refusal(len(repeats), is_later=name in later),
            declared_by=_DECLARED_BY,
        )
        for name, repeats in groups.items()
    ]


def _refusal(count: int, *, is_later: bool) -> str | None:
    if is_later:
        return "it is a later run of a sweep, which keeps one server for all its runs"
    return f"its {count} runs may all be of one server" if count > 1 else None


def run_of(one: ServerRun, label: str, told: Sequence[str]) -> FoundRepeat:
    """Return one run as a repeat; ``told`` are the keys that a reader should see."""
    run = one.said
    found = Readings()
    errors = _errors(run)
    lost = _lost(run, errors)
    for key, value in run.items():
        if key in _PER_REQUEST and isinstance(value, list):
            _take_requests(found, key, value, errors, lost)
        elif key not in _TEXTS:
            found.add(key, value)
    diagnostics = {key: _plain(run[key]) for key in told if run.get(key) is not None}
    diagnostics |= {key: value for key, value in run.items() if isinstance(value, str)}
    if lost:
        diagnostics["failed_requests"] = lost
        requests = "1 request" if lost == 1 else f"{lost} requests"
        diagnostics["notice"] = f"{requests} failed; what is told of requests leaves them out"
    return FoundRepeat(
        label=label,
        line=one.line,
        at=one.at,
        readings=found.readings,
        units={key: unit for key in found.readings if (unit := unit_of(key)) is not None},
        unreadable=found.unreadable,
        diagnostics=diagnostics,
        failed="no request was completed" if finite_number(run.get("completed")) == 0 else None,
        failed_by="completed",
    )


def _errors(run: Run) -> list[bool] | None:
    """Return of each request whether it failed, where the file tells."""
    errors = run.get("errors")
    return [bool(error) for error in errors] if isinstance(errors, list) else None


def _lost(run: Run, errors: list[bool] | None) -> int:
    """Return how many requests failed, by whatever the file has on it."""
    failed = finite_number(run.get("failed"))
    if failed is None and errors is not None:
        failed = sum(errors)
    if failed is None:
        asked, completed = finite_number(run.get("num_prompts")), finite_number(run.get("completed"))
        failed = 0.0 if asked is None or completed is None else asked - completed
    return int(min(max(failed, 0.0), _LARGEST))


def _take_requests(
    found: Readings, key: str, values: list[Any], errors: list[bool] | None, lost: int
) -> None:
    """Take a reading of each request that was completed, as the tool does in its own summaries."""
    if lost:
        if errors is None or len(errors) != len(values) or sum(errors) != lost:
            found.unreadable[key] = f"has the requests that failed ({lost}) among the others, and not which"
            return
        values = [value for value, is_lost in zip(values, errors, strict=True) if not is_lost]
    found.add(key, [each for value in values for each in (value if isinstance(value, list) else [value])])


def unit_of(key: str) -> str | None:
    """Return the unit that a key implies, or ``None``."""
    if key in _UNITS:
        return _UNITS[key]
    return next((unit for suffix, unit in _SUFFIXES.items() if key.endswith(suffix)), None)


def _plain(value: Any) -> Any:
    """Return what a session file can keep: a small number or text."""
    number = finite_number(value) if not isinstance(value, str) else None
    return value if number is not None and abs(number) < _LARGEST else written(value)
