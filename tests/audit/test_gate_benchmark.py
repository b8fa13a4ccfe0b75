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
    """The benchmark itself holds each to the codes that it has to give."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    benchmark = importlib.import_module("gate_history")
    monkeypatch.setattr(benchmark, "COMMITS", 60)
    monkeypatch.setattr(benchmark, "PREDICTIONS", 10)
    monkeypatch.setattr(benchmark, "ROUNDS", 1)
    monkeypatch.setattr(benchmark, "DEPTH", 5)
    rows = benchmark.rows()
    assert len(rows) == 4
    assert all(row.ours > 0 for row in rows)
