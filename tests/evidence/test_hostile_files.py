"""Whatever is in a file, an importer refuses it or reads it: nothing else is raised, and nothing is not finite."""

from __future__ import annotations

import gzip
import json
import math
import os

import msgspec
import pytest
from found_files import as_bytes, read
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_criterion_files import ESTIMATES, LINEAR, OLD, RAW
from test_google_benchmark_files import aggregate, row
from test_google_benchmark_files import output as google_output
from test_hyperfine_files import command, results
from test_mlperf_files import BEFORE, RUN, STOP, log
from test_nvbench_files import output, state
from test_pyperf_files import SUITE
from test_pytest_benchmark_files import ROUNDS
from test_server_files import DETAILS, LATENCY, SERVE, SGL, lines

from pytest_prereg.errors import EvidenceError
from pytest_prereg.evidence.importers.criterion import IMPORTER as CRITERION
from pytest_prereg.evidence.importers.google_benchmark import IMPORTER as GOOGLE
from pytest_prereg.evidence.importers.hyperfine import IMPORTER as HYPERFINE
from pytest_prereg.evidence.importers.mlperf import IMPORTER as MLPERF
from pytest_prereg.evidence.importers.nvbench import IMPORTER as NVBENCH
from pytest_prereg.evidence.importers.pyperf import IMPORTER as PYPERF
from pytest_prereg.evidence.importers.pytest_benchmark import IMPORTER as PYTEST_BENCHMARK
from pytest_prereg.evidence.importers.results import read_result
from pytest_prereg.evidence.importers.sglang import IMPORTER as SGLANG
from pytest_prereg.evidence.importers.vllm_bench import IMPORTER as VLLM

STORM = os.environ.get("PREREG_STORM") == "full"
FEW = settings(max_examples=1000 if STORM else 60, deadline=None, suppress_health_check=list(HealthCheck))

WHOLE = [
    (CRITERION, LINEAR),
    (CRITERION, OLD),
    (CRITERION, ESTIMATES),
    (CRITERION, RAW),
    (NVBENCH, output(state(256), state(512, None, is_skipped=True))),
    (VLLM, lines(SERVE | DETAILS, SERVE)),
    (VLLM, LATENCY),
    (SGLANG, lines(SGL, SGL | DETAILS)),
    (MLPERF, log(*BEFORE, *RUN, STOP)),
    (PYTEST_BENCHMARK, ROUNDS),
    (PYPERF, SUITE),
    (
        HYPERFINE,
        results(command(memory_usage_byte=[1, 2, 3], exit_codes=[0, 3, None], parameters={"n": "1"})),
    ),
    (
        GOOGLE,
        google_output(
            row(), row(error_occurred=True, error_message="boom"), row(skipped=True), aggregate("cv")
        ),
    ),
]
IMPORTERS = list(dict.fromkeys(importer for importer, _ in WHOLE))
OTHER = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([10**400, -1, 0, 1e308, 5e-324, math.inf, math.nan, "inf", "1e999", "", "\x00", [], {}]),
    st.floats(),
    st.lists(st.none() | st.integers() | st.text(max_size=3), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


def try_to_read(importer, data):
    importer.recognises("results.json", data)
    try:
        benchmarks = read(importer, data)
    except EvidenceError as error:
        str(error)
        return
    for repeat in (repeat for benchmark in benchmarks for repeat in benchmark.repeats):
        for value in repeat.readings.values():
            assert all(map(math.isfinite, value if isinstance(value, list) else [value]))
        assert not repeat.readings.keys() & repeat.unreadable.keys()
        msgspec.json.encode(repeat.diagnostics)


def places(value):
    """Every place in a document: how to reach it."""
    yield ()
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, child in children:
        yield from ((key, *rest) for rest in places(child))


def replaced(value, place, other):
    if not place:
        return other
    key, *rest = place
    changed = dict(value) if isinstance(value, dict) else list(value)
    changed[key] = replaced(value[key], rest, other)
    return changed


@pytest.mark.parametrize("importer", IMPORTERS, ids=lambda importer: importer.name)
@FEW
@given(data=st.binary(max_size=200))
def test_any_bytes(importer, data):
    try_to_read(importer, data)
    try_to_read(importer, gzip.compress(data))


@pytest.mark.parametrize(("importer", "content"), WHOLE)
@FEW
@given(draw=st.data())
def test_a_file_of_its_own_with_bytes_changed_or_cut(importer, content, draw):
    data = bytearray(as_bytes(content))
    start = draw.draw(st.integers(0, len(data)))
    data[start : start + draw.draw(st.integers(0, 40))] = draw.draw(st.binary(max_size=10))

    try_to_read(importer, bytes(data))


@pytest.mark.parametrize(
    ("importer", "content"), [(importer, content) for importer, content in WHOLE if not isinstance(content, str)]
)  # fmt: skip
@FEW
@given(draw=st.data())
def test_a_file_of_its_own_with_something_else_in_one_place(importer, content, draw):
    place = draw.draw(st.sampled_from(list(places(content))))

    try_to_read(importer, json.dumps(replaced(content, place, draw.draw(OTHER))).encode())


@pytest.mark.parametrize(("importer", "run"), [(VLLM, SERVE | DETAILS), (SGLANG, SGL | DETAILS)])
@FEW
@given(draw=st.data())
def test_a_run_with_something_else_in_one_place(importer, run, draw):
    place = draw.draw(st.sampled_from(list(places(run))))

    try_to_read(importer, json.dumps(replaced(run, place, draw.draw(OTHER))).encode())


@FEW
@given(
    key=st.sampled_from(["run_start", "run_stop", "seed", "tracked_stats", "eval_accuracy"]),
    said=OTHER,
    when=OTHER,
    about=OTHER,
)
def test_an_event_of_mlperf_that_says_something_else(key, said, when, about):
    entry = {"key": key, "time_ms": when, "value": said, "metadata": about}

    try_to_read(MLPERF, log(*BEFORE, *RUN, ":::MLLOG " + json.dumps(entry), STOP).encode())
    try_to_read(MLPERF, log(*BEFORE, ":::MLLOG " + json.dumps(entry)).encode())


@pytest.mark.parametrize("importer", IMPORTERS, ids=lambda importer: importer.name)
def test_what_is_nested_without_end(importer):
    try_to_read(importer, b"[" * 100_000)
    try_to_read(importer, b':::MLLOG {"key": "run_start", "value": ' + b"[" * 100_000)
    try_to_read(importer, b'{"mean": ' * 100_000)
    try_to_read(importer, b'{"benchmarks": ' + b"[" * 100_000)


@pytest.mark.parametrize("importer", IMPORTERS, ids=lambda importer: importer.name)
def test_half_a_character(importer):
    try_to_read(importer, b'{"benchmarks": [{"name": "\\ud800"}], "results": [{"command": "\\udfff"}]}')


@pytest.mark.parametrize("form", ["json", "csv"])
@FEW
@given(data=st.binary(max_size=200) | st.text(max_size=100).map(str.encode))
def test_any_result_of_a_command(tmp_path_factory, form, data):
    path = tmp_path_factory.getbasetemp() / "result"
    path.write_bytes(data)
    try:
        read_result(path, form, {"t": ("0.t", "s"), "a": ("a", "1")})
    except EvidenceError as error:
        str(error)
