"""What is wrong in a JSON file of a tool is told with its place in the document, in the same way of every tool."""

from __future__ import annotations

import pytest
from evidence_samples import experiment
from found_files import as_bytes
from msgspec.structs import replace
from test_google_benchmark_files import output as google_output
from test_google_benchmark_files import row
from test_hyperfine_files import command, results
from test_nvbench_files import output as nvbench_output
from test_nvbench_files import state, summary
from test_pyperf_files import SUITE
from test_pytest_benchmark_files import ROUNDS
from test_server_files import SERVE, SGL

from pytest_prereg.errors import EvidenceError
from pytest_prereg.evidence.importers.taking import take_file
from pytest_prereg.registry.tables import ExperimentTable

STATES = [state(size, [summary("nv/cold/mean", value)]) for size, value in ((1, "1.0"), (2, "inf"))]
TESTS = [{"name": name, "stats": {"mean": mean}} for name, mean in (("a", 1.0), ("b", None))]
RUNS = [{"values": [1.0]}, {"metadata": {}}, {"values": [None]}]


@pytest.mark.parametrize(
    ("content", "reading", "select", "place"),
    [
        (ROUNDS | {"benchmarks": TESTS}, "mean", "b", 'b at benchmarks[1]: "mean" is null'),
        (SUITE | {"benchmarks": [{"runs": RUNS}]}, "values", None, "process 2 at benchmarks[0].runs[2]: "),
        (results(command("a"), command("b") | {"times": [1.0, None, 3.0]}), "times", "b", "run 2 at results[1].times[1]: "),
        (google_output(row("a"), row("b", None)), "real_time", "b", "repetition 1 at benchmarks[1]: "),
        (nvbench_output(*STATES), "cold_mean", "2", "the process at benchmarks[0].states[1]: "),
        ([SERVE, SERVE | {"duration": None}], "duration", None, "1: PR112: run 2 at [1]: "),
        ([SGL, SGL | {"duration": None}], "duration", None, "1: PR112: run 2 at [1]: "),
        ({"iters": [1, 2], "times": [1.0, None], "sampling_mode": "Flat"}, "time", None, "times has null as its entry 2"),
    ],
)  # fmt: skip
def test_a_reading_that_is_none(tmp_path, content, reading, select, place):
    (tmp_path / "a.json").write_bytes(as_bytes(content))
    gate = replace(experiment(metrics={reading: "x"}), table=ExperimentTable(unit="session"))

    with pytest.raises(EvidenceError) as caught:
        take_file(tmp_path / "a.json", gate, select=select)

    assert place in str(caught.value)
