"""The pull requests that the benchmark of the gate makes are what it says that they are."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(
    not (ROOT / "benchmarks").is_dir(), reason="runs in a checkout or an unpacked sdist"
)


def test_each_pull_request_is_what_its_row_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    benchmark = importlib.import_module("gate_history")
    monkeypatch.setattr(benchmark, "PREDICTIONS", 10)
    benchmark.build(tmp_path, 60, 10)
    for number, pull_request in enumerate(benchmark.PULL_REQUESTS):
        benchmark.prepare(tmp_path, number, pull_request)
