"""Whatever stands in a file of these four tools, it is read or refused: nothing else is raised."""

from __future__ import annotations

import gzip
import json

import pytest
from found_files import as_bytes
from hypothesis import given
from hypothesis import strategies as st
from test_google_benchmark_files import aggregate, output, row
from test_hostile_files import FEW, OTHER, places, replaced, try_to_read
from test_hyperfine_files import command, results
from test_pyperf_files import SUITE
from test_pytest_benchmark_files import ROUNDS

from pytest_prereg.errors import EvidenceError
from pytest_prereg.evidence.importers.google_benchmark import IMPORTER as GOOGLE
from pytest_prereg.evidence.importers.hyperfine import IMPORTER as HYPERFINE
from pytest_prereg.evidence.importers.pyperf import IMPORTER as PYPERF
from pytest_prereg.evidence.importers.pytest_benchmark import IMPORTER as PYTEST_BENCHMARK
from pytest_prereg.evidence.importers.results import read_result

WHOLE = [
    (PYTEST_BENCHMARK, ROUNDS),
    (PYPERF, SUITE),
    (
        HYPERFINE,
        results(command(memory_usage_byte=[1, 2, 3], exit_codes=[0, 3, None], parameters={"n": "1"})),
    ),
    (
        GOOGLE,
        output(row(), row(error_occurred=True, error_message="boom"), row(skipped=True), aggregate("cv")),
    ),
]
each = pytest.mark.parametrize(("importer", "content"), WHOLE, ids=[importer.name for importer, _ in WHOLE])


@each
@FEW
@given(data=st.binary(max_size=200))
def test_any_bytes_at_all(importer, content, data):
    del content
    try_to_read(importer, data)
    try_to_read(importer, gzip.compress(data))


@each
@FEW
@given(draw=st.data())
def test_a_file_whose_bytes_are_changed_or_cut(importer, content, draw):
    data = bytearray(as_bytes(content))
    start = draw.draw(st.integers(0, len(data)))
    data[start : start + draw.draw(st.integers(0, 40))] = draw.draw(st.binary(max_size=10))

    try_to_read(importer, bytes(data))


@each
@FEW
@given(draw=st.data())
def test_a_file_with_something_else_in_one_place(importer, content, draw):
    place = draw.draw(st.sampled_from(list(places(content))))

    try_to_read(importer, json.dumps(replaced(content, place, draw.draw(OTHER))).encode())


@each
def test_half_a_character_and_nesting_without_end(importer, content):
    del content
    try_to_read(importer, b'{"benchmarks": [{"name": "\\ud800"}], "results": [{"command": "\\udfff"}]}')
    try_to_read(importer, b'{"benchmarks": ' + b"[" * 100_000)


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
