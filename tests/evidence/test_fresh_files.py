"""Each importer reads a file that its tool wrote a moment ago; a tool that is not here is skipped, and said."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from evidence_samples import experiment

from pytest_prereg.errors import EvidenceError
from pytest_prereg.evidence.importers.taking import take_file
from pytest_prereg.registry.tables import ExperimentTable

IS_FULL = os.environ.get("PREREG_STORM") == "full"
CRATES = Path("/usr/share/cargo/registry")
"""Where Debian puts the sources of crates."""

TIMED_IN_PYTHON = """\
def test_sum(benchmark):
    benchmark.pedantic(sum, (range(100),), rounds=5)

def test_sorted(benchmark):
    benchmark.pedantic(sorted, (range(100),), rounds=7)
"""

TIMED_IN_CPP = """\
#include <benchmark/benchmark.h>
static void sum(benchmark::State& state) {
  int total = 0;
  for (auto _ : state) benchmark::DoNotOptimize(total += 1);
}
BENCHMARK(sum);
BENCHMARK_MAIN();
"""

TIMED_IN_RUST = """\
use criterion::{criterion_group, criterion_main, Criterion};

fn sums(c: &mut Criterion) {
    c.bench_function("sum", |b| b.iter(|| (0..criterion::black_box(100u64)).sum::<u64>()));
}

criterion_group!(benches, sums);
criterion_main!(benches);
"""

CARGO_MANIFEST = """\
[package]
name = "timed"
version = "0.1.0"
edition = "2021"

[dev-dependencies]
criterion = { version = ">=0.3, <0.9", default-features = false, features = ["cargo_bench_support"] }

[[bench]]
name = "sums"
harness = false
"""


def run(*command, cwd):
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def needs_module(name):
    found = importlib.util.find_spec(name) is not None
    return pytest.mark.skipif(not found, reason=f"{name} is not installed here; nox -s tools installs it")


def needs_program(name):
    return pytest.mark.skipif(shutil.which(name) is None, reason=f"there is no {name} here")


def assert_read(taken, tool, metric, count):
    """The file is known by its content, and has so many repeats, each with readings that a clock may give."""
    assert taken.origin["format"] == tool
    assert len(taken.repeats) == count
    readings = [value for repeat in taken.repeats for value in listed(repeat.values[metric])]
    assert all(0 < value < math.inf for value in readings)


def listed(value):
    return value if isinstance(value, list) else [value]


@needs_module("pytest_benchmark")
def test_rounds_of_pytest_benchmark_are_samples_of_one_repeat(tmp_path):
    (tmp_path / "test_timed.py").write_text(TIMED_IN_PYTHON)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    path = tmp_path / "benchmarks.json"
    plugins = ("-p", "no:xdist", "-p", "no:cacheprovider")
    run(sys.executable, "-m", "pytest", *plugins, f"--benchmark-json={path}", cwd=tmp_path)
    with pytest.raises(EvidenceError, match="PR126"):
        take_file(path, experiment(metrics={"mean": "s"}))
    taken = take_file(
        path, experiment(metrics={"mean": "s", "data": "s"}), select="test_timed.py::test_sorted"
    )
    assert_read(taken, "pytest-benchmark", "mean", 1)
    assert len(taken.repeats[0].values["data"]) == 7


@needs_module("pyperf")
def test_processes_of_pyperf_are_repeats_and_its_warm_ups_and_calibration_are_not(tmp_path):
    path = tmp_path / "timed.json"
    options = ("--processes=3", "--values=2", "--warmups=1", "--min-time=0.001", "--quiet")
    run(sys.executable, "-m", "pyperf", "timeit", *options, "--output", path, "sum(range(100))", cwd=tmp_path)
    (benchmark,) = json.loads(path.read_text())["benchmarks"]
    assert len(benchmark["runs"]) > 3  # with those that only calibrate
    taken = take_file(path, experiment(metrics={"values": "s"}))
    assert_read(taken, "pyperf", "values", 3)
    assert [len(repeat.values["values"]) for repeat in taken.repeats] == [2, 2, 2]


@needs_program("hyperfine")
def test_runs_of_hyperfine_are_repeats_of_the_command_that_is_selected(tmp_path):
    path = tmp_path / "timed.json"
    options = ("--shell=none", "--runs=4", "--style=none", "--export-json", path)
    run("hyperfine", *options, "sleep 0.01", "sleep 0.02", cwd=tmp_path)
    with pytest.raises(EvidenceError, match="PR126"):
        take_file(path, experiment(metrics={"times": "s"}))
    taken = take_file(path, experiment(metrics={"times": "s"}), select="sleep 0.02")
    assert_read(taken, "hyperfine", "times", 4)
    assert all(repeat.values["times"] >= 0.02 for repeat in taken.repeats)


@needs_program("g++")
def test_repetitions_of_google_benchmark_are_repeats_only_where_that_is_declared(tmp_path):
    source, program, path = (tmp_path / name for name in ("timed.cpp", "timed", "timed.json"))
    source.write_text(TIMED_IN_CPP)
    there = subprocess.run(["g++", "-E", "-o", os.devnull, source], capture_output=True, check=False)
    if there.returncode:
        pytest.skip("g++ finds no benchmark/benchmark.h here; Debian has it in libbenchmark-dev")
    run("g++", source, "-o", program, "-lbenchmark", "-lpthread", cwd=tmp_path)
    to_file = (f"--benchmark_out={path}", "--benchmark_out_format=json")
    run(program, "--benchmark_repetitions=4", "--benchmark_min_time=0.001", *to_file, cwd=tmp_path)
    timed = experiment(metrics={"real_time": "ns"})
    with pytest.raises(EvidenceError, match="PR125"):
        take_file(path, timed)
    declared = msgspec.structs.replace(timed, table=ExperimentTable(unit="session"))
    assert_read(take_file(path, declared), "google-benchmark", "real_time", 4)


@pytest.mark.skipif(not IS_FULL, reason="builds criterion, which takes minutes; nox -s tools does")
@needs_program("cargo")
def test_samples_of_criterion_are_samples_of_one_repeat(tmp_path):
    (tmp_path / "Cargo.toml").write_text(CARGO_MANIFEST)
    for name, text in (("src/lib.rs", ""), ("benches/sums.rs", TIMED_IN_RUST)):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    offline = ['--config=source.crates-io.replace-with="here"', f'--config=source.here.directory="{CRATES}"']
    cargo = ["cargo", *(offline if [*CRATES.glob("criterion-[0-9]*")] else [])]
    fetched = subprocess.run([*cargo, "fetch"], cwd=tmp_path, capture_output=True, text=True, check=False)
    if fetched.returncode:
        pytest.skip(
            f"cargo can't get criterion here; Debian has it in librust-criterion-dev:\n{fetched.stderr}"
        )
    short = ("--warm-up-time=1", "--measurement-time=1", "--sample-size=10", "--noplot")
    run(*cargo, "bench", "--quiet", "--bench=sums", "--", *short, cwd=tmp_path)
    taken = take_file(tmp_path / "target/criterion/sum/new/sample.json", experiment(metrics={"time": "ns"}))
    assert_read(taken, "criterion", "time", 1)
    assert len(taken.repeats[0].values["time"]) == 10
