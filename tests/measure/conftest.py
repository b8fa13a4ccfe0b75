"""What the tests of measuring share: laboratories, and ways to wait."""

from __future__ import annotations

import tempfile
import time
from typing import TYPE_CHECKING

import pytest
from laboratories import Herd, Laboratory, job
from loop_bench import Bench

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pytest_prereg.measure.executors.base import Job


@pytest.fixture
def laboratory(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Laboratory]:
    # The output of a repeat that failed is kept; pytest removes it in time.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("tmp")))
    made = Laboratory(tmp_path)
    yield made
    made.close()


@pytest.fixture
def make_job() -> Callable[..., Job]:
    return job


@pytest.fixture
def wait_until() -> Callable[..., float]:
    """Waits for a condition and returns how long that took; fails after ``seconds``."""

    def wait(condition: Callable[[], object], *, seconds: float = 5.0) -> float:
        began = time.monotonic()
        while not condition():
            assert time.monotonic() - began < seconds, "waited in vain"
            time.sleep(0.005)
        return time.monotonic() - began

    return wait


@pytest.fixture
def bench(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A study whose sessions a test runs one after another."""
    return Bench(laboratory, monkeypatch)


@pytest.fixture
def herd() -> Herd:
    return Herd()
