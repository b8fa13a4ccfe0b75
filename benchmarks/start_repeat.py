"""What starting a fresh-process repeat with torch costs, beside a spawned interpreter that imports it."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from table import Row

from pytest_prereg.measure.executors.base import Job
from pytest_prereg.measure.executors.local import LocalExecutor
from pytest_prereg.registry.model import ONLY_ARM, Arm, Experiment, Metric, Source, Study
from pytest_prereg.registry.tables import ExperimentTable, StudyTable

FORKS = 21
SPAWNS = 7
PROGRAM = "import torch; print(float((torch.ones(2) + 1).sum()))"
MODULE = """
from pytest_prereg import Repeat, experiment

@experiment(metrics={"total": "1"}, preload=["torch"])
def tiny(repeat: Repeat) -> None:
    import torch
    repeat.record("total", (torch.ones(2) + 1).sum())
"""


def rows() -> list[Row]:
    """Launch to end, and launch to the start of the body: medians of single runs, taken in turns."""
    with tempfile.TemporaryDirectory() as folder:
        study, experiment = tiny_study(Path(folder))
        with LocalExecutor(study, experiment) as executor:
            spawned = [spawn() for _ in range(SPAWNS)]
            forked = [fork(executor, index) for index in range(1, FORKS + 1)]
    other = statistics.median(spawned)
    return [
        Row(what=what, ours=ours, other=other, against="spawned", at_least=20)
        for what, ours in (
            ("launch to end", statistics.median(seconds["total"] for seconds in forked)),
            ("launch to start of body", statistics.median(seconds["launch"] for seconds in forked)),
        )
    ]


def spawn() -> float:
    """Run the same work in a new interpreter; return the seconds it took."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def fork(executor: LocalExecutor, index: int) -> dict[str, float]:
    """Run it as a repeat; return its times."""
    result = executor.run(
        Job(repeat=f"tiny/1/{index}", arm=ONLY_ARM, index=index, seed=1, metrics={"total": "1"})
    )
    assert result.values == {"total": 4.0}, result
    return result.seconds


def tiny_study(folder: Path) -> tuple[Study, Experiment]:
    """Write a study of one experiment."""
    path = folder / "tiny_module.py"
    path.write_text(MODULE, encoding="utf-8")
    experiment = Experiment(
        id="tiny",
        kind="fixture",
        table=ExperimentTable(fixture="tiny", repeats=FORKS),
        arms={ONLY_ARM: Arm(name=ONLY_ARM, params={}, env={}, timeout=60.0, repeats=FORKS)},
        metrics={"total": Metric(name="total", unit="1")},
        pairing="block",
        source=Source(function="tiny", path=path, module=path.stem, preload=("torch",)),
        line=1,
    )
    table = StudyTable(id="tiny")
    path = folder / "predictions.toml"
    return Study(
        id="tiny", table=table, path=path, experiments={"tiny": experiment}, predictions={}
    ), experiment
