"""Logs and results of servers as evidence: what counts, what failed, and what is no repeat."""

from __future__ import annotations

import json

import pytest
from evidence_samples import experiment, study
from msgspec.structs import replace
from test_mlperf_files import event, log
from test_server_files import SERVE, lines

from pytest_prereg.errors import EvidenceError
from pytest_prereg.evidence.importing import import_files
from pytest_prereg.evidence.model import Outcome
from pytest_prereg.evidence.series import assemble
from pytest_prereg.evidence.sessions import read_session
from pytest_prereg.report.commands import imported_lines

REGISTERED = {"free": "sha256:f4ee"}


@pytest.fixture
def take(tmp_path, monkeypatch):
    """Imports files by name and content into an experiment."""
    monkeypatch.chdir(tmp_path)

    def take(files, gate):
        for name, content in files.items():
            (tmp_path / name).write_text(content)
        paths = [tmp_path / name for name in files]
        return read_session(import_files(study(tmp_path, gate), gate, paths, predictions=REGISTERED))

    return take


@pytest.fixture
def refused(take):
    def refused(files, gate):
        with pytest.raises(EvidenceError) as caught:
            take(files, gate)
        return [str(problem).splitlines()[0] for problem in caught.value.problems]

    return refused


def run(seed, stop=70_000, status="success"):
    start = [event("submission_benchmark", 0, "gpt"), event("seed", 0, seed), event("run_start", 10_000)]
    return log(*start, event("eval_accuracy", stop - 1, 0.9), event("run_stop", stop, status=status))


TRAINING = experiment({"": 3}, metrics={"time_to_train": "s"})
SERVING = experiment({"": 2}, metrics={"output_throughput": "token/s"})


def test_a_run_that_was_aborted_is_kept_as_one_that_failed(take):
    file = take({"0.txt": run(1), "1.txt": run(2, 80_000, "aborted"), "2.txt": run(3, 90_000)}, TRAINING)

    assert [(one.outcome, one.values) for one in file.attempts] == [
        (Outcome.OK, {"time_to_train": 60.0}),
        (Outcome.TASK_FAILED, {}),
        (Outcome.OK, {"time_to_train": 80.0}),
    ]


def test_runs_of_one_seed_are_refused(refused):
    assert refused({"0.txt": run(1), "1.txt": run(2, 80_000), "2.txt": run(1, 90_000)}, TRAINING) == [
        "2.txt:3: PR117: the run has seed 1, as one of 0.txt has"
    ]


def test_runs_of_two_benchmarks_are_refused(refused):
    (problem,) = refused({"0.txt": run(1), "1.txt": run(2, 80_000).replace("gpt", "bert")}, TRAINING)

    assert "PR126" in problem


def test_runs_appended_to_one_file_count_only_where_that_was_declared(take, refused):
    appended = {"r.json": lines(SERVE, SERVE | {"output_throughput": 37.0})}

    (problem,) = refused(appended, SERVING)
    assert problem.startswith('r.json: PR125: "org/model request_rate=inf ')
    assert problem.endswith("its 2 runs may all be of one server, and not independent")

    declared = replace(SERVING, table=replace(SERVING.table, unit="session"))
    assert len(take(appended, declared).attempts) == 2


def test_requests_that_failed_are_told_with_the_import(take):
    file = take({"r.json": json.dumps(SERVE | {"failed": 2, "completed": 1})}, SERVING)

    assert file.header.imported["notices"] == [
        "run 1: 2 requests failed; what is told of requests leaves them out"
    ]
    assert "r.json: run 1: 2 requests failed" in "\n".join(
        imported_lines(SERVING, file, assemble(SERVING, [file])[0])
    )


def test_files_of_several_servers_are_a_repeat_each(take):
    servers = {
        f"{number}.json": json.dumps(SERVE | {"output_throughput": 30.0 + number}) for number in (1, 2)
    }

    assert [one.values for one in take(servers, SERVING).attempts] == [
        {"output_throughput": 31.0},
        {"output_throughput": 32.0},
    ]
